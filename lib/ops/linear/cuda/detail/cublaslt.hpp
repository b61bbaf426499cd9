/// Checked cuBLASLt calls.
#pragma once
#include <cublasLt.h>

#include "base/error.hpp"

namespace tern::ops::cuda::detail {

inline void check(cublasStatus_t status, const char* call) {
  TERN_REQUIRE(status == CUBLAS_STATUS_SUCCESS, "{}: {}", call, cublasLtGetStatusString(status));
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

}  // namespace tern::ops::cuda::detail
