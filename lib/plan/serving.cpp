#include "plan/serving.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "plan/detail/ranks.hpp"
#include "plan/detail/rows.hpp"
#include "plan/devices.hpp"
#include "plan/sizes.hpp"
#include "workload/storage.hpp"

namespace tern::plan {
namespace {

/// Bytes of the planned device available to the arena. Memory of libraries and of other processes
/// on a GPU is subtracted.
std::size_t usable(double utilization, const PlannedDevice& device) {
  const DeviceCapacity bytes = device.capacity();
  if (!device.is_gpu())
    return static_cast<std::size_t>(utilization * static_cast<double>(bytes.free_bytes));
  const auto share = static_cast<std::size_t>(utilization * static_cast<double>(bytes.total_bytes));
  const std::size_t taken = bytes.total_bytes - bytes.free_bytes;
  return share > taken ? share - taken : 0;
}

/// Arena memory of a run with `pages` pages.
template <class T>
ServingPlan measure(const deck::Deck& deck, generate::EngineOptions options, const comm::Mesh& mesh,
                    std::size_t pages) {
  constexpr std::size_t P = generate::Engine<T>::page_tokens;
  options.pages = pages;
  Arena arena;
  const workload::Serving<T> serving(deck, options, mesh, arena);
  ServingPlan plan;
  plan.options = options;
  plan.page_bytes =
      generate::Engine<T>::page_bytes(deck.model, serving.tree.share(), options.fp8_cache);
  plan.cache_tokens = pages * P;
  for (const Term term :
       {Term::parameters, Term::activations, Term::workspace, Term::data, Term::cache})
    if (const std::size_t bytes = arena.bytes(term); bytes > 0)
      plan.memory.emplace_back(term, bytes);
  plan.total_bytes = arena.bytes();
  return plan;
}

/// Pages that fit this rank's device; 0 if those of the plan do not.
std::size_t fitting(const ServingPlan& least, const deck::Model& model) {
  // Per layer: keys and values, and the scales of each.
  const std::size_t alignment = 4 * static_cast<std::size_t>(model.layers) * Arena::alignment;
  if (least.total_bytes > least.usable_bytes) return 0;
  const std::size_t left = least.usable_bytes - least.total_bytes;
  return least.options.pages + (left > alignment ? (left - alignment) / least.page_bytes : 0);
}

template <class T>
ServingPlan plan_pages(const deck::Deck& deck, const generate::EngineOptions& options,
                       const comm::Mesh& mesh, const PlannedDevice& device) {
  constexpr std::size_t P = generate::Engine<T>::page_tokens;
  const std::size_t least = (options.max_model_len + P - 1) / P;
  ServingPlan plan = measure<T>(deck, options, mesh, least);
  plan.usable_bytes = usable(deck.generation.memory_utilization, device);
  std::size_t pages = detail::least(fitting(plan, deck.model), mesh.replica());
  if (pages == 0)
    user_error(
        "answering takes {} with a cache of one request of {} tokens, and &generation "
        "memory_utilization leaves {} of the device: lower &generation max_model_len, "
        "batch or prefill_tokens, use &precision compute = 'bf16', or spread the model over more "
        "ranks with &parallel tensor",
        size_text(plan.total_bytes), options.max_model_len, size_text(plan.usable_bytes));
  pages = std::min(pages, generate::Engine<T>::max_pages(options));
  if (options.pages > 0) pages = std::max(least, std::min(pages, options.pages));
  const std::size_t usable_bytes = plan.usable_bytes;
  plan = measure<T>(deck, options, mesh, pages);
  plan.usable_bytes = usable_bytes;
  return plan;
}

std::string row(const char* name, std::size_t bytes) { return detail::row(name, size_text(bytes)); }

}  // namespace

std::size_t usable_for_serving(const deck::Deck& deck, const PlannedDevice& device) {
  return usable(deck.generation.memory_utilization, device);
}

ServingPlan measure_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                            const comm::Mesh& mesh) {
  return workload::with_storage(
      deck, [&](auto zero) { return measure<decltype(zero)>(deck, options, mesh, options.pages); });
}

ServingPlan plan_serving(const deck::Deck& deck, const generate::EngineOptions& options,
                         const comm::Mesh& mesh, const PlannedDevice& device) {
  ServingPlan plan = workload::with_storage(
      deck, [&](auto zero) { return plan_pages<decltype(zero)>(deck, options, mesh, device); });
  plan.device_bytes = device.capacity().free_bytes;
  return plan;
}

std::string table(const ServingPlan& plan) {
  const generate::EngineOptions& o = plan.options;
  std::string text = fmt::format("plan of answering {} requests at once, of up to {} tokens\n",
                                 o.batch, o.max_model_len);
  for (const auto& [term, bytes] : plan.memory) {
    text += row(term == Term::parameters ? "parameter memory" : term_name(term), bytes);
    if (term == Term::parameters && o.fp8_weights)
      text += detail::remark("with linear maps, except experts, in fp8 as well");
  }
  text += row("memory per rank", plan.total_bytes);
  text += row("usable on device", plan.usable_bytes);
  text += row("free on device", plan.device_bytes);
  text += detail::row("pages", fmt::format("{} of {} KiB", o.pages, plan.page_bytes / 1024));
  text += detail::row("cache", fmt::format("{} tokens", plan.cache_tokens));
  if (o.fp8_cache) text += detail::remark("keys and values in fp8");
  text += detail::row("whole requests",
                      fmt::format("{:.1f}", static_cast<double>(plan.cache_tokens) /
                                                static_cast<double>(o.max_model_len)));
  text += detail::remark("of max_model_len tokens that the cache holds at once");
  return text;
}

}  // namespace tern::plan
