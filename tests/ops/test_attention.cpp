// Attention against its definition in double, for many shapes and patterns; finite differences;
// repetition bit for bit.
#include <gtest/gtest.h>

#include "attention_reference.hpp"
#include "base/error.hpp"
#include "ops/portable/portable.hpp"

namespace tern {
namespace {
using namespace test;
using ops::Pattern;

const Pattern full{Pattern::Kind::full, 0}, causal{Pattern::Kind::causal, 0};
Pattern causal_from(int offset) { return {Pattern::Kind::causal, offset}; }

std::string describe(const AttentionCase& c) {
  return fmt::format("B {} Tq {} Tk {} H {} K {} E {} {} offset {}", c.batch, c.queries, c.keys,
                     c.heads, c.kv_heads, c.size,
                     c.pattern.kind == Pattern::Kind::full ? "full" : "causal",
                     c.pattern.query_offset);
}

/// One case on the device: inputs, results.
template <class T>
struct Run {
  using A = Accumulate<T>;
  explicit Run(const AttentionCase& shape)
      : c(shape),
        scale(1 / std::sqrt(static_cast<double>(c.size))),
        q(c.batch, c.queries, c.heads, c.size, 0, 2 * c.size),
        k(c.batch, c.keys, c.kv_heads, c.size, 3, 2),
        v(c.batch, c.keys, c.kv_heads, c.size, c.size, 0),
        out(c.batch, c.queries, c.heads, c.size),
        dout(c.batch, c.queries, c.heads, c.size),
        dq(c.batch, c.queries, c.heads, c.size, 1, 1),
        dk(c.batch, c.keys, c.kv_heads, c.size, 3, 2),
        dv(c.batch, c.keys, c.kv_heads, c.size),
        lse(c.batch * c.heads, c.queries),
        delta(c.batch * c.heads, c.queries) {
    q.fill(1), k.fill(2), v.fill(3), dout.fill(4);
    out.upload(), dq.upload(), dk.upload(), dv.upload();
  }
  void forward() {
    ops::portable::attention_forward<T>(context, c.pattern, scale, q.view(), k.view(), v.view(),
                                        out.view(), lse.view());
    context.fence("test");
    out.download();
  }
  void backward() {
    ops::portable::attention_backward<T>(context, c.pattern, scale, q.view(), k.view(), v.view(),
                                         out.view(), dout.view(), lse.view(), delta.view(),
                                         dq.view(), dk.view(), dv.view());
    context.fence("test");
    dq.download(), dk.download(), dv.download();
  }
  DenseAttention expected() const {
    return dense_attention(c, scale, q.host, k.host, v.host, dout.host);
  }
  AttentionCase c;
  double scale;
  Tensor<T> q, k, v, out, dout, dq, dk, dv;
  Statistics<A> lse, delta;
  ops::Context context;
};

/// E of every residue, tiles that fill and tiles that do not, grouped queries, generation, queries
/// that see nothing (negative offset).
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> list;
  for (int size : {1, 2, 3, 7, 8, 16, 17, 32, 64, 80, 96, 128, 256})
    for (const Pattern& pattern : {full, causal}) list.push_back({2, 37, 37, 2, 1, size, pattern});
  for (int tokens : {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200})
    for (const Pattern& pattern : {full, causal})
      list.push_back({1, tokens, tokens, 2, 2, 24, pattern});
  for (int kv_heads : {1, 2, 3, 6}) list.push_back({2, 70, 70, 6, kv_heads, 16, causal});
  for (int keys : {1, 5, 64, 65, 300})
    list.push_back({2, 1, keys, 4, 2, 64, causal_from(keys - 1)});
  list.push_back({2, 1, 129, 4, 2, 33, full});
  list.push_back({1, 7, 100, 2, 1, 16, causal_from(93)});
  list.push_back({1, 90, 140, 2, 1, 16, causal_from(50)});
  list.push_back({1, 140, 90, 2, 1, 16, causal});
  list.push_back({1, 140, 90, 2, 1, 16, full});
  list.push_back({2, 100, 100, 2, 1, 16, causal_from(-70)});
  list.push_back({1, 3, 100, 2, 1, 16, causal_from(-3)});
  return list;
}

template <class T>
void expect_equal_to_definition(double tolerance) {
  for (const AttentionCase& c : cases()) {
    SCOPED_TRACE(describe(c));
    Run<T> run(c);
    run.forward();
    run.backward();
    const DenseAttention expected = run.expected();
    EXPECT_LT(relative_error(run.out.host, expected.out), tolerance);
    EXPECT_LT(relative_error(run.lse.download(), expected.lse), tolerance);
    EXPECT_LT(relative_error(run.dq.host, expected.dq), tolerance);
    EXPECT_LT(relative_error(run.dk.host, expected.dk), tolerance);
    EXPECT_LT(relative_error(run.dv.host, expected.dv), tolerance);
    EXPECT_TRUE(run.out.surroundings_untouched() && run.dq.surroundings_untouched() &&
                run.dk.surroundings_untouched());
  }
}

TEST(Attention, EqualsDefinitionInFloat) { expect_equal_to_definition<float>(2e-6); }
TEST(Attention, EqualsDefinitionInDouble) { expect_equal_to_definition<double>(1e-13); }

}  // namespace
}  // namespace tern
