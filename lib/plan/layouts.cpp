#include "plan/layouts.hpp"

#include "base/error.hpp"
#include "model/share.hpp"

namespace tern::plan {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;
constexpr int counts[] = {1, 2, 4, 8};

std::string cell(std::size_t bytes) {
  return fmt::format("{:>11.2f}", static_cast<double>(bytes) / gib);
}

/// Memory of rank 0, or an open cell if the deck cannot be run so.
std::string memory(deck::Deck deck, const comm::Extents& extents, const std::string& shard) {
  deck.parallel.shard = shard;
  deck.parallel.data = extents.data;
  try {
    return cell(make_plan(deck, *comm::Mesh::imagined(extents)).total_bytes);
  } catch (const UserError&) {
    return fmt::format("{:>11}", "-");
  }
}

}  // namespace

std::string layouts(const deck::Deck& deck, const Plan& plan, const comm::Extents& extents) {
  deck::Deck resolved = deck;
  resolved.batch.per_rank = plan.per_rank;
  resolved.batch.global = plan.global;
  resolved.batch.accumulation = 0;
  resolved.batch.preset = "none";
  const bool diffusion = deck.objective.kind == "block_diffusion";
  std::string text = fmt::format(
      "on other numbers of data ranks (x {} tensor x {} pipeline), GiB on each by shard\n"
      "  data        none  optimizer       full",
      extents.tensor, extents.pipeline);
  text += plan.rate ? "    tokens/s     hours      cost\n" : "\n";
  for (const int data : counts) {
    const comm::Extents there{data, extents.tensor, extents.pipeline};
    text += fmt::format("  {:>4}", data) + memory(resolved, there, "none") +
            memory(resolved, there, "optimizer");
    const bool whole = deck.optimizer.kind == "muon" || extents.replica() > 1 ||
                       (diffusion && deck.evaluation.problems > 0);
    text += whole ? fmt::format("{:>11}", "-") : memory(resolved, there, "full");
    if (plan.rate) {
      const double rate = plan.rate->first / extents.ranks() * there.ranks();
      const double hours = plan.tokens / rate / 3600;
      const double dollars = hours * there.ranks() * deck.cost.dollars_per_gpu_hour;
      text += fmt::format("{:>12.0f}{:>10.2f}{:>10}", rate, hours,
                          dollars > 0 ? fmt::format("${:.2f}", dollars) : "-");
    }
    text += "\n";
  }
  return text;
}

std::string layouts(const deck::Deck& deck, const generate::EngineOptions& options,
                    std::size_t usable_bytes) {
  std::string text = fmt::format(
      "on other numbers of tensor ranks, GiB on each, of {:.2f} usable here\n"
      "  tensor  but cache      cache  cache tokens\n",
      static_cast<double>(usable_bytes) / gib);
  generate::EngineOptions one_page = options;
  one_page.pages = 1;
  for (const int tensor : counts) {
    text += fmt::format("  {:>6}", tensor);
    try {
      model::check_division(deck.model, tensor, 1);
    } catch (const UserError&) {
      text += fmt::format("{:>11}\n", "-");
      continue;
    }
    const ServingPlan there =
        measure_serving(deck, one_page, *comm::Mesh::imagined({1, tensor, 1}));
    const std::size_t rest =
        usable_bytes > there.total_bytes ? usable_bytes - there.total_bytes : 0;
    const std::size_t pages =
        std::min(rest / there.page_bytes, generate::Engine<float>::most_pages(options));
    text += cell(there.total_bytes) + cell(pages * there.page_bytes) +
            fmt::format("{:>14}\n", pages * there.cache_tokens);
  }
  return text;
}

}  // namespace tern::plan
