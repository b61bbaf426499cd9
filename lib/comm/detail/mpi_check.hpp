#pragma once
#include <mpi.h>

#include "base/error.hpp"

namespace tern::comm::detail {

/// Turns an MPI error code into an exception with MPI's own text.
inline void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw InternalError(fmt::format("{} failed: {}", what, text));
}

}  // namespace tern::comm::detail
