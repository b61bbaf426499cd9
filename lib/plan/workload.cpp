#include "plan/workload.hpp"

#include "base/error.hpp"

namespace tern::plan {

Layout make_layout(const deck::Deck& deck, int ranks) {
  const auto per_rank = static_cast<std::size_t>(deck.batch.per_rank);
  const std::size_t together = per_rank * static_cast<std::size_t>(ranks);
  const std::size_t global =
      deck.batch.global > 0 ? static_cast<std::size_t>(deck.batch.global) : together;
  if (global % together != 0 || global == 0) {
    const std::size_t lower = global / together * together;
    user_error(
        "&batch global = {} is not a multiple of per_rank x ranks = {} x {} = {}: set global = "
        "{}{}, "
        "or change per_rank or the number of ranks",
        global, per_rank, ranks, together, lower > 0 ? fmt::format("{} or ", lower) : "",
        lower + together);
  }
  return {per_rank, global, global / together, objective::row_positions(deck)};
}

namespace {

std::size_t scored_rows(const deck::Deck& deck, const Layout& layout) {
  return layout.per_rank * objective::scored_positions(deck);
}

model::TransformerOptions transformer_options(const deck::Deck& deck, const Layout& layout) {
  model::TransformerOptions options{layout.per_rank, layout.tokens};
  options.training = deck.campaign.task == "train";
  options.recompute = deck.precision.recompute == "block";
  options.positions = static_cast<std::size_t>(deck.model.context);
  const std::size_t scored = scored_rows(deck, layout);
  if (scored < layout.per_rank * layout.tokens) options.scored = scored;
  return options;
}

}  // namespace

template <class T>
Workload<T>::Workload(const deck::Deck& deck, const Layout& layout, comm::Group& group,
                      Arena& arena)
    : tree(deck.model, static_cast<std::size_t>(group.size())),
      context(ops::make_context(arena, true, deck.model.attention.c_str())),
      parameters(tree, deck.campaign.task == "train", arena),
      model(deck.model, tree, parameters, transformer_options(deck, layout), arena),
      objective(objective::make_objective<T>(
          deck, {layout.per_rank, layout.tokens, layout.accumulation}, arena)),
      losses(arena.vector<A>("losses", Term::workspace, scored_rows(deck, layout))),
      best(arena.vector<std::int32_t>("likeliest tokens", Term::workspace,
                                      objective->wants_best() ? scored_rows(deck, layout) : 0)),
      loss_sums(arena.matrix<A>("loss sums", Term::workspace, 1 + objective->parts().size(),
                                layout.accumulation)) {
  if (deck.campaign.task == "train") optimizer.emplace(deck, tree, parameters, group, arena);
  if (deck.objective.kind == "causal" && deck.generation.samples > 0)
    generator.emplace(deck.model, tree, parameters,
                      static_cast<std::size_t>(deck.generation.samples), layout.tokens, arena);
}

template struct Workload<float>;
template struct Workload<bf16>;

}  // namespace tern::plan
