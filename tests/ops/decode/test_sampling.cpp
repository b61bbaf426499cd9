// Sampling compared with an implementation that sorts, token by token; with Transformers' token
// sets; the distribution of many draws; rows without valid logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"
#include "golden/golden.hpp"
#include "ops/ops.hpp"

namespace tern {
namespace {
using ops::Sampling;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Logits (rows, columns) on the device, of which the first `vocabulary` columns count.
template <class T>
class Sampler {
 public:
  Sampler(std::size_t rows, std::size_t columns, const std::vector<double>& values)
      : logits_("logits", rows * columns),
        request_("request", rows),
        token_("token", rows),
        rows_(rows),
        columns_(columns) {
    auto mirror = Kokkos::create_mirror_view(logits_);
    for (std::size_t i = 0; i < values.size(); ++i) mirror(i) = static_cast<T>(values[i]);
    Kokkos::deep_copy(logits_, mirror);
    for (std::size_t i = 0; i < values.size(); ++i)
      rounded.push_back(static_cast<double>(mirror(i)));
    std::vector<int> numbers(rows);
    std::iota(numbers.begin(), numbers.end(), 0);
    set_requests(numbers);
  }
  void set_requests(const std::vector<int>& requests) {
    auto mirror = Kokkos::create_mirror_view(request_);
    std::copy(requests.begin(), requests.end(), mirror.data());
    Kokkos::deep_copy(request_, mirror);
  }
  std::vector<int> draw(const Sampling& options, std::size_t vocabulary, int position = 0) const {
    ops::run(ops::Context{},
             ops::Sample<T>{.options = options,
                            .logits = Matrix<const T>(logits_.data(), rows_, columns_),
                            .vocabulary = vocabulary,
                            .request = Vector<const std::int32_t>(request_.data(), rows_),
                            .position = position,
                            .token = Vector<std::int32_t>(token_.data(), rows_)});
    Kokkos::fence();
    auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), token_);
    return {mirror.data(), mirror.data() + rows_};
  }
  std::vector<double> rounded;

 private:
  Kokkos::View<T*, DeviceMemory> logits_;
  Kokkos::View<std::int32_t*, DeviceMemory> request_, token_;
  std::size_t rows_, columns_;
};

std::vector<double> random_logits(std::size_t n, std::uint32_t seed, double deviation) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) {
    const Random4 r = philox(seed, Stream::test, 0, 1, static_cast<std::uint32_t>(i));
    values.push_back(deviation * normal2(r.word[0], r.word[1]).first);
  }
  return values;
}

/// Weights (0: not kept) of one row's tokens, by sorting.
std::vector<std::uint64_t> kept_weights(const Sampling& options,
                                        const std::vector<double>& logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return logits[a] > logits[b]; });
  const std::size_t k =
      options.top_k > 0 ? std::min<std::size_t>(options.top_k, order.size()) : order.size();
  std::vector<std::uint64_t> weights(logits.size(), 0);
  std::uint64_t total = 0, sum = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const double x = (logits[order[i]] - logits[order[0]]) / options.temperature;
    weights[order[i]] = static_cast<std::uint64_t>(std::exp(x) * 0x1p40 + 0.5);
    total += weights[order[i]];
  }
  if (options.top_p < 1) {
    const double reach = std::ceil(options.top_p * static_cast<double>(total));
    for (std::size_t i = 0; i < k; ++i) {
      if (i > 0 && static_cast<double>(sum) >= reach) weights[order[i]] = 0;
      sum += weights[order[i]];
    }
  }
  return weights;
}

int straightforward_draw(const Sampling& options, const std::vector<double>& logits, int request,
                         int position) {
  const auto weights = kept_weights(options, logits);
  const auto total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  const Random4 r = philox(options.seed, Stream::sampling, 0, static_cast<std::uint32_t>(request),
                           static_cast<std::uint32_t>(position));
  const std::uint64_t bits = (std::uint64_t{r.word[0]} << 32 | r.word[1]) >> 11;
  const auto drawn =
      static_cast<std::uint64_t>(static_cast<double>(bits) * 0x1p-53 * static_cast<double>(total));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if ((sum += weights[i]) > drawn) return static_cast<int>(i);
  return -2;
}

template <class T>
class SamplingTest : public testing::Test {};
using StorageTypes = testing::Types<float, double, bf16, fp16>;
TYPED_TEST_SUITE(SamplingTest, StorageTypes);

/// bf16 logits hold many equal numbers, so ties at the limits are among these.
TYPED_TEST(SamplingTest, EqualsSortingTokenByToken) {
  const std::size_t rows = 40, columns = 611;
  const Sampler<TypeParam> sampler(rows, columns, random_logits(rows * columns, 1, 2.5));
  for (std::size_t vocabulary : {std::size_t{1}, std::size_t{2}, std::size_t{257}, columns})
    for (double temperature : {0.3, 1.0, 2.0})
      for (int top_k : {0, 1, 3, 50, 700})
        for (double top_p : {1.0, 0.95, 0.5, 0.0}) {
          const Sampling options{temperature, top_p, top_k, 77};
          const auto tokens = sampler.draw(options, vocabulary, 5);
          for (std::size_t row = 0; row < rows; ++row) {
            const auto begin = sampler.rounded.begin() + static_cast<std::ptrdiff_t>(row * columns);
            const std::vector<double> logits(begin,
                                             begin + static_cast<std::ptrdiff_t>(vocabulary));
            ASSERT_EQ(tokens[row], straightforward_draw(options, logits, static_cast<int>(row), 5))
                << fmt::format("V {} temperature {} k {} p {} row {}", vocabulary, temperature,
                               top_k, top_p, row);
          }
        }
}

