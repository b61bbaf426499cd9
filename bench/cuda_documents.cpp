// Times the attention of supervised training on one GPU: rows of several conversations with our own
// kernels, compared with plain causal rows with cuDNN and with our own. The shape is Qwen3-4B's.
//
//   cuda_documents [sequences [tokens]]        16 rows of 512 unless given
#include <cstdio>
#include <cstdlib>
#include <string>

#include "measure.hpp"

namespace {

using namespace tern;
using namespace tern::bench;

constexpr std::size_t H = 32, K = 8, E = 128;

/// Conversations of 80 to 320 tokens, one after another in each row.
ops::SpanTable conversations(std::size_t B, std::size_t T) {
  ops::SpanTable table(B, T);
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t at = 0, n = 0; at < T; ++n) {
      const Random4 r =
          philox(3, Stream::test, 0, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(n));
      const std::size_t end = std::min(T, at + 80 + r.word[0] % 241);
      for (std::size_t i = at; i < end; ++i)
        table.at(b, i).context = {static_cast<std::int32_t>(at), static_cast<std::int32_t>(i) + 1};
      at = end;
    }
  table.finish();
  return table;
}

double pairs_of(const ops::SpanTable& table) {
  double pairs = 0;
  for (const ops::KeySpans& s : table.spans()) pairs += s.context.last - s.context.first;
  return pairs;
}

struct Attention {
  const ops::Context& context;
  std::size_t B, T;
  Matrix<bf16> qkv, dqkv, out, dout;
  Matrix<float> lse, delta;
  Matrix<std::int32_t> spans, hulls;

  Attention(Buffers b, const ops::SpanTable& table, std::size_t rows, std::size_t tokens)
      : context(b.context),
        B(rows),
        T(tokens),
        qkv(b.random<bf16>(B * T, (H + 2 * K) * E)),
        dqkv(b.random<bf16>(B * T, (H + 2 * K) * E)),
        out(b.random<bf16>(B * T, H * E)),
        dout(b.random<bf16>(B * T, H * E)),
        lse(b.random<float>(B * H, T)),
        delta(b.random<float>(B * H, T)),
        spans(b.arena.matrix<std::int32_t>("bench", Term::data, table.spans().size(), 4)),
        hulls(b.arena.matrix<std::int32_t>("bench", Term::data, table.hulls().size(), 8)) {}

  Heads<bf16> part(const Matrix<bf16>& of, std::size_t first, std::size_t heads) const {
    return heads_of(of, first * E, B, T, heads, E);
  }
  void print(const std::string& name, const ops::Pattern& pattern, double pairs) const {
    const double scale = 0.0883883, flops = 4.0 * H * E * pairs;
    const double forward = time_of(context, [&] {
      ops::run(context, ops::AttentionForward<bf16>{.pattern = pattern,
                                                    .scale = scale,
                                                    .q = part(qkv, 0, H),
                                                    .k = part(qkv, H, K),
                                                    .v = part(qkv, H + K, K),
                                                    .out = part(out, 0, H),
                                                    .lse = lse});
    });
    const double backward = time_of(context, [&] {
      ops::run(context, ops::AttentionBackward<bf16>{.pattern = pattern,
                                                     .scale = scale,
                                                     .q = part(qkv, 0, H),
                                                     .k = part(qkv, H, K),
                                                     .v = part(qkv, H + K, K),
                                                     .out = part(out, 0, H),
                                                     .dout = part(dout, 0, H),
                                                     .lse = lse,
                                                     .delta = delta,
                                                     .dq = part(dqkv, 0, H),
                                                     .dk = part(dqkv, H, K),
                                                     .dv = part(dqkv, H + K, K)});
    });
    std::printf("%-34s forward %7.3f ms %5.0f TFLOP/s   backward %7.3f ms %5.0f TFLOP/s\n",
                name.c_str(), forward * 1e3, flops / forward * 1e-12, backward * 1e3,
                2.5 * flops / backward * 1e-12);
  }
};

void upload(const void* from, const Matrix<std::int32_t>& to) {
  Kokkos::deep_copy(Vector<std::int32_t>(to.data(), to.size()),
                    Kokkos::View<const std::int32_t*, Kokkos::HostSpace, Unmanaged>(
                        static_cast<const std::int32_t*>(from), to.size()));
}

/// Plain causal rows, stated as spans: our own kernels serve these.
ops::SpanTable whole_rows(std::size_t B, std::size_t T) {
  ops::SpanTable table(B, T);
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t i = 0; i < T; ++i)
      table.at(b, i).context = {0, static_cast<std::int32_t>(i) + 1};
  table.finish();
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const std::size_t B = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16,
                    T = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 512;
  const ops::SpanTable packed = conversations(B, T), whole = whole_rows(B, T);
  const auto make = [](Arena& arena) { return ops::make_context(arena, true, "auto"); };
  Arena measuring;
  const ops::Context nothing = make(measuring);
  Attention(Buffers{measuring, nothing}, packed, B, T);
  Arena arena(measuring.bytes());
  const ops::Context context = make(arena);
  const Attention attention(Buffers{arena, context}, packed, B, T);
  attention.print("causal, what the context chooses", ops::Pattern{}, pairs_of(whole));
  for (const auto& [name, table] : {std::pair("causal, by spans", &whole),
                                    std::pair("conversations of 80 to 320 tokens", &packed)}) {
    upload(table->spans().data(), attention.spans);
    upload(table->hulls().data(), attention.hulls);
    attention.print(name,
                    table->pattern(reinterpret_cast<const ops::KeySpans*>(attention.spans.data()),
                                   reinterpret_cast<const ops::SpanHull*>(attention.hulls.data())),
                    pairs_of(*table));
  }
}
