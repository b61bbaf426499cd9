#include "ops/checks.hpp"

#include <cstring>

#include "base/error.hpp"
#include "ops/detail/check_experts.hpp"
#include "ops/detail/check_products.hpp"
#include "ops/detail/check_run.hpp"
#include "ops/detail/check_serving.hpp"

namespace tern::ops {
namespace {

using detail::check_batched;
using detail::check_column_sums;
using detail::check_experts;
using detail::check_few_rows;
using detail::check_fp8_linear;
using detail::check_linear;
using detail::check_serving;
using detail::Checker;
using detail::Run;

void check_norm(Checker& checker, Norm norm, std::size_t N, std::size_t D) {
  const bool layer = norm == Norm::layernorm;
  const char* name = layer ? "layernorm" : "rmsnorm";
  const std::string shape = fmt::format("N {} D {}", N, D);
  for (const Write write : {Write::overwrite, Write::add})
    checker.check(name, shape + (write == Write::add ? " added" : ""), [=]<class T>(Run<T>& r) {
      using A = Accumulate<T>;
      auto x = r.input(N, D, 2), dy = r.input(N, D);
      auto gain = r.input(D);
      Vector<T> bias;
      Vector<A> mean, dbias;
      if (layer) bias = r.input(D), mean = r.template output<A>(N), dbias = r.template inout<A>(D);
      auto rstd = r.template output<A>(N);
      auto y = r.output(N, D), dx = write == Write::add ? r.inout(N, D) : r.output(N, D);
      auto dgain = r.template inout<A>(D);
      norm_forward<T>(r.context, norm, x, gain, bias, 1e-5, y, mean, rstd);
      norm_backward<T>(r.context, norm, dy, x, gain, mean, rstd, dx, write, dgain, dbias,
                       r.template workspace<A>(norm_partials(D)));
    });
}

void check_head_norm(Checker& checker, std::size_t B, std::size_t T, std::size_t H, std::size_t E) {
  const std::string shape = fmt::format("B {} T {} H {} E {}", B, T, H, E);
  checker.check("head_norm", shape, [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    auto fused = r.inout(B * T, 3 * H * E), gradient = r.inout(B * T, 3 * H * E);
    auto gain = r.input(E);
    auto saved = r.output(B * T, H * E);
    auto rstd = r.template output<A>(B * T * H);
    head_norm_forward<S>(r.context, heads_of<S>(fused, H * E, B, T, H, E), gain, 1e-5, saved, rstd);
    head_norm_backward<S>(r.context, heads_of<S>(gradient, 0, B, T, H, E), saved, gain, rstd,
                          r.template inout<A>(E), r.template workspace<A>(norm_partials(E)));
  });
}

void check_rotary(Checker& checker, std::size_t B, std::size_t T, std::size_t H, std::size_t E) {
  checker.check("rotary", fmt::format("B {} T {} H {} E {}", B, T, H, E), [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    auto fused = r.inout(B * T, 2 * H * E);
    auto angles = r.template workspace<A>((T + 3) * E);
    const Matrix<A> table(angles.data(), T + 3, E);
    rotary_table<A>(r.context, 10000, table);
    rotary<S>(r.context, heads_of(fused, 0, B, T, H, E), table, {3}, Direction::forward);
    rotary<S>(r.context, heads_of(fused, H * E, B, T, H, E), table, {0}, Direction::backward);
  });
}

struct Heading {
  std::size_t B, T, H, K, E;
  std::size_t past = 0;  // keys before the first query's own
};

/// Rows of samples, each clean and noisy, one after another; noisy blocks of 1, 4, 16 positions or
/// the whole see the clean blocks before them and themselves. The rest of a row is padding.
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

/// The table's pattern over copies in device memory.
template <class S>
Pattern upload(Run<S>& r, const SpanTable& table) {
  const auto copy = [&](const auto& array) {
    using Item = typename std::decay_t<decltype(array)>::value_type;
    std::vector<std::int32_t> numbers(array.size() * sizeof(Item) / sizeof(std::int32_t));
    std::memcpy(numbers.data(), array.data(), array.size() * sizeof(Item));
    return reinterpret_cast<const Item*>(r.integers(numbers).data());
  };
  return table.pattern(copy(table.spans()), copy(table.hulls()));
}

void check_attention(Checker& checker, Pattern::Kind kind, const Heading& s) {
  const char* name = kind == Pattern::Kind::causal ? "attention, causal"
                     : kind == Pattern::Kind::full ? "attention, full"
                                                   : "attention, spans";
  const std::string shape =
      fmt::format("B {} T {}+{} H {}/{} E {}", s.B, s.past, s.T, s.H, s.K, s.E);
  checker.check(name, shape, [=]<class S>(Run<S>& r) {
    using A = Accumulate<S>;
    const auto [B, T, H, K, E, past] = s;
    const std::size_t N = B * T, keys = past + T, width = 2 * K * E;
    auto queries = r.input(N, (H + 1) * E), kv = r.input(B * keys, width);
    auto dout = r.input(N, H * E), out = r.output(N, H * E);
    auto dq = r.output(N, H * E), dkv = r.output(B * keys, width);
    auto lse = r.template output<A>(B * H, T);
    auto delta = r.template workspace<A>(B * H * T);
    const auto q = heads_of(queries, E, B, T, H, E), o = heads_of(out, 0, B, T, H, E);
    const auto k = heads_of(kv, 0, B, keys, K, E), v = heads_of(kv, K * E, B, keys, K, E);
    const Pattern pattern = kind == Pattern::Kind::spans ? upload(r, packed_samples(B, T))
                                                         : Pattern{kind, static_cast<int>(past)};
    const double scale = 1 / std::sqrt(static_cast<double>(E));
    attention_forward<S>(r.context, pattern, scale, q, k, v, o, lse);
    attention_backward<S>(r.context, pattern, scale, q, k, v, o, heads_of(dout, 0, B, T, H, E), lse,
                          Matrix<A>(delta.data(), B * H, T), heads_of(dq, 0, B, T, H, E),
                          heads_of(dkv, 0, B, keys, K, E), heads_of(dkv, K * E, B, keys, K, E));
  });
}

void check_activation(Checker& checker, Activation kind, std::size_t N, std::size_t F) {
  const char* name = kind == Activation::swiglu ? "swiglu"
                     : kind == Activation::gelu ? "gelu"
                                                : "relu2";
  checker.check(name, fmt::format("N {} F {}", N, F), [=]<class T>(Run<T>& r) {
    const std::size_t width = kind == Activation::swiglu ? 2 * F : F;
    auto x = r.input(N, width, 2), dy = r.input(N, F);
    activation_forward<T>(r.context, kind, x, r.output(N, F));
    activation_backward<T>(r.context, kind, x, dy, r.output(N, width));
    auto in_place = r.inout(N, width, 2);
    activation_backward<T>(r.context, kind, in_place, dy, in_place);
  });
}

void check_elementwise(Checker& checker, std::size_t N, std::size_t D) {
  const std::string shape = fmt::format("N {} D {}", N, D);
  checker.check("add", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D);
    add<T>(r.context, x, r.inout(N, D));
  });
  // Terms of all rows, of one for all, and none.
  checker.check("sum", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D), y = r.input(N, D), z = r.input(N, D);
    auto row = r.input(1, D);
    sum<T>(r.context, x, y, z, r.output(N, D));
    sum<T>(r.context, x, row, z, r.output(N, D));
    sum<T>(r.context, row, {}, y, r.output(N, D));
    sum<T>(r.context, {}, {}, row, r.output(N, D));
  });
  checker.check("convert", shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    auto wide = r.template input<A>(N * D);
    auto narrow = r.input(N * D);
    convert<A, T>(r.context, wide, r.output(N * D));
    convert<T, A>(r.context, narrow, r.template output<A>(N * D));
  });
}

