#include "plan/detail/host_rates.hpp"

#include <algorithm>
#include <tuple>

#include "base/timer.hpp"
#include "memory/arena.hpp"
#include "ops/linear/functions.hpp"
#include "workload/storage.hpp"

namespace tern::plan::detail {
namespace {

constexpr std::int64_t most_rows = 1024, most_width = 2048;
constexpr double least_seconds = 0.1;
constexpr std::size_t least_runs = 5;

/// Mean over runs, after a first one: what other processes take counts.
template <class Work>
double mean_seconds(const ops::Context& context, const Work& work) {
  work();
  context.fence("timed work begins");
  const Timer timer;
  std::size_t runs = 0;
  while (runs < least_runs || timer.seconds() < least_seconds) {
    work();
    context.fence("timed work");
    ++runs;
  }
  return timer.seconds() / static_cast<double>(runs);
}

template <class T>
HostRates time_host(std::size_t rows, std::size_t in, std::size_t out) {
  ops::Context context;
  const auto request = [&](Arena& arena) {
    return std::tuple(arena.matrix<T>("x", Term::data, rows, in),
                      arena.matrix<T>("w", Term::data, out, in),
                      arena.matrix<T>("y", Term::data, rows, out),
                      arena.matrix<T>("copy", Term::data, rows, out));
  };
  Arena measuring;
  request(measuring);
  Arena arena(measuring.bytes());
  const auto [x, w, y, copy] = request(arena);
  const double product = mean_seconds(
      context, [&, x = x, w = w, y = y] { ops::linear_forward<T>(context, x, w, {}, y); });
  const double copying =
      mean_seconds(context, [&, y = y, copy = copy] { Kokkos::deep_copy(context.space, copy, y); });
  const double numbers = static_cast<double>(rows * out);
  return {2 * numbers * static_cast<double>(in) / product, 2 * sizeof(T) * numbers / copying};
}

}  // namespace

HostRates time_host(const deck::Deck& deck) {
  const auto size = [](std::int64_t asked, std::int64_t most) {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(asked, 1, most));
  };
  const deck::Model& m = deck.model;
  const std::int64_t per_rank = std::max<std::int64_t>(1, deck.batch.per_rank);
  return workload::with_storage(deck, [&](auto zero) {
    return time_host<decltype(zero)>(size(per_rank * m.context, most_rows),
                                     size(m.hidden, most_width), size(m.ffn_hidden, most_width));
  });
}

}  // namespace tern::plan::detail
