// The operations of the generation engine: a row's bits do not depend on the other rows, on the
// prefill chunks, or on where its pages lie; and they equal attention's.
#include "ops/ops.hpp"

#include "checks/detail/paged_rows.hpp"
#include "ops/check.hpp"
#include "roundoff.hpp"

namespace tern {
namespace {

using test::Array;
using test::normal_numbers;
using test::Numbers;

ops::Context alike() {
  ops::Context context = test::portable_context();
  context.batch_invariant = true;
  return context;
}

template <class T>
class Products : public testing::Test {};
using Types = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(Products, Types);

/// y (N, O) of rows [first, first + N) of x.
template <class T>
Numbers product(const ops::Context& context, const Array<T>& x, std::size_t inner,
                const Array<T>& w, const Array<T>& bias, std::size_t first, std::size_t rows,
                ops::Write write) {
  const std::size_t O = w.matrix().extent(0);
  const Array<T> y(rows, O, Numbers(rows * O, 0.25L));
  ops::run(context, ops::LinearForward<T>{
                        .x = as_matrix<const T>(x.matrix().data() + first * inner, rows, inner),
                        .w = w.matrix(),
                        .bias = bias.vector(),
                        .y = y.matrix(),
                        .added = write == ops::Write::add ? y.matrix() : Matrix<T>()});
  context.fence("test");
  return y.get();
}

TYPED_TEST(Products, ARowHasTheSameBitsWhateverIsBesideIt) {
  using T = TypeParam;
  for (const std::size_t inner : {1, 15, 33, 96, 300})
    for (const std::size_t O : {1, 5, 48, 107})
      for (const ops::Write write : {ops::Write::overwrite, ops::Write::add}) {
        const std::size_t N = 130;
        const Array<T> x(N, inner, normal_numbers(N * inner, 1));
        const Array<T> w(O, inner, normal_numbers(O * inner, 2)), bias(normal_numbers(O, 3));
        const Numbers whole = product<T>(alike(), x, inner, w, bias, 0, N, write);
        for (const std::size_t rows : {1, 2, 3, 7, 64, 65})
          for (const std::size_t first : {0, 1, 61}) {
            const Numbers part = product<T>(alike(), x, inner, w, bias, first, rows, write);
            const auto at = whole.begin() + static_cast<std::ptrdiff_t>(first * O);
            EXPECT_TRUE(std::equal(part.begin(), part.end(), at))
                << "rows " << first << " + " << rows << ", " << inner << " x " << O;
          }
        const Numbers usual = product<T>(test::portable_context(), x, inner, w, bias, 0, N, write);
        const long double bar = is_half<T> ? 10 * test::roundoff<T>() : 1e-4L;
        for (std::size_t i = 0; i < usual.size(); ++i)
          ASSERT_NEAR(whole[i], usual[i], bar * (1 + std::abs(usual[i])));
      }
}

/// One sequence of 150 tokens, stored and attended in chunks; its pages start at `page` and
/// descend.
template <class T>
Numbers attend_in_chunks(const std::vector<int>& pieces, std::size_t P, std::size_t company) {
  constexpr std::size_t H = 4, K = 2, E = 20, length = 150, width = (H + 2 * K) * E;
  const Array<T> all(length, width, normal_numbers(length * width, 5));
  const std::size_t pages = 2 * ((length + P - 1) / P) + 2;
  const Array<T> keys(pages * K, P * E), values(pages * K, P * E);
  const auto tensor = [&](const Array<T>& a) {
    return Tensor3<T>(a.matrix().data(), pages, K, P * E);
  };
  const ops::PagedCache<T> cache{tensor(keys), tensor(values), P};
  const Array<Accumulate<T>> table(length, E);
  const ops::Context& context = test::portable_context();
  ops::run(context, ops::RotaryTable<Accumulate<T>>{.base = 10000, .table = table.matrix()});
  Numbers result;
  int first = 0;
  for (const int rows : pieces) {
    // Another sequence's rows come first: they must not matter, in pages of their own.
    std::vector<std::pair<int, int>> sequences(company, {3, 1});
    sequences.emplace_back(first, rows);
    checks::CheckedRows host = checks::checked_rows(sequences, static_cast<int>(P));
    for (std::size_t i = 0; i < host.tables.size(); ++i)
      host.tables[i] = i < company ? 0 : static_cast<std::int32_t>(pages - 1 + company - i);
    const auto iP = static_cast<std::int32_t>(P);
    for (std::size_t n = 0; n < host.positions.size(); ++n)
      host.places[n] =
          host.tables[static_cast<std::size_t>(host.table_of[n] + host.positions[n] / iP)] * iP +
          (n < company ? static_cast<std::int32_t>(n) : host.positions[n] % iP);
    checks::Run<T> run(context, 1);
    const std::size_t N = host.positions.size();
    Numbers own(N * width, 0.5L);
    const Numbers source = all.get();
    std::copy_n(source.begin() + first * static_cast<std::ptrdiff_t>(width),
                static_cast<std::size_t>(rows) * width,
                own.begin() + static_cast<std::ptrdiff_t>(company * width));
    const Array<T> qkv(N, width, own), out(N, H * E);
    const ops::PagedRows on_device = checks::device_rows(run, host);
    const Vector<Accumulate<T>> partial =
        run.template workspace<Accumulate<T>>(ops::paged_partials(host.splits.size(), H, E));
    ops::run(context, ops::PagedStore<T>{.rows = on_device,
                                         .qkv = qkv.matrix(),
                                         .heads = H,
                                         .stage = {{}, {}, 0, table.matrix()},
                                         .cache = cache});
    ops::run(context, ops::PagedAttention<T>{.rows = on_device,
                                             .scale = 0.3,
                                             .qkv = qkv.matrix(),
                                             .cache = cache,
                                             .partial = partial,
                                             .out = out.matrix()});
    context.fence("test");
    const Numbers found = out.get();
    result.insert(result.end(), found.begin() + static_cast<std::ptrdiff_t>(company * H * E),
                  found.end());
    first += rows;
  }
  return result;
}

/// The same with attention_forward over the whole sequence.
template <class T>
Numbers attend_at_once() {
  constexpr std::size_t H = 4, K = 2, E = 20, length = 150, width = (H + 2 * K) * E;
  const Array<T> qkv(length, width, normal_numbers(length * width, 5)), out(length, H * E);
  const Array<Accumulate<T>> table(length, E), lse(H, length);
  const ops::Context& context = test::portable_context();
  ops::run(context, ops::RotaryTable<Accumulate<T>>{.base = 10000, .table = table.matrix()});
  const auto part = [&](std::size_t head, std::size_t heads) {
    return heads_of(qkv.matrix(), head * E, 1, length, heads, E);
  };
  ops::run(context, ops::Rotary<T>{.x = part(0, H + K),
                                   .table = table.matrix(),
                                   .positions = {},
                                   .direction = ops::Direction::forward});
  ops::run(context, ops::AttentionForward<T>{.scale = 0.3,
                                             .q = part(0, H),
                                             .k = part(H, K),
                                             .v = part(H + K, K),
                                             .out = heads_of(out.matrix(), 0, 1, length, H, E),
                                             .lse = lse.matrix()});
  context.fence("test");
  return out.get();
}

TYPED_TEST(Products, AttentionDoesNotDependOnPiecesPagesOrCompany) {
  using T = TypeParam;
  const Numbers whole = attend_in_chunks<T>({150}, 16, 0);
  EXPECT_EQ(whole, attend_in_chunks<T>(std::vector<int>(150, 1), 16, 0));
  EXPECT_EQ(whole, attend_in_chunks<T>({64, 1, 5, 70, 10}, 16, 3));
  EXPECT_EQ(whole, attend_in_chunks<T>({33, 117}, 64, 1));
  EXPECT_EQ(whole, attend_in_chunks<T>({149, 1}, 4, 2));
  const Numbers expected = attend_at_once<T>();
  const long double bar = is_half<T> ? 8 * test::roundoff<T>() : 1e-5L;
  ASSERT_EQ(whole.size(), expected.size());
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], expected[i], bar) << i;
}

