// Choices of algorithms in products.txt: a line takes effect only if cuBLASLt proposes what it names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "ops/check.hpp"
#include "ops/ops.hpp"
#include "scratch.hpp"

namespace tern::ops {
namespace {

using test::Array, test::normal_numbers, test::Numbers;

constexpr std::size_t N = 4096, I = 1024, O = 2048;  // worth timing
constexpr const char* name = "products.txt";

/// The cache folder for the length of a test.
class Cache : public test::Scratch {
 public:
  Cache() {
    if (const char* folder = std::getenv("TERN_CACHE")) before_ = folder;
    ::setenv("TERN_CACHE", path().c_str(), 1);
  }
  ~Cache() {
    before_.empty() ? ::unsetenv("TERN_CACHE") : ::setenv("TERN_CACHE", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

/// x w^T by a library that has read no file yet.
Numbers product() {
  Arena measuring;
  make_context(measuring, true, "auto", Products::fastest);
  Arena arena(measuring.bytes());
  const Context context = make_context(arena, true, "auto", Products::fastest);
  const Array<bf16> x(N, I, normal_numbers(N * I, 1)), w(O, I, normal_numbers(O * I, 2, 0.03));
  const Array<bf16> y(N, O);
  run(context, LinearForward<bf16>{.x = x.matrix(), .w = w.matrix(), .y = y.matrix()});
  context.fence("product");
  return y.get();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Products, AChoiceIsKeptAndReadAgain) {
  const Cache cache;
  const Numbers first = product();
  const std::string kept = cache.read(name);
  ASSERT_EQ(lines_of(kept).size(), 1u) << kept;
  EXPECT_EQ(product(), first);
  EXPECT_EQ(cache.read(name), kept) << "searched again";
}

TEST(Products, OnlyWhatIsProposedIsUsed) {
  const Cache cache;
  const Numbers right = product();
  const std::string kept = cache.read(name);
  const std::string key = kept.substr(0, kept.rfind(" =") + 2);
  std::string hostile;
  for (const char* words : {" 0 0 0 0 0 0 0 0", " ffffffffffffffff 1 2 3 4 5 6 7",
                            " deadbeef deadbeef deadbeef deadbeef 0 0 0 1", " 1 2 3", " x", ""})
    hostile += key + words + "\n";
  // Before the right line, it is passed over, and nothing is searched again.
  cache.write(name, hostile + kept);
  EXPECT_EQ(product(), right);
  EXPECT_EQ(cache.read(name), hostile + kept);
  // Alone, a search adds a line of its own.
  cache.write(name, hostile);
  const Numbers again = product();
  const std::string after = cache.read(name);
  ASSERT_EQ(after.compare(0, hostile.size(), hostile), 0);
  ASSERT_EQ(lines_of(after.substr(hostile.size())).size(), 1u) << after;
  double most = 0;
  for (std::size_t i = 0; i < right.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(again[i] - right[i])));
  EXPECT_LT(most, 0.1);  // sums of 1024 in another order, rounded to bf16
}

}  // namespace
}  // namespace tern::ops
