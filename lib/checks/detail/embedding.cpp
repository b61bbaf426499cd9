#include "checks/detail/families.hpp"

#include <algorithm>
#include <numeric>

#include "ops/loss/embedding.hpp"

namespace tern::checks {
using namespace ops;
namespace {

/// Row order for embedding_backward.
std::vector<std::int32_t> sorted_rows(const std::vector<std::int32_t>& tokens) {
  std::vector<std::int32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tokens[a] < tokens[b]; });
  return order;
}

void check_shape(Checker& checker, std::size_t B, std::size_t T, std::size_t V, std::size_t D) {
  for (const bool positions : {false, true})
    checker.check(positions ? "embedding, positions" : "embedding",
                  fmt::format("B {} T {} V {} D {}", B, T, V, D), [=]<class S>(Run<S>& r) {
                    using A = Accumulate<S>;
                    const auto drawn = r.draw_integers(B * T, static_cast<std::uint32_t>(V), 0);
                    const auto tokens = r.integers(drawn);
                    const auto order = r.integers(sorted_rows(drawn));
                    auto table = r.input(V, D), dx = r.input(B * T, D);
                    auto dtable = r.template inout<A>(V, D);
                    Matrix<S> learned;
                    Matrix<A> dlearned;
                    if (positions) learned = r.input(T, D), dlearned = r.template inout<A>(T, D);
                    run(r.context, EmbeddingForward<S>{.tokens = tokens,
                                                       .table = table,
                                                       .positions = learned,
                                                       .tokens_per_sequence = T,
                                                       .first = 0,
                                                       .x = r.output(B * T, D)});
                    run(r.context, EmbeddingBackward<S>{.tokens = tokens,
                                                        .order = order,
                                                        .dx = dx,
                                                        .tokens_per_sequence = T,
                                                        .dtable = dtable,
                                                        .dpositions = dlearned});
                  });
}

}  // namespace

void check_embedding(Checker& checker) {
  check_shape(checker, 4, 125, 300, 136);
  check_shape(checker, 3, 50, 40, 21);
}

}  // namespace tern::checks