TEST(SampleRows, DrawsAsSampleDoesWithEachRowsOwnNumbers) {
  constexpr std::size_t B = 40, V = 60;
  const Array<float> logits(B, V, normal_numbers(B * V, 8, 2));
  const ops::Context& context = test::portable_context();
  const ops::Sampling options{0.9, 0.95, 30, 11};
  std::vector<std::int32_t> ids, numbers, requests;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(B); ++b) {
    ids.insert(ids.end(), {b * 17, b % 4 == 3});
    numbers.push_back(b % 5);
    requests.push_back(b * 17);
  }
  checks::Run<float> run(context, 1);
  const Vector<std::int32_t> drawn = run.workspace<std::int32_t>(B);
  const Vector<std::int32_t> once = run.workspace<std::int32_t>(B);
  ops::run(context, ops::SampleRows<float>{.options = options,
                                           .logits = logits.matrix(),
                                           .vocabulary = V - 3,
                                           .ids = run.integers(ids),
                                           .numbers = run.integers(numbers),
                                           .token = drawn});
  std::size_t others = 0;
  for (int number = 0; number < 5; ++number) {
    ops::run(context, ops::Sample<float>{.options = options,
                                         .logits = logits.matrix(),
                                         .vocabulary = V - 3,
                                         .request = run.integers(requests),
                                         .position = number,
                                         .token = once});
    context.fence("test");
    const auto all = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), drawn);
    const auto same = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), once);
    for (std::size_t b = 0; b < B; ++b) {
      EXPECT_LT(all(b), static_cast<std::int32_t>(V - 3));
      if (numbers[b] != number) continue;
      if (b % 4 == 3)
        others += all(b) != same(b);
      else
        EXPECT_EQ(all(b), same(b)) << b;
    }
  }
  EXPECT_GT(others, 3u);  // the upper half of an id counts
}

}  // namespace
}  // namespace tern
