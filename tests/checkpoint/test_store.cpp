// Saving and reading back: one rank, several ranks, retention, replacement.
#include <algorithm>

#include "base/error.hpp"
#include "base/version.hpp"
#include "checkpoint/detail/folder.hpp"
#include "checkpoint/fixture.hpp"

namespace tern::checkpoint::testing {
namespace {

using Names = std::vector<std::string>;

TEST(Store, RoundTripsBitForBit) {
  const Scratch folder;
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
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  Header header = header_of(12);
  header.deck.assign(200'000, 'x');  // longer than an attribute in an object header may be
  const auto values = values_of(small_tensors(), 12);
  save(store, header, small_tensors(), pieces_of(values));
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
  const Scratch folder;
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
    save(*stores[static_cast<std::size_t>(rank)], header_of(step), tensors,
         pieces_of(values, rank, ranks));
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
    const Scratch folder;
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

TEST(Store, ColumnsOfRanksReadAsOneFile) {
  const auto tensors = sample_tensors();
  for (const int ranks : {2, 4}) {
    const Scratch folder;
    Log log;
    auto stores = open_stores(folder, ranks, log);
    const auto values = values_of(tensors, 3);
    for (int rank = 0; rank < ranks; ++rank)
      save(*stores[static_cast<std::size_t>(rank)], header_of(3), tensors,
           columns_of(tensors, values, rank, ranks));
    for (auto& store : stores) EXPECT_TRUE(store->wait());
    const Reader reader(folder.path() / "step_00000003");
    EXPECT_TRUE(consistent(reader, tensors)) << ranks;
    std::vector<float> read(700);  // from the middle of a row on
    reader.read(tensors[1].path, 101, read.size(), read.data());
    EXPECT_TRUE(std::equal(read.begin(), read.end(), values[1].begin() + 101)) << ranks;
  }
}

std::vector<std::string> visible(const fs::path& folder) {
  Names names = names_in(folder);
  std::erase_if(names, [](const std::string& name) { return name == ".session"; });
  return names;
}

TEST(Store, KeepsTheNewestAndTheBest) {
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  for (std::int64_t step = 1; step <= 5; ++step) {
    save(store, small_tensors(), step);
    if (step == 2) store.evaluated(2, {}, true);  // while it is still being written
    ASSERT_TRUE(store.wait());
  }
  EXPECT_EQ(visible(folder),
            (Names{"best.txt", "step_00000002", "step_00000004", "step_00000005"}));
  EXPECT_EQ(read_file(folder.path() / "best.txt"), "step_00000002\n");
  store.evaluated(5, {}, true);
  save(store, small_tensors(), 6);
  ASSERT_TRUE(store.wait());
  EXPECT_EQ(visible(folder), (Names{"best.txt", "step_00000005", "step_00000006"}));
  save(store, small_tensors(), 7);
  save(store, small_tensors(), 8);
  ASSERT_TRUE(store.wait());
  EXPECT_EQ(visible(folder),
            (Names{"best.txt", "step_00000005", "step_00000007", "step_00000008"}));
}

TEST(Store, LeavesLaterStepsToARunThatWentBack) {
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 1, log);
  save(store, small_tensors(), 100);
  save(store, small_tensors(), 50);
  ASSERT_TRUE(store.wait());
  EXPECT_EQ(visible(folder), (Names{"step_00000050", "step_00000100"}));
}

TEST(Store, ReplacesACheckpointOfTheSameStep) {
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  save(store, small_tensors(), 3);
  Header header = header_of(3);
  header.tokens = 77;
  const auto values = values_of(small_tensors(), 3);
  save(store, header, small_tensors(), pieces_of(values));
  ASSERT_TRUE(store.wait());
  EXPECT_EQ(visible(folder), Names{"step_00000003"});
  EXPECT_EQ(open_newest(folder, log)->header().tokens, 77);
}

TEST(Store, RecoversFromCrashesAtEveryPlace) {
  const Scratch folder;
  Log log;
  {
    Store store(folder, 0, 1, 3, log);
    for (const std::int64_t step : {1, 2, 3}) save(store, small_tensors(), step);
  }
  const fs::path& at = folder.path();
  // As if killed while 3 was being replaced, 1 removed, 4 and best.txt written.
  fs::rename(at / "step_00000003", at / "step_00000003.old-0123456789abcdef");
  fs::rename(at / "step_00000001", at / "step_00000001.del-0123456789abcdef");
  fs::remove(at / "step_00000001.del-0123456789abcdef" / "checkpoint.h5");
  fs::create_directory(at / "step_00000004.tmp-0123456789abcdef-1");
  write_file(at / "step_00000004.tmp-0123456789abcdef-1" / "checkpoint.h5", "half");
  write_file(at / "best.txt.tmp-0123456789abcdef", "step");
  write_file(at / "step_by_step.txt", "of somebody else");
  EXPECT_EQ(open_newest(folder, log)->header().step, 3);
  const Store store(folder, 0, 1, 3, log);
  EXPECT_EQ(visible(folder), (Names{"step_00000002", "step_00000003", "step_by_step.txt"}));
  EXPECT_TRUE(consistent(*open_newest(folder, log), small_tensors()));
}

std::map<std::string, double> numbers_of(const fs::path& folder, std::int64_t step) {
  return Reader(folder / detail::step_name(step)).header().numbers;
}

TEST(Store, AnEvaluationIsReadWithItsCheckpoint) {
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 3, log);
  save(store, small_tensors(), 1);
  ASSERT_TRUE(store.wait());
  const auto before = numbers_of(folder, 1);
  store.evaluated(1, {{"loss", 0.1}, {"low", 1e-300}}, false);
  save(store, small_tensors(), 2);
  store.evaluated(2, {{"loss", 0.3}}, true);  // while it is still being written
  ASSERT_TRUE(store.wait());
  EXPECT_EQ(numbers_of(folder, 1).at("loss"), 0.1);
  EXPECT_EQ(numbers_of(folder, 1).at("low"), 1e-300);
  for (const auto& [name, value] : before)
    if (name != "loss") {
      EXPECT_EQ(numbers_of(folder, 1).at(name), value) << name;
    }
  EXPECT_EQ(numbers_of(folder, 2).at("loss"), 0.3);
  EXPECT_EQ(read_file(folder.path() / "best.txt"), "step_00000002\n");
  // Saved again, it has not been evaluated.
  save(store, small_tensors(), 2);
  ASSERT_TRUE(store.wait());
  EXPECT_NE(numbers_of(folder, 2)["loss"], 0.3);
  // Damaged, cut off, of another step: as if there were none.
  const fs::path file = folder.path() / "step_00000001" / "evaluation.json";
  for (const char* text :
       {"", "{", "[1]", R"({"step": 2, "loss": 7})", R"({"step": 1, "loss": "x"})"}) {
    write_file(file, text);
    EXPECT_EQ(numbers_of(folder, 1), before) << text;
  }
  EXPECT_FALSE(fs::exists(folder.path() / "step_00000009"));
  store.evaluated(9, {{"loss", 1}}, true);  // never written
  EXPECT_FALSE(fs::exists(folder.path() / "step_00000009"));
  EXPECT_EQ(read_file(folder.path() / "best.txt"), "step_00000002\n");
}

TEST(Store, CheckpointsThatCannotBeReadAreNotNone) {
  const Scratch folder;
  Log log;
  {
    Store store(folder, 0, 1, 3, log);
    for (const std::int64_t step : {1, 2}) save(store, small_tensors(), step);
  }
  // As in the middle of a copy: one file is not whole, the other is not there.
  fs::resize_file(folder.path() / "step_00000002" / "checkpoint.h5", 100);
  fs::remove(folder.path() / "step_00000001" / "checkpoint.h5");
  try {
    open_newest(folder, log);
    FAIL() << "they were taken for none";
  } catch (const UserError& error) {
    for (const char* part :
         {"none of the 2 checkpoints", "step_00000001", "step_00000002", "--fresh"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  // A folder that cannot be read may hold some.
  const fs::path loop = folder.path() / "loop";
  fs::create_symlink(loop, loop);
  EXPECT_THROW(open_newest(loop, log), UserError);
}

TEST(Store, OpensNothingWhereNothingIs) {
  const Scratch folder;
  Log log;
  EXPECT_FALSE(open_newest(folder, log));
  EXPECT_FALSE(open_newest(folder.path() / "none", log));
  EXPECT_THROW(Reader(folder.path() / "none"), UserError);
  write_file(folder.path() / "file", "");
  EXPECT_THROW(Store(folder.path() / "file", 0, 1, 2, log), UserError);
}

TEST(Store, RefusesPiecesThatDoNotFit) {
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 2, log);
  const auto tensors = small_tensors();
  const auto values = values_of(tensors, 1);
  auto pieces = pieces_of(values);
  pieces[1].count -= 1;
  EXPECT_THROW(save(store, header_of(1), tensors, pieces), InternalError);  // a gap
  pieces[1].count += 2;
  EXPECT_THROW(save(store, header_of(1), tensors, pieces), InternalError);
  pieces[1].tensor = 9;
  EXPECT_THROW(save(store, header_of(1), tensors, pieces), InternalError);
  EXPECT_TRUE(store.wait());
  EXPECT_EQ(visible(folder), Names{});
}

TEST(Store, IsPlainWhereRankZeroHoldsAll) {
  const Scratch folder;
  Log log;
  const auto tensors = small_tensors();
  auto stores = open_stores(folder, 2, log);
  const auto values = values_of(tensors, 1);
  save(*stores[0], header_of(1), tensors, pieces_of(values));
  save(*stores[1], header_of(1), tensors, {});
  for (auto& store : stores) EXPECT_TRUE(store->wait());
  EXPECT_EQ(names_in(folder.path() / "step_00000001"), (Names{"checkpoint.h5", "checkpoint.sum"}));
  // Ranks that hold parts in turn, one of them none; overlaps count once.
  save(*stores[0], header_of(2), tensors, pieces_of(values_of(tensors, 2), 0, 2));
  const auto second = values_of(tensors, 2);
  save(*stores[1], header_of(2), tensors, pieces_of(second));
  for (auto& store : stores) EXPECT_TRUE(store->wait());
  EXPECT_TRUE(consistent(*open_newest(folder, log), tensors));
}

TEST(Store, GivesUpOnARankThatNeverComes) {
  const Scratch folder;
  Log log;
  log.open(folder.path() / "log.txt");
  const auto tensors = small_tensors();
  const auto values = values_of(tensors, 1);
  Store store(folder.path() / "checkpoints", 0, 2, 2, log, 0.2);
  save(store, header_of(1), tensors, pieces_of(values, 0, 2));
  EXPECT_FALSE(store.wait());
  EXPECT_EQ(visible(folder.path() / "checkpoints"), Names{});
  EXPECT_NE(read_file(folder.path() / "log.txt").find("rank 1 did not deliver"), std::string::npos);
}

TEST(Store, ReportsGapsBetweenRanksToAll) {
  const Scratch folder;
  Log log;
  const auto tensors = small_tensors();
  const auto values = values_of(tensors, 1);
  auto stores = open_stores(folder, 2, log);
  for (int rank = 0; rank < 2; ++rank)
    save(*stores[static_cast<std::size_t>(rank)], header_of(1), tensors,
         pieces_of(values, rank, 3));
  for (auto& store : stores) EXPECT_FALSE(store->wait());
  EXPECT_EQ(visible(folder), Names{});
}

}  // namespace
}  // namespace tern::checkpoint::testing
