// Keys and values in E4M3: what is stored are the nearest numbers, found here among all codes, and
// attention over them is attention over these numbers.
#include "base/fp8.hpp"
#include "checks/detail/paged_rows.hpp"
#include "ops/check.hpp"
#include "ops/ops.hpp"
#include "roundoff.hpp"

namespace tern {
namespace {

using test::Array;
using test::native_context;
using test::normal_numbers;
using test::Numbers;
using test::on_host;

constexpr std::size_t few_heads = 4, P = 16, N = 69;
constexpr std::size_t width_of(std::size_t E, std::size_t H = few_heads) { return 2 * H * E; }

/// The nearest of E4M3's numbers times 1 / scale, the even code of two at the same distance.
long double nearest(long double x, long double scale) {
  const long double wanted = std::abs(x) * scale;
  long double best = 0;
  for (unsigned code = 0; code < 127; ++code) {
    const long double number = decode<E4M3>(static_cast<std::uint8_t>(code));
    const long double gain = std::abs(wanted - best) - std::abs(wanted - number);
    if (gain > 0 || (gain == 0 && code % 2 == 0)) best = number;
  }
  return std::copysign(best / scale, x);
}

/// Nearest numbers of a head, with the largest power of two that keeps it within 448.
template <class T>
void round_head(long double* numbers, std::size_t E) {
  long double most = 0, scale = std::is_same_v<T, fp16> ? 0x1p15L : 0x1p60L;
  for (std::size_t e = 0; e < E; ++e) most = std::max(most, std::abs(numbers[e]));
  while (most * scale > 448) scale /= 2;
  for (std::size_t e = 0; e < E; ++e) numbers[e] = nearest(numbers[e], scale);
}

/// First positions and rows of sequences, N rows together.
using Pieces = std::vector<std::pair<int, int>>;
const Pieces mixed{{0, 1}, {300, 1}, {0, 60}, {0, 7}};

/// N rows of sequences, in a cache of T and in one of codes; two query heads per key head.
template <class T, std::size_t H = few_heads>
struct Caches {
  static constexpr std::size_t K = H / 2;
  Caches(const ops::Context& context, std::size_t head_size, const Numbers& rows,
         const Pieces& pieces = mixed)
      : E(head_size),
        host(checks::checked_rows(pieces, P)),
        run(context, 1),
        on_device(checks::device_rows(run, host)),
        qkv(N, width_of(E, H), rows),
        keys(host.pages * K, P * E, Numbers(host.pages * K * P * E, 0)),
        values(host.pages * K, P * E, Numbers(host.pages * K * P * E, 0)) {
    const auto pages = [&](const Array<T>& a) {
      return Tensor3<T>(a.matrix().data(), host.pages, K, P * E);
    };
    const auto codes = [&] {
      const std::size_t places = host.pages * K * P;
      const auto bytes = run.template workspace<std::uint8_t>(places * E);
      const auto scales = run.template workspace<float>(places);
      Kokkos::deep_copy(bytes, 0);
      Kokkos::deep_copy(scales, 0.0f);
      return ops::CodedPages{Tensor3<std::uint8_t>(bytes.data(), host.pages, K, P * E),
                             Tensor3<float>(scales.data(), host.pages, K, P)};
    };
    plain = {pages(keys), pages(values), P};
    coded = {{}, {}, P, codes(), codes()};
    for (const auto& cache : {plain, coded})
      ops::run(run.context, ops::PagedStore<T>{.rows = on_device,
                                               .qkv = qkv.matrix(),
                                               .heads = H,
                                               .stage = {{}, {}, 0, {}},
                                               .cache = cache});
  }
  Numbers numbers(const ops::CodedPages& pages) const {
    const Array<T> to(host.pages * K * P, E);
    ops::run(run.context, ops::PagedNumbers<T>{.pages = pages, .to = to.matrix()});
    run.context.fence("test");
    return to.get();
  }
  void attend(const ops::PagedCache<T>& cache, Matrix<T> out, const ops::Fp8Rows& to) {
    const auto partial =
        run.template workspace<Accumulate<T>>(ops::paged_partials(host.splits.size(), H, E));
    ops::run(run.context, ops::PagedAttention<T>{.rows = on_device,
                                                 .scale = 0.3,
                                                 .qkv = qkv.matrix(),
                                                 .cache = cache,
                                                 .partial = partial,
                                                 .out = out,
                                                 .coded = to});
    run.context.fence("test");
  }
  Numbers attend(const ops::PagedCache<T>& cache) {
    const Array<T> out(N, H * E);
    attend(cache, out.matrix(), {});
    return out.get();
  }

