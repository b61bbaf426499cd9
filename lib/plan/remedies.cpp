#include "plan/remedies.hpp"

#include <fmt/format.h>

#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "plan/detail/ranks.hpp"
#include "plan/sizes.hpp"

namespace tern::plan {
namespace {

class Trials {
 public:
  Trials(const comm::Mesh& mesh, const Plan& plan, std::size_t room)
      : mesh_(mesh), device_(plan.device), data_(plan.data), room_(room) {}

  /// Plans `deck` and records it under `change`; returns whether it fits.
  bool add(const deck::Deck& deck, const std::string& change) {
    const std::size_t needed = plan_memory(deck, mesh_, device_, data_).largest_bytes;
    const bool fits = needed <= room_;
    text_ +=
        fmt::format("  {:<64} {:>12}  {}\n", change, size_text(needed), fits ? "fits" : "too much");
    return fits;
  }
  /// Lowers per_rank at the same global batch until it fits.
  void lower_batch(deck::Deck deck, const std::string& with) {
    const std::int64_t share = deck::counts_samples(deck.batch)
                                   ? 0  // any per_rank will do
                                   : deck.batch.global / mesh_.data().size();
    const std::int64_t from = deck.batch.per_rank;
    deck.batch.preset = "none";
    deck.batch.accumulation = 0;  // follows from per_rank
    for (std::int64_t per_rank = from - 1; per_rank > 0; --per_rank) {
      const bool halves = from % per_rank == 0 && (from / per_rank & (from / per_rank - 1)) == 0;
      if (share % per_rank != 0 || !halves) continue;
      deck.batch.per_rank = per_rank;
      if (add(deck, fmt::format("&batch per_rank = {}  global = {}{}", per_rank, deck.batch.global,
                                with)))
        return;
    }
  }
  const std::string& text() const { return text_; }

 private:
  const comm::Mesh& mesh_;
  PlannedDevice device_;
  data::SetSize data_;
  std::size_t room_;
  std::string text_;
};

/// Table of the changes tried. Collective.
std::string remedies(const Plan& plan, const comm::Mesh& mesh, std::size_t room) {
  const deck::Deck& deck = plan.deck;
  Trials trials(mesh, plan, room);
  if (deck::trains(deck)) {
    deck::Deck thrifty = deck;
    std::string with;
    if (!deck::recomputes(deck.precision)) {
      thrifty.precision.recompute = "block";
      with += "  &precision recompute = 'block'";
      trials.add(thrifty, with.substr(2));
    }
    if (deck::shard_of(deck.parallel) == deck::Shard::none && mesh.data().size() > 1) {
      deck::Deck sharded = deck;
      sharded.parallel.shard = thrifty.parallel.shard = "optimizer";
      trials.add(sharded, "&parallel shard = 'optimizer'");
      with += "  &parallel shard = 'optimizer'";
      trials.add(thrifty, with.substr(2));
    }
    trials.lower_batch(deck, "");
    if (!with.empty()) trials.lower_batch(thrifty, with);
  } else {
    trials.lower_batch(deck, "");
  }
  return trials.text();
}

}  // namespace

std::string shortage(const Plan& plan, const comm::Mesh& mesh) {
  const std::size_t room = detail::least(plan.device_bytes, mesh.world());
  const std::size_t needed = plan.largest_bytes;
  if (needed <= room) return {};
  return fmt::format(
      "The plan needs {} per rank, and a device has {} free. Possible changes, and what each "
      "needs:\n{}",
      size_text(needed), size_text(room), remedies(plan, mesh, room));
}

}  // namespace tern::plan
