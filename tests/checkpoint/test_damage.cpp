// Damaged checkpoints: whatever byte is lost or changed, the newest is refused or reads the right
// values.
#include "base/error.hpp"
#include "checkpoint/fixture.hpp"

namespace tern::checkpoint::testing {
namespace {

/// A run's folder with the plain or sharded checkpoints 10 and 20, and a log next to it.
class Damage : public ::testing::TestWithParam<int> {
 protected:
  Damage() {
    log_.open(folder_.path() / "log.txt");
    std::vector<std::unique_ptr<Store>> stores;
    for (int rank = 0; rank < GetParam(); ++rank)
      stores.push_back(std::make_unique<Store>(runs(), rank, GetParam(), 2, log_, 30.0));
    for (const std::int64_t step : {10, 20}) {
      const auto values = values_of(tensors_, step);
      for (int rank = 0; rank < GetParam(); ++rank)
        save(*stores[static_cast<std::size_t>(rank)], header_of(step), tensors_,
             pieces_of(values, rank, GetParam()));
      for (auto& store : stores) EXPECT_TRUE(store->wait());
    }
  }

  fs::path runs() const { return folder_.path() / "checkpoints"; }
  fs::path newest() const { return runs() / "step_00000020"; }

  /// Expects step 10, or where harmless all of step 20; true if the damage was found.
  bool found() {
    const auto reader = open_newest(runs(), log_);
    if (!reader) {
      ADD_FAILURE() << "nothing was opened";
      return false;
    }
    EXPECT_TRUE(consistent(*reader, tensors_));
    EXPECT_EQ(reader->header().tokens, reader->header().step * 1000);
    return reader->header().step == 10;
  }

  const std::vector<Tensor> tensors_ = small_tensors();
  Scratch folder_;
  Log log_;
};

TEST_P(Damage, IsFoundInTruncatedFiles) {
  for (const std::string& name : names_in(newest())) {
    const fs::path file = newest() / name;
    const std::string whole = read_file(file);
    for (int i = 0; i < 40; ++i) {
      const std::size_t length = i < 8 ? static_cast<std::size_t>(i) : whole.size() * i / 40;
      write_file(file, whole.substr(0, length));
      EXPECT_TRUE(found()) << name << " cut to " << length << " of " << whole.size();
    }
    write_file(file, whole.substr(0, whole.size() - 1));
    EXPECT_TRUE(found()) << name;
    write_file(file, whole + '\0');
    EXPECT_TRUE(found()) << name;
    write_file(file, whole);
    EXPECT_FALSE(found()) << name;
  }
}

TEST_P(Damage, IsFoundInFlippedBits) {
  std::uint32_t draw = 0;
  for (const std::string& name : names_in(newest())) {
    const fs::path file = newest() / name;
    const std::string whole = read_file(file);
    for (int i = 0; i < 200; ++i) {
      const Random4 random = philox(11, Stream::test, ++draw, 0, 0);
      std::string text = whole;
      text[random.word[0] % text.size()] ^= static_cast<char>(1 << random.word[1] % 8);
      write_file(file, text);
      EXPECT_TRUE(found()) << name << " byte " << random.word[0] % text.size();
    }
    write_file(file, whole);
  }
  EXPECT_FALSE(found());
}

TEST_P(Damage, IsFoundInMissingAndExchangedFiles) {
  for (const std::string& name : names_in(newest())) {
    const fs::path file = newest() / name;
    fs::rename(file, folder_.path() / "away");
    EXPECT_TRUE(found()) << name;
    fs::copy_file(runs() / "step_00000010" / name, file);
    EXPECT_TRUE(found()) << name;
    fs::rename(folder_.path() / "away", file);
  }
  EXPECT_FALSE(found());
}

TEST_P(Damage, IsReported) {
  const fs::path file = newest() / (GetParam() == 1 ? "checkpoint.h5" : "shard_0001.h5");
  fs::resize_file(file, 1000);
  EXPECT_TRUE(found());
  const std::string log = read_file(folder_.path() / "log.txt");
  EXPECT_NE(log.find("checkpoint of step 20 is not usable"), std::string::npos) << log;
  EXPECT_NE(log.find(file.string() + ": damaged, 1000 bytes instead of"), std::string::npos) << log;
  fs::remove(runs() / "step_00000010" / "checkpoint.sum");
  EXPECT_THROW(open_newest(runs(), log_), UserError);  // not the same as none
}

INSTANTIATE_TEST_SUITE_P(Ranks, Damage, ::testing::Values(1, 2));

TEST(DamagedFile, AloneIsCheckedByFletcher32) {
  const Scratch folder;
  Log log;
  Store store(folder, 0, 1, 1, log);
  save(store, small_tensors(), 4);
  ASSERT_TRUE(store.wait());
  const fs::path alone = folder.path() / "copy.h5";
  fs::copy_file(folder.path() / "step_00000004" / "checkpoint.h5", alone);
  EXPECT_TRUE(consistent(Reader(alone), small_tensors()));
  // A bit of the data itself.
  const float value = value_at(4, 0, 100);
  std::string text = read_file(alone);
  const std::size_t place = text.find(std::string(reinterpret_cast<const char*>(&value), 4));
  ASSERT_NE(place, std::string::npos);
  text[place] ^= 1;
  write_file(alone, text);
  try {
    const Reader reader(alone);
    EXPECT_TRUE(consistent(reader, small_tensors()));
    FAIL() << "the flipped bit was not found";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("copy.h5"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("/model/layers/0/mlp/up_proj/weight"),
              std::string::npos);
  }
  write_file(alone, "no HDF5 at all");
  EXPECT_THROW(Reader{alone}, UserError);
}

}  // namespace
}  // namespace tern::checkpoint::testing
