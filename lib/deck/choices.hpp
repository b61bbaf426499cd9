/// Names of a deck as types. Libraries above ask here instead of comparing strings, and fields list
/// their choices from here (lib/deck itself compares names, since it also checks unknown ones).
#pragma once
#include <array>

#include "base/activation.hpp"
#include "base/error.hpp"
#include "deck/deck.hpp"

namespace tern::deck {

template <class Kind>
struct Choice {
  Kind kind;
  const char* name;
};

enum class Norm { rmsnorm, layernorm };
inline constexpr std::array norms = {Choice<Norm>{Norm::rmsnorm, "rmsnorm"},
                                     Choice<Norm>{Norm::layernorm, "layernorm"}};

/// Position encoding: rotary, learned embedding, or none.
enum class Position { rope, learned, none };
inline constexpr std::array positions = {Choice<Position>{Position::rope, "rope"},
                                         Choice<Position>{Position::learned, "learned"},
                                         Choice<Position>{Position::none, "none"}};

/// Whether backward recomputes each block's forward.
inline constexpr std::array recomputations = {Choice<bool>{false, "none"},
                                              Choice<bool>{true, "block"}};

enum class Task { train, evaluate, generate };
inline constexpr std::array tasks = {Choice<Task>{Task::train, "train"},
                                     Choice<Task>{Task::evaluate, "evaluate"},
                                     Choice<Task>{Task::generate, "generate"}};

/// Precision of products; workload/storage.hpp has the types that it stores.
enum class Compute { fp32, tf32, bf16, fp16, fp8 };
inline constexpr std::array computes = {
    Choice<Compute>{Compute::fp32, "fp32"}, Choice<Compute>{Compute::tf32, "tf32"},
    Choice<Compute>{Compute::bf16, "bf16"}, Choice<Compute>{Compute::fp16, "fp16"},
    Choice<Compute>{Compute::fp8, "fp8"}};

/// What data ranks divide: nothing, optimizer states, or also parameters and gradients.
enum class Shard { none, optimizer, full };
inline constexpr std::array shards = {Choice<Shard>{Shard::none, "none"},
                                      Choice<Shard>{Shard::optimizer, "optimizer"},
                                      Choice<Shard>{Shard::full, "full"}};

/// Quantization of linear maps in batch inference: their weights, or also their inputs.
enum class Quantization { none, fp8, fp8_dynamic };
inline constexpr std::array quantizations = {
    Choice<Quantization>{Quantization::none, "none"},
    Choice<Quantization>{Quantization::fp8, "fp8"},
    Choice<Quantization>{Quantization::fp8_dynamic, "fp8_dynamic"}};

/// Source of a sample's plan. `data`: the record, or the skeleton rule if it has none. `skeleton`:
/// always the rule (data/skeleton.hpp). `none`: plans are empty.
enum class PlanRule { data, skeleton, none };
inline constexpr std::array plan_rules = {Choice<PlanRule>{PlanRule::data, "data"},
                                          Choice<PlanRule>{PlanRule::skeleton, "skeleton"},
                                          Choice<PlanRule>{PlanRule::none, "none"}};

enum class Sampler { first_hitting, ddpm };
inline constexpr std::array samplers = {Choice<Sampler>{Sampler::first_hitting, "first_hitting"},
                                        Choice<Sampler>{Sampler::ddpm, "ddpm"}};

/// Whether block diffusion writes a plan before the execution.
inline constexpr std::array hierarchies = {Choice<bool>{false, "flat"}, Choice<bool>{true, "hdp"}};
/// Whether samples that are too long are cut.
inline constexpr std::array long_samples = {Choice<bool>{false, "leave out"},
                                            Choice<bool>{true, "cut"}};
/// Whether only the tensors that match are loaded.
inline constexpr std::array load_rules = {Choice<bool>{false, "same"},
                                          Choice<bool>{true, "matching"}};
/// Whether algorithms of matrix products are timed.
inline constexpr std::array product_choices = {Choice<bool>{true, "fastest"},
                                               Choice<bool>{false, "first"}};
/// Whether keys and values are stored in fp8.
inline constexpr std::array cache_quantizations = {Choice<bool>{false, "none"},
                                                   Choice<bool>{true, "fp8"}};

/// Throws InternalError for an unknown name: read() has refused it before.
template <class Choices>
auto kind_of(const Choices& choices, const std::string& name) {
  for (const auto& choice : choices)
    if (name == choice.name) return choice.kind;
  TERN_REQUIRE(false, "no choice '{}'", name);
}

inline Activation activation_of(const Model& model) {
  return kind_of(activation_kinds, model.activation);
}
inline Norm norm_of(const Model& model) { return kind_of(norms, model.norm); }
inline Position position_of(const Model& model) { return kind_of(positions, model.position); }
inline Task task_of(const Deck& deck) { return kind_of(tasks, deck.campaign.task); }
inline bool trains(const Deck& deck) { return task_of(deck) == Task::train; }
inline Compute compute_of(const Precision& precision) {
  return kind_of(computes, precision.compute);
}
inline Shard shard_of(const Parallel& parallel) { return kind_of(shards, parallel.shard); }
inline Quantization quantization_of(const Generation& generation) {
  return kind_of(quantizations, generation.quantization);
}
inline PlanRule plan_rule_of(const Data& data) { return kind_of(plan_rules, data.plan); }
inline Sampler sampler_of(const Generation& generation) {
  return kind_of(samplers, generation.sampler);
}
inline bool hierarchical(const Objective& objective) {
  return kind_of(hierarchies, objective.hierarchy);
}
inline bool cuts_long(const Data& data) { return kind_of(long_samples, data.too_long); }
inline bool loads_matching(const Model& model) { return kind_of(load_rules, model.load_rule); }
inline bool times_products(const Precision& precision) {
  return kind_of(product_choices, precision.products);
}
inline bool stores_cache_in_fp8(const Generation& generation) {
  return kind_of(cache_quantizations, generation.cache_quantization);
}
inline bool recomputes(const Precision& precision) {
  return kind_of(recomputations, precision.recompute);
}

}  // namespace tern::deck
