// Saving and reading back: one rank, several ranks, retention, replacement.
#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/version.hpp"
#include "checkpoint/fixture.hpp"

namespace tern::checkpoint::testing {
namespace {

using Names = std::vector<std::string>;

TEST(Store, RoundTripsBitForBit) {
  const TemporaryFolder folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  const auto tensors = sample_tensors();
  save(store, tensors, 1000);
  ASSERT_TRUE(store.wait());
  EXPECT_EQ(names_in(folder), Names{"step_00001000"});
  EXPECT_EQ(names_in(folder.path() / "step_00001000"), (Names{"checkpoint.h5", "checkpoint.sum"}));

  const auto reader = open_newest(folder, log);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(consistent(*reader, tensors));
  EXPECT_EQ(reader->tensors().size(), tensors.size());
  for (const Tensor& tensor : tensors) {
    const auto same = [&](const Tensor& t) { return t.path == tensor.path; };
    const auto found = std::find_if(reader->tensors().begin(), reader->tensors().end(), same);
    ASSERT_NE(found, reader->tensors().end()) << tensor.path;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.path;
  }
}

TEST(Store, KeepsTheHeader) {
  const TemporaryFolder folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  Header header = header_of(12);
  header.deck.assign(200'000, 'x');  // longer than an attribute in an object header may be
  const auto values = values_of(small_tensors(), 12);
  store.save(header, small_tensors(), pieces_of(values));
  ASSERT_TRUE(store.wait());
  const Reader reader(folder.path() / "step_00000012" / "checkpoint.h5");
  EXPECT_EQ(reader.header().step, 12);
  EXPECT_EQ(reader.header().tokens, 12000);
  EXPECT_EQ(reader.header().deck, header.deck);
  EXPECT_EQ(reader.header().numbers, header.numbers);
  EXPECT_EQ(reader.header().texts.at("note"), "größer");
  EXPECT_EQ(reader.header().texts.at("commit"), commit());
}

TEST(Store, ReadsAnyRange) {
  const TemporaryFolder folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  const auto tensors = sample_tensors();
  save(store, tensors, 5);
  ASSERT_TRUE(store.wait());
  const Reader reader(folder.path() / "step_00000005");
  const auto values = values_of(tensors, 5)[0];
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 1},
                                     {767, 2},
                                     {5, 700},
                                     {700, 2000},
                                     {768, 1536},
                                     {791'807, 1},
                                     {523'000, 3001}}) {
    std::vector<float> read(count);
    reader.read(tensors[0].path, first, count, read.data());
    EXPECT_TRUE(std::equal(read.begin(), read.end(), values.begin() + static_cast<long>(first)))
        << first << " " << count;
  }
  float value;
  EXPECT_THROW(reader.read(tensors[0].path, 791'808, 1, &value), UserError);
  EXPECT_THROW(reader.read("/model/none", 0, 1, &value), UserError);
}

/// Every rank in a thread of its own, as in a run each has its process.
void save_all(std::vector<std::unique_ptr<Store>>& stores, const std::vector<Tensor>& tensors,
              std::int64_t step) {
  const int ranks = static_cast<int>(stores.size());
  const auto values = values_of(tensors, step);
  for (int rank = 0; rank < ranks; ++rank)
    stores[rank]->save(header_of(step), tensors, pieces_of(values, rank, ranks));
  for (auto& store : stores) EXPECT_TRUE(store->wait());
}

std::vector<std::unique_ptr<Store>> open_stores(const fs::path& folder, int ranks, Log& log) {
  std::vector<std::unique_ptr<Store>> stores;
  for (int rank = 0; rank < ranks; ++rank)
    stores.push_back(std::make_unique<Store>(folder, rank, ranks, 2, log, 20.0));
  return stores;
}

TEST(Store, ShardsOfRanksReadAsOneFile) {
  auto tensors = sample_tensors();
  tensors.push_back({"/optimizer/cube", {7, 11, 13}});
  for (const int ranks : {2, 3, 4}) {
    const TemporaryFolder folder;
    Log log;
    auto stores = open_stores(folder, ranks, log);
    save_all(stores, tensors, 10);
    save_all(stores, tensors, 20);
    const fs::path moved = folder.path() / "elsewhere";
    fs::rename(folder.path() / "step_00000010", moved);
    for (const fs::path& path : {moved, folder.path() / "step_00000020"}) {
      const Reader reader(path);
      EXPECT_TRUE(consistent(reader, tensors)) << ranks << " " << path;
      EXPECT_EQ(names_in(path).size(), static_cast<std::size_t>(ranks) + 2);
      std::vector<float> row(96);
      reader.read(tensors[1].path, 96 * 11, 96, row.data());
      EXPECT_EQ(row[5], value_at(reader.header().step, 1, 96 * 11 + 5));
    }
  }
}

}  // namespace
}  // namespace tern::checkpoint::testing
