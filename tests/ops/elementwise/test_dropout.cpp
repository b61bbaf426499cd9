#include "ops/check.hpp"

namespace tern::test {
namespace {

template <class T>
Numbers dropped(const ops::DropoutKey& key, std::size_t rows, std::size_t columns, Numbers values) {
  const Array<T> x(rows, columns, values);
  ops::run(portable_context(), ops::Dropout<T>{.key = key, .x = x.matrix(), .y = x.matrix()});
  return x.get();
}

TEST(Dropout, ZeroesTheShareAndScalesTheRest) {
  const std::size_t rows = 300, columns = 101;
  const ops::DropoutKey key{0.3, 11, 5, 2, 0};
  const Numbers y = dropped<double>(key, rows, columns, Numbers(rows * columns, 1.0));
  double zeros = 0;
  for (const long double v : y) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.7) << v;
    zeros += v == 0;
  }
  const double n = double(y.size()), deviation = std::sqrt(0.3 * 0.7 / n);
  EXPECT_NEAR(zeros / n, 0.3, 5 * deviation);
  EXPECT_EQ(dropped<double>({0, 11, 5, 2, 0}, 2, 3, Numbers(6, 1.0)), Numbers(6, 1.0));
}

// The same elements are dropped in every storage type, whatever rank holds the row.
TEST(Dropout, IsAFunctionOfItsKey) {
  const std::size_t rows = 20, columns = 13;
  const Numbers ones(rows * columns, 1.0);
  const ops::DropoutKey key{0.5, 1, 2, 3, 100};
  const Numbers all = dropped<double>(key, rows, columns, ones);
  EXPECT_EQ(all, dropped<float>(key, rows, columns, ones));
  EXPECT_EQ(all, dropped<bf16>(key, rows, columns, ones));
  ops::DropoutKey later = key;
  later.first_row += 8;
  const Numbers part =
      dropped<double>(later, rows - 8, columns, Numbers((rows - 8) * columns, 1.0));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 8 * columns));
  for (auto change : {&ops::DropoutKey::seed, &ops::DropoutKey::step}) {
    ops::DropoutKey other = key;
    other.*change += 1;
    EXPECT_NE(all, dropped<double>(other, rows, columns, ones));
  }
  ops::DropoutKey other = key;
  other.layer += 1;
  EXPECT_NE(all, dropped<double>(other, rows, columns, ones));
}

TEST(Dropout, IsAddedToTheStream) {
  const std::size_t rows = 7, columns = 13;
  const ops::DropoutKey key{0.4, 3, 1, 0, 0};
  const Numbers x = normal_numbers(rows * columns, 1), stream = normal_numbers(x.size(), 2);
  const Numbers alone = dropped<double>(key, rows, columns, x);
  const Array<double> in(rows, columns, x), out(rows, columns, stream);
  ops::run(
      portable_context(),
      ops::Dropout<double>{.key = key, .x = in.matrix(), .added = out.matrix(), .y = out.matrix()});
  const Numbers sum = out.get();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(sum[i], stream[i] + alone[i], 1e-15);
}

TEST(PendingSum, IsMadeWithOrWithoutDropout) {
  const std::size_t rows = 7, columns = 13;
  const ops::DropoutKey key{0.4, 3, 1, 0, 0};
  const Numbers a = normal_numbers(rows * columns, 1), b = normal_numbers(a.size(), 2);
  const Numbers dropped_b = dropped<double>(key, rows, columns, b);
  const Array<double> first(rows, columns, a), second(rows, columns, b), to(rows, columns);
  ops::make_sum<double>(portable_context(), {first.matrix(), second.matrix(), {}, to.matrix()});
  const Numbers plain = to.get();
  ops::make_sum<double>(portable_context(),
                        {first.matrix(), second.matrix(), {}, to.matrix(), key});
  const Numbers with = to.get();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(plain[i], a[i] + b[i], 1e-15);
    EXPECT_NEAR(with[i], a[i] + dropped_b[i], 1e-15);
  }
}

}  // namespace
}  // namespace tern::test
