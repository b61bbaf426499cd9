#include "checks/detail/families.hpp"

#include <algorithm>
#include <cmath>

#include "ops/attention/attention.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_rotary(Checker& checker, std::size_t B, std::size_t T, std::size_t H, std::size_t E) {
  checker.check("rotary", fmt::format("B {} T {} H {} E {}", B, T, H, E), [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    auto fused = r.inout(B * T, 2 * H * E);
    auto angles = r.template workspace<A>((T + 3) * E);
    const Matrix<A> table(angles.data(), T + 3, E);
    run(r.context, RotaryTable<A>{.base = 10000, .table = table});
    run(r.context, Rotary<S>{.x = heads_of(fused, 0, B, T, H, E),
                             .table = table,
                             .positions = {3},
                             .direction = Direction::forward});
    run(r.context, Rotary<S>{.x = heads_of(fused, H * E, B, T, H, E),
                             .table = table,
                             .positions = {0},
                             .direction = Direction::backward});
  });
}

struct Heading {
  std::size_t B, T, H, K, E;
  std::size_t past = 0;  // keys before the first query's own
  /// Whether backward undoes a rotation of queries and keys.
  enum class Rotated { no, counted, named } rotated = Rotated::no;
};

/// Rows of packed samples, each clean then noisy; noisy blocks of 1, 4, 16 or all positions attend
/// to the clean blocks before them and to themselves. The rest of a row is padding.
SpanTable packed_samples(std::size_t B, std::size_t T) {
  SpanTable table(B, T);
  for (std::size_t b = 0; b < B; ++b) {
    std::int32_t at = 0, length = 0;
    for (std::size_t n = b;; at += 2 * length, ++n) {
      length = static_cast<std::int32_t>(11 + 23 * (n % 4));
      if (at + 2 * length > static_cast<std::int32_t>(T)) break;
      const std::int32_t block = n % 4 == 3 ? length : 1 << 2 * (n % 4);
      for (std::int32_t i = 0; i < length; ++i) {
        const std::int32_t first = i / block * block, last = std::min(first + block, length);
        table.at(b, at + i) = {{at, at + last}, {}};
        table.at(b, at + length + i) = {{at, at + first},
                                        {at + length + first, at + length + last}};
      }
    }
  }
  table.finish();
  return table;
}

void check_pattern(Checker& checker, Pattern::Kind kind, const Heading& s) {
  const char* name = kind == Pattern::Kind::causal ? "attention, causal"
                     : kind == Pattern::Kind::full ? "attention, full"
                                                   : "attention, spans";
  const std::string shape = fmt::format("B {} T {}+{} H {}/{} E {}{}", s.B, s.past, s.T, s.H, s.K,
                                        s.E, s.rotated == Heading::Rotated::no ? "" : ", rotated");
  checker.check(name, shape, [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    const auto [B, T, H, K, E, past, rotated] = s;
    const std::size_t N = B * T, keys = past + T, width = 2 * K * E;
    auto queries = r.input(N, (H + 1) * E), kv = r.input(B * keys, width);
    auto own_keys = r.input(B * keys, (K + 2) * E);  // with strides of their own
    auto dout = r.input(N, H * E), out = r.output(N, H * E);
    auto dq = r.output(N, H * E), dkv = r.output(B * keys, width);
    auto lse = r.template output<A>(B * H, T);
    auto delta = r.template workspace<A>(B * H * T);
    const auto q = heads_of(queries, E, B, T, H, E), o = heads_of(out, 0, B, T, H, E);
    const auto k = heads_of(own_keys, E, B, keys, K, E), v = heads_of(kv, K * E, B, keys, K, E);
    const Pattern pattern = kind == Pattern::Kind::spans ? r.pattern(packed_samples(B, T))
                                                         : Pattern{kind, static_cast<int>(past)};
    const double scale = 1 / std::sqrt(static_cast<double>(E));
    HeadRotation<A> rotation;
    if (rotated != Heading::Rotated::no) {
      const Matrix<A> table = r.template output<A>(T + 3, E);
      run(r.context, RotaryTable<A>{.base = 10000, .table = table});
      rotation = {table, {3, {}}};
    }
    if (rotated == Heading::Rotated::named)
      rotation.positions.rows =
          r.integers(r.draw_integers(N, static_cast<std::uint32_t>(T + 3), 0));
    run(r.context,
        AttentionForward<S>{
            .pattern = pattern, .scale = scale, .q = q, .k = k, .v = v, .out = o, .lse = lse});
    run(r.context, AttentionBackward<S>{.pattern = pattern,
                                        .scale = scale,
                                        .q = q,
                                        .k = k,
                                        .v = v,
                                        .out = o,
                                        .dout = heads_of(dout, 0, B, T, H, E),
                                        .lse = lse,
                                        .delta = Matrix<A>(delta.data(), B * H, T),
                                        .dq = heads_of(dq, 0, B, T, H, E),
                                        .dk = heads_of(dkv, 0, B, keys, K, E),
                                        .dv = heads_of(dkv, K * E, B, keys, K, E),
                                        .rotation = rotation});
  });
}

}  // namespace

void check_attention(Checker& checker) {
  check_rotary(checker, 3, 17, 5, 64);
  check_rotary(checker, 2, 33, 2, 128);
  check_rotary(checker, 2, 9, 3, 24);
  for (const auto kind : {Pattern::Kind::causal, Pattern::Kind::full}) {
    check_pattern(checker, kind, {2, 256, 4, 4, 64});
    check_pattern(checker, kind, {3, 131, 6, 2, 64});
    check_pattern(checker, kind, {2, 328, 8, 2, 64});
    check_pattern(checker, kind, {1, 200, 4, 1, 128});
    check_pattern(checker, kind, {2, 45, 3, 3, 20});
    check_pattern(checker, kind, {2, 90, 6, 3, 64, 37});
    check_pattern(checker, kind, {1, 1, 4, 2, 128, 150});
  }
  check_pattern(checker, Pattern::Kind::spans, {3, 512, 4, 4, 64});
  check_pattern(checker, Pattern::Kind::spans, {2, 429, 6, 2, 64});
  check_pattern(checker, Pattern::Kind::spans, {2, 300, 4, 4, 32});
  check_pattern(checker, Pattern::Kind::spans, {2, 333, 4, 1, 128});
  check_pattern(checker, Pattern::Kind::spans, {2, 211, 3, 3, 20});
  for (const auto rotated : {Heading::Rotated::counted, Heading::Rotated::named})
    for (const auto kind : {Pattern::Kind::causal, Pattern::Kind::spans}) {
      check_pattern(checker, kind, {3, 328, 4, 2, 64, 0, rotated});
      check_pattern(checker, kind, {1, 200, 4, 1, 128, 0, rotated});
      check_pattern(checker, kind, {2, 90, 3, 3, 32, 0, rotated});
    }
}

}  // namespace tern::checks
