// Our attention kernels on Hopper, causal (backward only) and under key spans: against the portable
// operation in double, alike in two runs, taken for the shapes that they serve and declined for
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checks/detail/run.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/cuda/any_sm80/any_sm80.hpp"
#include "ops/attention/cuda/blocks_sm90/blocks_sm90.hpp"
#include "ops/attention/cuda/causal_bwd_sm90/causal_bwd_sm90.hpp"
#include "ops/attention/cuda/implementations.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/core/cuda/library.hpp"

namespace tern::ops {
namespace {

using checks::Run;

enum class Layout { causal, full, blocks, samples, documents, gaps };

struct Shape {
  std::size_t B, T, H, K, E;
  Layout layout = Layout::causal;
  int block = 16;  // of noisy blocks

  std::string text() const {
    return fmt::format("B {} T {} H {}/{} E {} layout {} block {}", B, T, H, K, E,
                       static_cast<int>(layout), block);
  }
};

const Shape causal_served[] = {{3, 8, 4, 4, 64},     {2, 64, 4, 1, 64},   {2, 72, 16, 1, 64},
                               {3, 200, 8, 2, 64},   {1, 1000, 4, 4, 64}, {2, 1000, 16, 1, 64},
                               {2, 1024, 6, 6, 64},  {1, 1024, 8, 2, 64}, {3, 8, 4, 4, 128},
                               {2, 72, 6, 3, 128},   {3, 200, 8, 1, 128}, {1, 328, 2, 2, 128},
                               {2, 1000, 8, 2, 128}, {2, 1024, 6, 6, 128}};
const Shape causal_declined[] = {
    {2, 200, 4, 2, 32}, {2, 131, 4, 4, 64}, {2, 128, 4, 2, 64, Layout::full}};
const Shape served_by_none[] = {{2, 200, 4, 1, 96}};  // of our kernels

const Shape spans_served[] = {
    {3, 4, 2, 1, 64, Layout::documents},     {2, 128, 3, 3, 64, Layout::blocks},
    {2, 1024, 4, 4, 64, Layout::blocks, 16}, {1, 1024, 8, 2, 64, Layout::blocks, 4},
    {2, 1000, 6, 3, 64, Layout::blocks, 37}, {3, 1000, 4, 4, 64, Layout::samples, 16},
    {4, 332, 16, 1, 64, Layout::samples, 5}, {2, 1024, 8, 2, 64, Layout::samples, 33},
    {3, 1024, 4, 2, 64, Layout::documents},  {2, 196, 8, 1, 64, Layout::documents},
    {3, 200, 4, 2, 64, Layout::gaps},        {2, 2052, 6, 2, 64, Layout::gaps}};
const Shape spans_declined[] = {
    {2, 200, 4, 2, 32, Layout::samples}, {2, 200, 4, 1, 128, Layout::samples},
    {2, 131, 4, 4, 64, Layout::samples}, {2, 330, 4, 2, 64, Layout::documents},
    {2, 128, 4, 2, 64, Layout::causal},  {2, 128, 4, 2, 64, Layout::full}};

/// A prefix, n clean tokens and n noisy ones, which see the blocks before them and their own.
void add_sample(SpanTable& table, std::size_t b, int at, int prefix, int n, int block) {
  const int clean = at + prefix, noisy = clean + n;
  const auto spans = [&](int token) -> KeySpans& {
    return table.at(b, static_cast<std::size_t>(token));
  };
  for (int i = 0; i < prefix; ++i) spans(at + i) = {{at, clean}, {}};
  for (int i = 0; i < n; ++i) {
    const int first = i / block * block, last = std::min(first + block, n);
    spans(clean + i) = {{at, clean + last}, {}};
    spans(noisy + i) = {{at, clean + first}, {noisy + first, noisy + last}};
  }
}

SpanTable table_of(const Shape& s) {
  SpanTable table(s.B, s.T);
  const int T = static_cast<int>(s.T);
  for (std::size_t b = 0; b < s.B; ++b) {
    const int own = static_cast<int>(b);
    if (s.layout == Layout::blocks) {
      add_sample(table, b, 0, 0, T / 2, s.block);
    } else if (s.layout == Layout::samples) {  // of odd lengths, then padding
      for (int at = 0, i = own;; ++i) {
        const int prefix = 7 * i % 30, n = 17 + 38 * (i % 4);
        if (at + prefix + 2 * n > T) break;
        add_sample(table, b, at, prefix, n, s.block + i % 3);
        at += prefix + 2 * n;
      }
    } else if (s.layout == Layout::documents) {  // causal within each
      for (int at = 0, i = own; at < T; ++i) {
        const int end = std::min(T, at + 3 + 71 * (i % 6));
        for (int t = at; t < end; ++t) table.at(b, static_cast<std::size_t>(t)) = {{at, t + 1}, {}};
        at = end;
      }
    } else if (b != 1) {  // a sequence, tiles and single queries that see nothing
      for (int t = 0; t < T; ++t)
        if (t / 64 % 3 != 1 && t % 5 != 0)
          table.at(b, static_cast<std::size_t>(t)) = {{t / 2, t / 2 + t % 90}, {T - 1 - t % 70, T}};
    }
  }
  table.finish();
  return table;
}

template <class S>
Pattern pattern_of(Run<S>& run, const Shape& s) {
  if (s.layout == Layout::causal) return {Pattern::Kind::causal};
  return s.layout == Layout::full ? Pattern{Pattern::Kind::full} : run.pattern(table_of(s));
}

struct Accelerated {
  Arena arena;
  Context context;

