#include "ops/core/cuda/library.hpp"

#include "base/error.hpp"

namespace tern::ops {

NativeLibrary::NativeLibrary(Arena& arena, AttentionChoice attention, Products products)
    : workspace_(arena.vector<char>("library workspace", Term::workspace,
                                    workspace_bytes + Arena::alignment)),
      attention_(attention),
      products_(products) {
  if (attention == AttentionChoice::cudnn && !cudnn_built())
    user_error(
        "&model attention = 'cudnn', but this program was built without cuDNN's frontend; set "
        "attention = 'auto' or 'portable', or configure with -DCUDNN_FRONTEND_INCLUDE=<folder of "
        "cudnn_frontend.h>");
}

// The arena's requests are aligned to 256 bytes within its block; the block itself need not be.
void* NativeLibrary::workspace() const {
  return reinterpret_cast<void*>(aligned(reinterpret_cast<std::size_t>(workspace_.data())));
}

float* NativeLibrary::scratch(std::size_t n) const {
  TERN_REQUIRE(n * sizeof(float) <= workspace_bytes, "{} numbers", n);
  TERN_REQUIRE(workspace(), "a measuring arena has no workspace");
  return reinterpret_cast<float*>(workspace());
}

std::size_t NativeLibrary::next_number() {
  static std::size_t numbers = 0;
  return numbers++;
}

}  // namespace tern::ops
