#include "ops/context.hpp"

#include <string_view>

#include "base/error.hpp"
#if defined(KOKKOS_ENABLE_CUDA)
#include "ops/cuda/library.hpp"
#endif

namespace tern::ops {

Context make_context(Arena& arena, bool accelerated, const char* attention) {
  Context context;
#if defined(KOKKOS_ENABLE_CUDA)
  if (accelerated) context.library = std::make_shared<cuda::Library>(arena, attention);
#else
  (void)arena, (void)accelerated;
  if (std::string_view(attention) == "cudnn")
    user_error("&model attention = 'cudnn' needs a CUDA build: choose 'auto' or 'portable'");
#endif
  return context;
}

}  // namespace tern::ops