void check_embedding(Checker& checker, std::size_t B, std::size_t T, std::size_t V, std::size_t D) {
  for (const bool positions : {false, true})
    checker.check(positions ? "embedding, positions" : "embedding",
                  fmt::format("B {} T {} V {} D {}", B, T, V, D), [=]<class S>(Run<S>& r) {
                    using A = Accumulate<S>;
                    const auto drawn = r.draw_integers(B * T, static_cast<std::uint32_t>(V), 0);
                    const auto tokens = r.integers(drawn);
                    const auto order = r.integers(detail::sorted_rows(drawn));
                    auto table = r.input(V, D), dx = r.input(B * T, D);
                    auto dtable = r.template inout<A>(V, D);
                    Matrix<S> learned;
                    Matrix<A> dlearned;
                    if (positions) learned = r.input(T, D), dlearned = r.template inout<A>(T, D);
                    embedding_forward<S>(r.context, tokens, table, learned, T, 0,
                                         r.output(B * T, D));
                    embedding_backward<S>(r.context, tokens, order, dx, T, dtable, dlearned);
                  });
}

void check_head_loss(Checker& checker, std::size_t N, std::size_t D, std::size_t V,
                     std::size_t chunk, const HeadOptions& options) {
  const std::string shape = fmt::format("N {} D {} V {}/{}", N, D, options.vocabulary, V);
  const char* name = options.cap > 0 ? "head_loss, capped" : "head_loss";
  checker.check(name, shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const auto last = static_cast<std::uint32_t>(options.vocabulary ? options.vocabulary : V);
    const auto targets = r.integers(r.draw_integers(N, last, 5));
    auto x = r.input(N, D), w = r.input(V, D, 2 / std::sqrt(static_cast<double>(D)));
    auto weights = r.template input<A>(N);
    auto logits = r.template workspace<T>(chunk * V);
    const Matrix<T> space(logits.data(), chunk, V);
    head_loss_forward<T>(r.context, options, x, w, targets, space, r.template output<A>(N));
    auto losses = r.template output<A>(N);
    auto dx = r.output(N, D);
    head_loss_backward<T>(r.context, options, x, w, targets, weights, space, losses, dx,
                          r.template inout<A>(V, D));
  });
}

