#include "ops/elementwise/fp8_matrix.hpp"

namespace tern::ops {

Fp8Scale::Fp8Scale(Arena& arena, const std::string& label, Term term) {
  constexpr std::size_t first = 4;  // of the magnitude, in 4-byte words
  const Vector<std::uint32_t> words = arena.vector<std::uint32_t>(label, term, first + 1);
  undo = Vector<float>(reinterpret_cast<float*>(words.data()), first);
  magnitude = Magnitude(words.data() ? words.data() + first : nullptr, 1);
}

}  // namespace tern::ops
