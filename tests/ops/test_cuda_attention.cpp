// Causal attention backward on Hopper: against the portable operation in double, alike in two runs,
// taken for the shapes that it serves and declined for others.
#include <gtest/gtest.h>

#include <cmath>

#include "checks/detail/run.hpp"
#include "ops/attention.hpp"
#include "ops/cuda/detail/causal_attention.hpp"
#include "ops/cuda/detail/cudnn_attention.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/library.hpp"

namespace tern::ops {
namespace {

using checks::Run;

struct Shape {
  std::size_t B, T, H, K, E;
  Pattern::Kind kind = Pattern::Kind::causal;

  std::string text() const { return fmt::format("B {} T {} H {}/{} E {}", B, T, H, K, E); }
};

const Shape served[] = {{3, 8, 4, 4, 64},    {2, 64, 4, 1, 64},   {2, 72, 16, 1, 64},
                        {3, 200, 8, 2, 64},  {1, 1000, 4, 4, 64}, {2, 1000, 16, 1, 64},
                        {2, 1024, 6, 6, 64}, {1, 1024, 8, 2, 64}};
const Shape declined[] = {{2, 200, 4, 2, 32},
                          {2, 200, 4, 1, 128},
                          {2, 131, 4, 4, 64},
                          {2, 128, 4, 2, 64, Pattern::Kind::full}};

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

/// Runs forward. q, k, v and their gradients lie side by side in rows, as in the model.
template <class S>
AttentionBackward<S> prepare(Run<S>& run, const Shape& s) {
  using A = Accumulate<S>;
  const auto [B, T, H, K, E, kind] = s;
  const std::size_t width = (H + 2 * K) * E;
  const Matrix<S> qkv = run.input(B * T, width), dqkv = run.output(B * T, width);
  const Matrix<S> out = run.output(B * T, H * E), dout = run.input(B * T, H * E);
  const auto part = [&, B = B, T = T, H = H, K = K, E = E](const Matrix<S>& fused, int which) {
    return heads_of(fused, which == 0 ? 0 : (H + (which - 1) * K) * E, B, T, which == 0 ? H : K, E);
  };
  const Matrix<A> lse = run.template output<A>(B * H, T);
  const AttentionForward<S> forward{.pattern = {kind},
                                    .scale = 1 / std::sqrt(static_cast<double>(E)),
                                    .q = part(qkv, 0),
                                    .k = part(qkv, 1),
                                    .v = part(qkv, 2),
                                    .out = heads_of(out, 0, B, T, H, E),
                                    .lse = lse};
  attention_forward<S>(run.context, forward);
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

void check(checks::Checker& checker, const Shape& s) {
  checker.check("attention", s.text(),
                [=]<class S>(Run<S>& run) { attention_backward<S>(run.context, prepare(run, s)); });
}

TEST(CausalAttentionBackward, agrees_with_double) {
  const Accelerated device;
  checks::Checker checker(device.context, checks::Checker::Storage::bf16, 1);
  for (const Shape& s : served) check(checker, s);
  for (const Shape& s : declined) check(checker, s);
  for (const checks::CheckResult& r : checker.results())
    EXPECT_TRUE(r.passed()) << r.shape << ": error " << r.error << ", bar " << r.bar
                            << ", complete " << r.complete << ", repeats " << r.repeats;
}

TEST(CausalAttentionBackward, is_taken_where_it_serves) {
  const Accelerated device;
  const Context& context = device.context;
  for (const Shape& s : served) {
    checks::Run<bf16> chosen(context, 7), direct(context, 7);
    attention_backward<bf16>(context, prepare(chosen, s));
    const bool ran = context.library->causal_attention()->backward(context, prepare(direct, s));
    EXPECT_EQ(ran, cuda::detail::runs_sm_90a()) << s.text();
    if (ran) {
      EXPECT_EQ(chosen.results(), direct.results()) << s.text();
    }
  }
  for (const Shape& s : declined) {
    checks::Run<bf16> run(context, 7);
    EXPECT_FALSE(context.library->causal_attention()->backward(context, prepare(run, s)))
        << s.text();
  }
}

TEST(CausalAttentionBackward, is_not_taken_if_the_deck_demands_another) {
  const auto allowed = [](const char* attention) {
    Arena measuring;
    return make_context(measuring, true, attention).library->causal_attention() != nullptr;
  };
  EXPECT_TRUE(allowed("auto"));
  EXPECT_FALSE(allowed("portable"));
  if (cuda::CudnnAttention::built()) {
    EXPECT_FALSE(allowed("cudnn"));
  }
}

}  // namespace
}  // namespace tern::ops