  std::size_t E;
  checks::CheckedRows host;
  checks::Run<T> run;
  ops::PagedRows on_device;
  Array<T> qkv, keys, values;
  ops::PagedCache<T> plain, coded;
};

/// Rows of very different magnitudes, some of them zero.
Numbers rows_of_many_sizes(std::size_t E) {
  Numbers rows = normal_numbers(N * width_of(E), 7);
  const long double sizes[] = {1, 1e-4L, 300, 0, 3e-7L};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= sizes[i / E % 5];
  return rows;
}

template <class T>
class CacheOfCodes : public testing::Test {};
using Types = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(CacheOfCodes, Types, );

template <class T>
void expect_nearest(const ops::Context& context, std::size_t E) {
  Caches<T> caches(context, E, rows_of_many_sizes(E));
  for (const bool values : {false, true}) {
    Numbers expected = (values ? caches.values : caches.keys).get();
    for (std::size_t at = 0; at < expected.size(); at += E) round_head<T>(&expected[at], E);
    const Numbers found =
        caches.numbers(values ? caches.coded.coded_values : caches.coded.coded_keys);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], expected[i]) << i;
  }
}

TYPED_TEST(CacheOfCodes, HoldsTheNearestNumbers) {
  expect_nearest<TypeParam>(test::portable_context(), 20);
  for (const std::size_t E : {32, 64, 128}) expect_nearest<TypeParam>(native_context(), E);
}

TYPED_TEST(CacheOfCodes, IsAttendedAsItsNumbers) {
  constexpr std::size_t E = 20;
  Caches<TypeParam> caches(test::portable_context(), E, normal_numbers(N * width_of(E), 7));
  const Numbers loaded = caches.attend(caches.plain), found = caches.attend(caches.coded);
  caches.keys.set(caches.numbers(caches.coded.coded_keys));
  caches.values.set(caches.numbers(caches.coded.coded_values));
  const Numbers expected = caches.attend(caches.plain);
  long double rounding = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-5L) << i;
    rounding = std::max(rounding, std::abs(found[i] - loaded[i]));
  }
  EXPECT_GT(rounding, 1e-3L);
}

template <class T>
void expect_not_hidden(const ops::Context& context, std::size_t E) {
  Numbers rows = normal_numbers(N * width_of(E), 7);
  const std::size_t first = 2, bad = first + 50, end = first + 60;  // of the sequence of 60
  rows[bad * width_of(E) + (few_heads + few_heads / 2) * E + 3] =
      std::numeric_limits<long double>::infinity();
  Caches<T> caches(context, E, rows);
  const Numbers found = caches.attend(caches.coded);
  for (std::size_t row = 0; row < N; ++row) {
    if (context.library && row >= first && row < bad) continue;  // may be in its tile
    EXPECT_EQ(std::isfinite(found[row * few_heads * E]), row < bad || row >= end) << row;
  }
}

/// A number that is not finite is not hidden, and spoils nothing but the rows that attend to it.
TYPED_TEST(CacheOfCodes, KeepsWhatIsNotFinite) {
  expect_not_hidden<TypeParam>(test::portable_context(), 64);
  for (const std::size_t E : {32, 64, 128}) expect_not_hidden<TypeParam>(native_context(), E);
}

/// The result and its codes, as when it is rounded by an operation of its own.
template <class T, std::size_t H>
void expect_rounded(const ops::Context& context, std::size_t E, const Pieces& pieces) {
  Caches<T, H> caches(context, E, normal_numbers(N * width_of(E, H), 7), pieces);
  const auto codes = [&] {
    ops::Fp8Rows to;
    const std::size_t width = ops::code_width(H * E);
    to.codes = Matrix<std::uint8_t>(caches.run.template workspace<std::uint8_t>(N * width).data(),
                                    N, width);
    to.undo = caches.run.template workspace<float>(N);
    return to;
  };
  const ops::Fp8Rows at_once = codes(), apart = codes();
  const Array<T> found(N, H * E), expected(N, H * E);
  caches.attend(caches.coded, found.matrix(), at_once);
  caches.attend(caches.coded, expected.matrix(), {});
  ops::run(caches.run.context, ops::Fp8RoundRows<T>{.x = expected.matrix(), .to = apart});
  context.fence("test");
  EXPECT_EQ(found.get(), expected.get());
  EXPECT_EQ(on_host(at_once.codes), on_host(apart.codes));
  EXPECT_EQ(on_host(at_once.undo), on_host(apart.undo));
}

TYPED_TEST(CacheOfCodes, ResultIsRoundedToCodes) {
  Pieces singles;
  for (int n = 0; n < static_cast<int>(N); ++n) singles.emplace_back(n < 4 ? 290 * n : n, 1);
  for (const Pieces& pieces : {singles, mixed}) {
    expect_rounded<TypeParam, few_heads>(test::portable_context(), 20, pieces);
    for (const std::size_t E : {32, 64, 128})
      expect_rounded<TypeParam, few_heads>(native_context(), E, pieces);
    expect_rounded<TypeParam, 68>(native_context(), 64, pieces);   // more heads than warps
    expect_rounded<TypeParam, 68>(native_context(), 128, pieces);  // more than a block rounds
  }
}

}  // namespace
}  // namespace tern