void check_adamw(Checker& checker, std::size_t n, double scale) {
  checker.check("adamw", fmt::format("n {} scale {}", n, scale), [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    auto master = r.template inout<A>(n), m = r.template inout<A>(n, 0.1);
    auto v = r.template inout<A>(n, 0.0);
    auto gradient = r.template input<A>(n);
    auto gradient_scale = r.template inout<A>(1, 0.0);
    Kokkos::deep_copy(r.context.space, gradient_scale, static_cast<A>(scale));
    Kokkos::deep_copy(r.context.space, v, static_cast<A>(0.01));
    auto copy = scale > 0 ? r.output(n) : r.inout(n);
    adamw_update<T>(r.context, {1e-3, 0.9, 0.95, 1e-8, 0.1, 3}, master, gradient, gradient_scale, m,
                    v, copy);
  });
}

void check_all(Checker& checker, bool fp8) {
  check_linear(checker, 37, 24, 40);
  check_linear(checker, 129, 65, 33);
  check_linear(checker, 512, 1024, 688);
  for (const std::size_t N : {1, 16, 64, 65, 128}) check_few_rows(checker, N, 1288, 328);
  check_few_rows(checker, 7, 40, 2056);
  check_few_rows(checker, 64, 72, 17000);  // more columns than a block a multiprocessor makes
  check_few_rows(checker, 100, 200, 20008);
  check_few_rows(checker, 3, 72, 30000);
  if (fp8) {
    check_fp8_linear(checker, 48, 16, 80);
    check_fp8_linear(checker, 37, 24, 40);  // no multiples of 16: products in bf16
    check_fp8_linear(checker, 400, 144, 272);
    check_fp8_linear(checker, 512, 1024, 688);
  }
  check_column_sums(checker, 1000, 5000);
  check_column_sums(checker, 131, 37);
  check_batched(checker, 1, 64, 256);
  check_batched(checker, 5, 128, 72);
  check_batched(checker, 3, 17, 35);
  for (const Norm norm : {Norm::rmsnorm, Norm::layernorm})
    for (const std::size_t D : {24, 33, 256, 1000, 1024, 2560, 5120})
      check_norm(checker, norm, D == 1024 ? 2501 : 67, D);
  check_head_norm(checker, 3, 17, 5, 64);
  check_head_norm(checker, 2, 133, 3, 128);
  check_head_norm(checker, 1, 9, 2, 24);
  check_rotary(checker, 3, 17, 5, 64);
  check_rotary(checker, 2, 33, 2, 128);
  check_rotary(checker, 2, 9, 3, 24);
  for (const auto kind : {Pattern::Kind::causal, Pattern::Kind::full}) {
    check_attention(checker, kind, {2, 256, 4, 4, 64});
    check_attention(checker, kind, {3, 131, 6, 2, 64});
    check_attention(checker, kind, {1, 200, 4, 1, 128});
    check_attention(checker, kind, {2, 45, 3, 3, 20});
    check_attention(checker, kind, {2, 90, 6, 3, 64, 37});
    check_attention(checker, kind, {1, 1, 4, 2, 128, 150});
  }
  check_attention(checker, Pattern::Kind::spans, {3, 512, 4, 4, 64});
  check_attention(checker, Pattern::Kind::spans, {2, 429, 6, 2, 64});
  check_attention(checker, Pattern::Kind::spans, {2, 300, 4, 4, 32});
  check_attention(checker, Pattern::Kind::spans, {2, 333, 4, 1, 128});
  check_attention(checker, Pattern::Kind::spans, {2, 211, 3, 3, 20});
  for (const Activation kind : {Activation::swiglu, Activation::gelu, Activation::relu2}) {
    check_activation(checker, kind, 51, 344);
    check_activation(checker, kind, 300, 2752);
    check_activation(checker, kind, 13, 37);
  }
  check_elementwise(checker, 61, 1032);
  check_elementwise(checker, 13, 37);
  check_embedding(checker, 4, 125, 300, 136);
  check_embedding(checker, 3, 50, 40, 21);
  check_head_loss(checker, 150, 136, 1008, 64, {0, 1003});
  check_head_loss(checker, 70, 64, 5000, 128, {1e-4, 0});
  check_head_loss(checker, 40, 33, 131, 16, {0, 0});
  check_head_loss(checker, 150, 136, 1008, 64, {0, 1003, 15});
  check_head_loss(checker, 70, 64, 5000, 128, {1e-4, 0, 2});
  check_head_loss(checker, 40, 33, 131, 16, {0, 0, 3});
  check_adamw(checker, 100003, 0.5);
  check_adamw(checker, 1024, 0.0);
  check_serving(checker);
  check_experts(checker);
}

}  // namespace

template <class T>
std::vector<CheckResult> check_operations(const Context& context, std::uint64_t seed) {
  using Storage = Checker::Storage;
  Checker checker(context, std::is_same_v<T, bf16> ? Storage::bf16 : Storage::single, seed);
  check_all(checker, fp8_available(context));
  return checker.results();
}

template std::vector<CheckResult> check_operations<bf16>(const Context&, std::uint64_t);
template std::vector<CheckResult> check_operations<float>(const Context&, std::uint64_t);

}  // namespace tern::ops
