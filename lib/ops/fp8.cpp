#include "ops/fp8.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include "ops/cuda/detail/fp8_product.hpp"
#endif

namespace tern::ops {
namespace {
constexpr std::size_t operands_at_once = 3;
}  // namespace

template <class T>
Fp8Workspace<T>::Fp8Workspace(Arena& arena, std::size_t elements)
    : operands(arena.vector<T>("fp8 operands", Term::workspace, elements)),
      magnitudes(arena.vector<std::uint32_t>("fp8 magnitudes", Term::workspace, operands_at_once)),
      undo(arena.matrix<float>("fp8 scales", Term::workspace, operands_at_once, 4)) {}

bool fp8_available([[maybe_unused]] const Context& context) {
#if defined(KOKKOS_ENABLE_CUDA)
  if (context.library) return cuda::Fp8Product::served_by_device();
#endif
  return true;
}

template struct Fp8Workspace<float>;
template struct Fp8Workspace<double>;
template struct Fp8Workspace<bf16>;

}  // namespace tern::ops
