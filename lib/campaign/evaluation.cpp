#include "campaign/evaluation.hpp"

#include <algorithm>

#include "data/reader.hpp"

namespace tern::campaign {
namespace {

/// Copy of a device vector on the host, converted.
template <class To, class From>
std::vector<To> on_host(const ops::Context& context, Vector<const From> values) {
  HostVector<From> host(Kokkos::view_alloc(Kokkos::WithoutInitializing, "values"),
                        values.extent(0));
  Kokkos::deep_copy(context.space, host, values);
  context.fence("values");
  std::vector<To> result(host.extent(0));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<To>(host(i));
  return result;
}

}  // namespace

template <class T>
std::optional<objective::Score> evaluate(
    workload::Workload<T>& w, const deck::Deck& deck, const workload::Layout& layout,
    const data::Source& source, comm::Group& group, bool training,
    const std::function<bool(std::size_t, std::size_t)>& between) {
  using A = Accumulate<T>;
  const std::size_t rows = std::min(static_cast<std::size_t>(deck.evaluation.rows), source.rows());
  const std::size_t together = layout.per_rank * static_cast<std::size_t>(group.size());
  data::ReaderOptions options{layout.per_rank, layout.tokens};
  options.shuffle = false;
  options.limit = rows;  // the last micro-batch may exceed the set
  options.accumulation = (rows + together - 1) / together;
  data::Reader reader(source, options, static_cast<std::size_t>(group.rank()),
                      static_cast<std::size_t>(group.size()), 0);
  ops::HeadOptions head = w.objective->head();
  head.z_loss = 0;  // a regularizer, not part of the likelihood
  std::vector<double> sums(w.objective->sums(), 0);
  for (std::size_t micro = 0; micro < options.accumulation; ++micro) {
    if (between && between(micro, options.accumulation)) return std::nullopt;
    const auto prepared = w.objective->prepare(w.context, reader.next(), 0, true);
    const std::size_t scored = prepared.scored.targets.extent(0);
    const Vector<A> losses(w.losses.data(), scored);
    const Vector<std::int32_t> best(w.best.data(), w.objective->wants_best() ? scored : 0);
    const model::MicroBatch<T> given{prepared.rows, prepared.pattern, prepared.scored};
    w.model.embed(w.context, given);
    for (std::size_t step = 0; step < w.objective->evaluated_steps(training); ++step) {
      w.model.advance(w.context, given, step);
      w.model.loss(w.context, given, head, losses, best, step);
      w.objective->accumulate(step, on_host<double, A>(w.context, losses),
                              on_host<std::int32_t, std::int32_t>(w.context, best), sums);
    }
  }
  group.all_reduce(sums.data(), sums.size(), comm::Sum::sum);
  return w.objective->finalize(sums, training);
}

template std::optional<objective::Score> evaluate(
    workload::Workload<float>&, const deck::Deck&, const workload::Layout&, const data::Source&,
    comm::Group&, bool, const std::function<bool(std::size_t, std::size_t)>&);
template std::optional<objective::Score> evaluate(
    workload::Workload<bf16>&, const deck::Deck&, const workload::Layout&, const data::Source&,
    comm::Group&, bool, const std::function<bool(std::size_t, std::size_t)>&);
template std::optional<objective::Score> evaluate(
    workload::Workload<fp16>&, const deck::Deck&, const workload::Layout&, const data::Source&,
    comm::Group&, bool, const std::function<bool(std::size_t, std::size_t)>&);

}  // namespace tern::campaign
