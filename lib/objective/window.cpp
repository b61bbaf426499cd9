#include "objective/window.hpp"

#include "deck/rules.hpp"

namespace tern::objective {

std::int64_t window_at(const deck::Model& m, std::uint64_t step) {
  const auto steps = static_cast<std::uint64_t>(m.window_steps);
  if (m.window_start == 0 || step >= steps) return m.window;
  constexpr std::int64_t unit = 64;
  const std::int64_t last = m.window > 0 ? m.window : m.context;
  const double grown = static_cast<double>(last - m.window_start) * static_cast<double>(step) /
                       static_cast<double>(steps);
  return m.window_start + static_cast<std::int64_t>(grown) / unit * unit;
}

WindowMask::WindowMask(const deck::Model& model, const Shape& shape, Arena& arena)
    : model_(model),
      batch_(shape.batch),
      tokens_(shape.tokens),
      table_(deck::windowed(model) && !arena.measuring() ? shape.batch : 0, shape.tokens) {
  if (!deck::windowed(model)) return;
  const auto groups =
      static_cast<std::size_t>(ops::Pattern::groups(static_cast<int>(shape.tokens)));
  spans_.emplace_back("key spans", shape, batch_ * tokens_, arena);
  hulls_.emplace_back("span hulls", shape, batch_ * groups, arena);
}

void WindowMask::lay_out(std::size_t window) {
  window_ = window;
  table_.clear();
  for (std::size_t b = 0; b < batch_; ++b)
    for (std::size_t t = 0; t < tokens_; ++t) {
      const std::size_t first = t + 1 > window ? t + 1 - window : 0;
      table_.at(b, t).context = {static_cast<std::int32_t>(first),
                                 static_cast<std::int32_t>(t + 1)};
    }
  table_.finish();
}

ops::Pattern WindowMask::pattern(const Device& space, std::uint64_t step, std::size_t slot,
                                 bool evaluating) {
  const std::int64_t window = evaluating ? model_.window : window_at(model_, step);
  const auto tokens = static_cast<std::size_t>(window);
  if (window == 0 || tokens >= tokens_) return {};
  if (tokens != window_) lay_out(tokens);
  return table_.pattern(spans_.front().copy(space, table_.spans(), slot).data(),
                        hulls_.front().copy(space, table_.hulls(), slot).data());
}

}  // namespace tern::objective
