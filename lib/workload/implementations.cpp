#include "workload/implementations.hpp"

#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "objective/kind.hpp"
#include "ops/attention/implementation.hpp"
#include "ops/linear/implementation.hpp"

namespace tern::workload {
namespace {

ops::Pattern::Kind pattern_of(const deck::Deck& deck) {
  const bool spans = deck::windowed(deck.model) || objective::kind(deck).spans;
  return spans ? ops::Pattern::Kind::spans : ops::Pattern::Kind::causal;
}

const char* pattern_name(ops::Pattern::Kind kind) {
  return kind == ops::Pattern::Kind::spans ? "key spans" : "causal";
}

/// What is stored and what is multiplied in which precision.
template <class T>
std::string precision_text(const deck::Deck& deck, const Workload<T>& w) {
  constexpr bool on_host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
  const deck::Compute compute = deck::compute_of(deck.precision);
  const std::string masters = sizeof(T) < 4 ? "; sums, master weights and optimizer in fp32" : "";
  if (compute == deck::Compute::tf32)
    return fmt::format("tf32: stored in fp32, products in {}",
                       on_host ? "fp32, since CPUs have no TF32" : "TF32");
  if (compute != deck::Compute::fp8)
    return fmt::format("{}, stored and multiplied{}", deck.precision.compute, masters);
  if (!ops::fp8_available(w.context))
    return fmt::format("fp8: stored and multiplied in bf16{}", masters);
  return fmt::format(
      "fp8: stored in bf16; linear layers of blocks in E4M3, their gradients in E5M2, scaled by "
      "powers of two; {}head and attention in bf16{}",
      w.fp8_exceptions.empty() ? "" : "except for those above; ", masters);
}

}  // namespace

template <class T>
std::string implementations_text(const deck::Deck& deck, const Layout& layout,
                                 const Workload<T>& w) {
  const ops::AttentionPass pass{pattern_of(deck), layout.tokens,
                                static_cast<std::size_t>(deck.model.head_dim)};
  return fmt::format("attention: {}, {}, heads of {}\nproducts: {}\nprecision: {}",
                     ops::attention_implementation<T>(w.context, pass), pattern_name(pass.kind),
                     pass.head_size, ops::product_implementation<T>(w.context, products_of(deck)),
                     precision_text(deck, w));
}

template std::string implementations_text(const deck::Deck&, const Layout&, const Workload<float>&);
template std::string implementations_text(const deck::Deck&, const Layout&, const Workload<bf16>&);
template std::string implementations_text(const deck::Deck&, const Layout&, const Workload<fp16>&);

}  // namespace tern::workload