TYPED_TEST(SamplingTest, GreedyTakesTheFirstOfTheLargest) {
  std::vector<double> logits(3 * 300, -1.0);
  logits[0 * 300 + 17] = logits[0 * 300 + 250] = 4;
  logits[1 * 300 + 299] = 4;                              // beyond the vocabulary below
  logits[2 * 300 + 5] = 0.0, logits[2 * 300 + 4] = -0.0;  // equal numbers
  const Sampler<TypeParam> sampler(3, 300, logits);
  EXPECT_EQ(sampler.draw({0, 1, 0, 1}, 299), (std::vector<int>{17, 0, 4}));
  EXPECT_EQ(sampler.draw({0, 0.1, 1, 9}, 300), (std::vector<int>{17, 299, 4}));
}

TEST(SamplingRows, WithoutProperLogits) {
  const double nan = std::nan("");
  const Sampler<float> sampler(5, 3,
                               {nan, nan, nan, -infinity, -infinity, -infinity, nan, 2.0, -infinity,
                                infinity, 2.0, nan, -infinity, infinity, infinity});
  for (double temperature : {0.0, 1.0})
    for (int seed = 0; seed < 20; ++seed) {
      const auto tokens = sampler.draw({temperature, 0.9, 0, static_cast<std::uint64_t>(seed)}, 3);
      EXPECT_EQ(tokens[0], -1);
      EXPECT_EQ(tokens[1], -1);
      EXPECT_EQ(tokens[2], 1);
      EXPECT_EQ(tokens[3], 0);
      EXPECT_TRUE(tokens[4] == 1 || tokens[4] == 2);
    }
}

TEST(SamplingRows, DrawWithTheirRequestAndPosition) {
  const std::size_t rows = 64, columns = 500;
  const auto one = random_logits(columns, 3, 1);
  std::vector<double> logits;
  for (std::size_t row = 0; row < rows; ++row) logits.insert(logits.end(), one.begin(), one.end());
  Sampler<float> sampler(rows, columns, logits);
  const auto tokens = sampler.draw({1, 1, 0, 1}, columns, 9);
  EXPECT_EQ(sampler.draw({1, 1, 0, 1}, columns, 9), tokens);
  EXPECT_NE(sampler.draw({1, 1, 0, 2}, columns, 9), tokens);
  EXPECT_NE(sampler.draw({1, 1, 0, 1}, columns, 10), tokens);
  std::vector<int> backwards(rows);
  for (std::size_t row = 0; row < rows; ++row) backwards[row] = static_cast<int>(rows - 1 - row);
  sampler.set_requests(backwards);
  EXPECT_EQ(sampler.draw({1, 1, 0, 1}, columns, 9),
            std::vector<int>(tokens.rbegin(), tokens.rend()));
}

/// Transformers keeps every token equal to the k-th; these logits have no ties.
TEST(SamplingGolden, KeepsTheTokensOfTransformers) {
  const test::Golden golden(TERN_SOURCE_DIR "/tests/golden/attention.h5");
  for (int i = 0; i < 5; ++i) {
    const std::string group = fmt::format("sampling/{}/", i);
    SCOPED_TRACE(group);
    const auto shape = golden.shape(group + "logits");
    const auto logits = golden.numbers(group + "logits"),
               expected = golden.numbers(group + "probabilities");
    Sampling options{golden.number(group + "temperature"), golden.number(group + "top_p"),
                     static_cast<int>(golden.number(group + "top_k")), 4};
    const Sampler<float> sampler(shape[0], shape[1], logits);
    std::vector<int> counts(logits.size());
    const int draws = 3000;
    for (int n = 0; n < draws; ++n) {
      const auto tokens = sampler.draw(options, shape[1], n);
      for (std::size_t row = 0; row < shape[0]; ++row)
        ++counts[row * shape[1] + static_cast<std::size_t>(tokens[row])];
    }
    for (std::size_t row = 0; row < shape[0]; ++row) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * shape[1]);
      const auto weights =
          kept_weights(options, {begin, begin + static_cast<std::ptrdiff_t>(shape[1])});
      const double total =
          static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}));
      // Chi-square over the tokens expected five times or more; the others count as one.
      double square = 0, rest = 0, rest_count = 0;
      int classes = 0;
      for (std::size_t t = 0; t < shape[1]; ++t) {
        const double p = expected[row * shape[1] + t];
        const double count = counts[row * shape[1] + t];
        EXPECT_NEAR(static_cast<double>(weights[t]) / total, p, 1e-9);
        if (p == 0) {
          EXPECT_EQ(count, 0);
        }
        if (draws * p < 5) {
          rest += draws * p, rest_count += count;
        } else {
          square += (count - draws * p) * (count - draws * p) / (draws * p);
          ++classes;
        }
      }
      if (rest > 1) square += (rest_count - rest) * (rest_count - rest) / rest, ++classes;
      const double freedom = classes - 1;
      // Four standard deviations above the mean of the distribution; the seed is fixed.
      EXPECT_LE(square, freedom + 4 * std::sqrt(2 * freedom) + 1e-9);
    }
  }
}

}  // namespace
}  // namespace tern