  static std::size_t bytes() {
    Arena measuring;
    make_context(measuring, true, "auto");
    return measuring.bytes();
  }
  Accelerated() : arena(bytes()), context(make_context(arena, true, "auto")) {}
};

/// Calls run_forward. q, k, v and their gradients lie side by side in rows, as in the model.
template <class S, class Forward>
AttentionBackward<S> prepare(Run<S>& run, const Shape& s, const Forward& run_forward) {
  using A = Accumulate<S>;
  const std::size_t B = s.B, T = s.T, H = s.H, K = s.K, E = s.E;
  const std::size_t width = (H + 2 * K) * E;
  const Matrix<S> qkv = run.input(B * T, width), dqkv = run.output(B * T, width);
  const Matrix<S> out = run.output(B * T, H * E), dout = run.input(B * T, H * E);
  const auto part = [&](const Matrix<S>& fused, int which) {
    return heads_of(fused, which == 0 ? 0 : (H + (which - 1) * K) * E, B, T, which == 0 ? H : K, E);
  };
  const Matrix<A> lse = run.template output<A>(B * H, T);
  const AttentionForward<S> forward{.pattern = pattern_of(run, s),
                                    .scale = 1 / std::sqrt(static_cast<double>(E)),
                                    .q = part(qkv, 0),
                                    .k = part(qkv, 1),
                                    .v = part(qkv, 2),
                                    .out = heads_of(out, 0, B, T, H, E),
                                    .lse = lse};
  run_forward(forward);
  return {.pattern = forward.pattern,
          .scale = forward.scale,
          .q = forward.q,
          .k = forward.k,
          .v = forward.v,
          .out = forward.out,
          .dout = heads_of(dout, 0, B, T, H, E),
          .lse = lse,
          .delta = as_matrix(run.template workspace<A>(B * H * T).data(), B * H, T),
          .dq = part(dqkv, 0),
          .dk = part(dqkv, 1),
          .dv = part(dqkv, 2)};
}

template <class S>
AttentionBackward<S> prepare(Run<S>& run, const Shape& s) {
  return prepare(run, s,
                 [&](const AttentionForward<S>& forward) { ops::run(run.context, forward); });
}

template <std::size_t n>
void check(checks::Checker& checker, const Shape (&shapes)[n]) {
  for (const Shape& s : shapes)
    checker.check("attention", s.text(),
                  [=]<class S>(Run<S>& run) { ops::run(run.context, prepare(run, s)); });
}

void expect_passed(checks::Checker& checker) {
  for (const checks::CheckResult& r : checker.results())
    EXPECT_TRUE(r.passed()) << r.shape << ": error " << r.error << ", bar " << r.bar
                            << ", complete " << r.complete << ", repeats " << r.repeats;
}

class CausalBackwardSm90Kernels : public testing::TestWithParam<checks::Checker::Storage> {};
INSTANTIATE_TEST_SUITE_P(SixteenBits, CausalBackwardSm90Kernels,
                         testing::Values(checks::Checker::Storage::bf16,
                                         checks::Checker::Storage::fp16));

TEST_P(CausalBackwardSm90Kernels, agrees_with_double) {
  const Accelerated device;
  checks::Checker checker(device.context, GetParam(), 1);
  check(checker, causal_served);
  check(checker, causal_declined);
  check(checker, served_by_none);
  expect_passed(checker);
}

TEST(CausalBackwardSm90KernelsChoice, is_taken_where_it_serves) {
  const Accelerated device;
  const Context& context = device.context;
  for (const Shape& s : causal_served) {
    checks::Run<bf16> chosen(context, 7), direct(context, 7);
    run(context, prepare(chosen, s));
    const bool ran = cuda::implementations(context).causal_backward_sm90()->backward(
        context, prepare(direct, s));
    EXPECT_EQ(ran, cuda::detail::runs_sm_90a()) << s.text();
    if (ran) {
      EXPECT_EQ(chosen.results(), direct.results()) << s.text();
    }
  }
  const auto expect_declined = [&](const Shape& s) {
    checks::Run<bf16> run(context, 7);
    EXPECT_FALSE(
        cuda::implementations(context).causal_backward_sm90()->backward(context, prepare(run, s)))
        << s.text();
  };
  for (const Shape& s : causal_declined) expect_declined(s);
  for (const Shape& s : served_by_none) expect_declined(s);
}

class BlocksSm90Kernels : public testing::TestWithParam<checks::Checker::Storage> {};
INSTANTIATE_TEST_SUITE_P(SixteenBits, BlocksSm90Kernels,
                         testing::Values(checks::Checker::Storage::bf16,
                                         checks::Checker::Storage::fp16));

TEST_P(BlocksSm90Kernels, agrees_with_double) {
  const Accelerated device;
  checks::Checker checker(device.context, GetParam(), 2);
  check(checker, spans_served);
  check(checker, spans_declined);
  expect_passed(checker);
}

TEST(BlocksSm90Choice, is_taken_where_it_serves) {
  const Accelerated device;
  const Context& context = device.context;
  cuda::BlocksSm90& spans = *cuda::implementations(context).blocks_sm90();
  for (const Shape& s : spans_served) {
    checks::Run<bf16> chosen(context, 7), direct(context, 7);
    run(context, prepare(chosen, s));
    bool forward_ran = false;
    const AttentionBackward<bf16> backward =
        prepare(direct, s, [&](const AttentionForward<bf16>& forward) {
          forward_ran = spans.forward(context, forward);
        });
    EXPECT_EQ(forward_ran, cuda::detail::runs_sm_90a()) << s.text();
    const bool backward_ran = spans.backward(context, backward);
    EXPECT_EQ(backward_ran, forward_ran) << s.text();
    if (forward_ran && backward_ran) {
      EXPECT_EQ(chosen.results(), direct.results()) << s.text();
    }
  }
  for (const Shape& s : spans_declined) {
    checks::Run<bf16> run(context, 7);
    bool forward_ran = false;
    const AttentionBackward<bf16> backward =
        prepare(run, s, [&](const AttentionForward<bf16>& forward) {
          forward_ran = spans.forward(context, forward);
        });
    EXPECT_FALSE(forward_ran) << s.text();
    EXPECT_FALSE(spans.backward(context, backward)) << s.text();
  }
}

/// The other kernels for all patterns round elsewhere, so equal results would mean that they ran.
TEST(BlocksSm90Choice, is_not_any_sm80) {
  const Accelerated device;
  const Context& context = device.context;
  if (!cuda::detail::runs_sm_90a()) GTEST_SKIP() << "for compute capability 9.0";
  const Shape s{2, 1024, 4, 4, 64, Layout::blocks, 16};
  checks::Run<bf16> chosen(context, 7), other(context, 7);
  run(context, prepare(chosen, s));
  cuda::any_sm80_backward(context, prepare(other, s, [&](const AttentionForward<bf16>& forward) {
                            cuda::any_sm80_forward(context, forward);
                          }));
  const auto ours = chosen.results(), others = other.results();
  ASSERT_EQ(ours.size(), others.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NE(ours[i], others[i]) << "result " << i;
}

/// Drawn inputs have 8 bits, so what TF32 rounds are weights and their gradients.
TEST(AttentionInTf32, agrees_with_double) {
  const Accelerated device;
  Context context = device.context;
  context.tf32 = true;
  checks::Checker checker(context, checks::Checker::Storage::single, 3);
  check(checker, causal_served);
  check(checker, causal_declined);
  check(checker, spans_served);
  check(checker, spans_declined);
  for (const checks::CheckResult& r : checker.results()) {
    EXPECT_TRUE(r.passed()) << r.shape << ": error " << r.error << ", bar " << r.bar;
    EXPECT_GT(r.error, 1e-5) << r.shape << ": portable, in float32";
    RecordProperty(r.shape, fmt::format("{:.2e}", r.error));
  }
}

TEST(AttentionInTf32, is_taken_only_if_the_deck_allows_it) {
  const Accelerated device;
  checks::Checker checker(device.context, checks::Checker::Storage::single, 3);
  check(checker, causal_served);
  for (const checks::CheckResult& r : checker.results()) EXPECT_LT(r.error, 1e-5) << r.shape;
}

TEST(OwnAttention, is_not_taken_if_the_deck_demands_another) {
  const auto allowed = [](const char* attention) {
    Arena measuring;
    const Context context = make_context(measuring, true, attention);
    const cuda::Implementations admitted = cuda::implementations(context);
    const bool causal = admitted.causal_backward_sm90() != nullptr;
    EXPECT_EQ(admitted.blocks_sm90() != nullptr, causal) << attention;
    return causal;
  };
  EXPECT_TRUE(allowed("auto"));
  EXPECT_FALSE(allowed("portable"));
  if (cudnn_built()) {
    EXPECT_FALSE(allowed("cudnn"));
  }
}

}  // namespace
}  // namespace tern::ops
