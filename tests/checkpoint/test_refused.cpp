// What the disk refuses about a checkpoint is written later; best.txt is what the attributes say.
#include <sys/resource.h>

#include <csignal>

#include "checkpoint/detail/folder.hpp"
#include "checkpoint/fixture.hpp"

namespace tern::checkpoint::testing {
namespace {

/// A file whose place is taken by a folder cannot be written.
class Taken {
 public:
  explicit Taken(fs::path file) : file_(std::move(file)) {
    fs::remove(file_);
    fs::create_directory(file_);
    write_file(file_ / "full", "");
  }
  ~Taken() { fs::remove_all(file_); }

 private:
  fs::path file_;
};

/// Files of this process are empty as long as this lives.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

class Refused : public ::testing::Test {
 protected:
  Refused() { log.open(folder.path() / "log.txt"); }

  /// As in training: the attributes name the last and the best evaluation before this step.
  void save_at(Store& store, std::int64_t step, std::int64_t evaluated = -1,
               std::int64_t best = 0) {
    Header header = header_of(step);
    header.numbers["evaluated_step"] = static_cast<double>(evaluated);
    header.numbers["best_step"] = static_cast<double>(best);
    const auto values = values_of(small_tensors(), step);
    save(store, header, small_tensors(), pieces_of(values));
  }
  static std::map<std::string, double> evaluation(std::int64_t step, std::int64_t best) {
    return {{"evaluated_step", static_cast<double>(step)},
            {"best_step", static_cast<double>(best)},
            {"val/loss", 2.5}};
  }
  fs::path at(std::int64_t step) const { return runs / detail::step_name(step); }
  bool evaluated(std::int64_t step) const {
    return fs::is_regular_file(at(step) / "evaluation.json");
  }
  std::string best_txt() const { return read_file(runs / "best.txt"); }
  std::string logged() const { return read_file(folder.path() / "log.txt"); }

  const Scratch folder;
  const fs::path runs = folder.path() / "checkpoints";
  Log log;
};

TEST_F(Refused, AnEvaluationIsWrittenWhenTheCheckpointIsWrittenAgain) {
  Store store(runs, 0, 1, 1, log);
  {
    const FullDisk full;
    save_at(store, 9);
    store.evaluated(9, evaluation(9, 9), true);
    EXPECT_FALSE(store.wait());
  }
  EXPECT_FALSE(fs::exists(at(9)));
  store.retry();
  EXPECT_TRUE(store.wait());
  EXPECT_TRUE(store.record());
  EXPECT_TRUE(evaluated(9));
  EXPECT_EQ(best_txt(), "step_00000009\n");
  // Also one that comes between the two.
  {
    const FullDisk full;
    save_at(store, 10, 9, 9);
    EXPECT_FALSE(store.wait());
  }
  store.evaluated(10, evaluation(10, 10), true);
  store.retry();
  EXPECT_TRUE(store.wait());
  EXPECT_TRUE(evaluated(10));
  EXPECT_EQ(best_txt(), "step_00000010\n");
}

TEST_F(Refused, AnEvaluationOfACheckpointThatWasNeverWrittenIsDropped) {
  Store store(runs, 0, 1, 1, log);
  {
    const FullDisk full;
    save_at(store, 9);
    store.evaluated(9, evaluation(9, 9), true);
    EXPECT_FALSE(store.wait());
  }
  save_at(store, 12, 9, 9);
  EXPECT_TRUE(store.wait());
  EXPECT_TRUE(store.record());
  EXPECT_EQ(best_txt(), "");
  EXPECT_EQ(names_in(runs), std::vector<std::string>{"step_00000012"});
}

TEST_F(Refused, FilesOfEvaluationsAreWrittenAfterTheNextSaveOrAtTheEnd) {
  for (const bool at_the_end : {false, true})
    for (const char* name : {"best.txt", "step_00000004/evaluation.json"}) {
      const fs::path here = folder.path() / fmt::format("{}{}", name[0], at_the_end);
      Store store(here, 0, 1, 1, log);
      save_at(store, 4);
      EXPECT_TRUE(store.wait());
      {
        const Taken taken(here / name);
        store.evaluated(4, evaluation(4, 4), true);
        EXPECT_FALSE(store.record());
        // An evaluation that could be read as if best.txt named the checkpoint must not be there.
        EXPECT_FALSE(fs::is_regular_file(here / "step_00000004/evaluation.json")) << name;
      }
      if (at_the_end) {
        EXPECT_TRUE(store.record());
      } else {
        save_at(store, 5, 4, 4);
        EXPECT_TRUE(store.wait());
      }
      EXPECT_TRUE(fs::is_regular_file(here / "step_00000004/evaluation.json")) << name;
      EXPECT_EQ(read_file(here / "best.txt"), "step_00000004\n");
      EXPECT_TRUE(store.record());
    }
  EXPECT_NE(logged().find("an evaluation is not stored with its checkpoint yet: cannot"),
            std::string::npos);
}

TEST_F(Refused, AnOlderBestDoesNotReplaceANewerOne) {
  Store store(runs, 0, 1, 3, log);
  save_at(store, 4);
  EXPECT_TRUE(store.wait());
  {
    const Taken taken(at(4) / "evaluation.json");
    store.evaluated(4, evaluation(4, 4), true);  // best.txt is written, evaluation.json is not
    EXPECT_EQ(best_txt(), "step_00000004\n");
    save_at(store, 8, 4, 4);
    store.evaluated(8, evaluation(8, 8), true);
    EXPECT_TRUE(store.wait());
    EXPECT_EQ(best_txt(), "step_00000008\n");
  }
  EXPECT_TRUE(store.record());
  EXPECT_EQ(best_txt(), "step_00000008\n");
  EXPECT_TRUE(evaluated(4) && evaluated(8));
}

TEST_F(Refused, TheBestCheckpointStaysWithoutBestTxt) {
  for (const bool keep_best : {true, false}) {
    const fs::path here = folder.path() / (keep_best ? "kept" : "not");
    Store store(here, 0, 1, 1, log, 600, keep_best);
    save_at(store, 4);
    store.evaluated(4, evaluation(4, 4), keep_best);
    ASSERT_TRUE(store.wait());
    fs::remove(here / "best.txt");
    for (const std::int64_t step : {5, 6, 7}) {
      save_at(store, step, 4, 4);
      ASSERT_TRUE(store.wait());
    }
    EXPECT_EQ(fs::exists(here / "step_00000004"), keep_best);
  }
}

class DamagedBest : public Refused {
 protected:
  /// Checkpoints 4 (the best), 8 and 12; evaluations at 4 and 8, and at 12 unless `unevaluated`.
  DamagedBest() {
    Store store(runs, 0, 1, 3, log);
    save_at(store, 4);
    store.evaluated(4, evaluation(4, 4), true);
    save_at(store, 8, 4, 4);
    store.evaluated(8, evaluation(8, 4), false);
    save_at(store, 12, 8, 4);
    EXPECT_TRUE(store.wait());
  }
  std::string best() const {
    const auto found = best_checkpoint(runs).path;
    return found ? found->filename().string() : "none";
  }
};

TEST_F(DamagedBest, IsFoundByTheAttributes) {
  EXPECT_EQ(best(), "step_00000004");
  EXPECT_EQ(best_checkpoint(runs).trouble, "");
  for (const char* text :
       {"", "\n", "stfp_00000004\n", "step_00000004x\n", "step_-4\n", "step_00000099\n",
        "step_00000008\n", "\xff\xfe", "../step_00000008\n"}) {
    write_file(runs / "best.txt", text);
    const BestCheckpoint found = best_checkpoint(runs);
    EXPECT_EQ(best(), "step_00000004") << text;
    EXPECT_NE(found.trouble.find((runs / "best.txt").string()), std::string::npos) << found.trouble;
    EXPECT_NE(found.trouble.find("that of step 4"), std::string::npos) << found.trouble;
    {
      Store store(runs, 0, 1, 3, log);
      store.check_best(4, -1);
    }
    EXPECT_EQ(best_txt(), "step_00000004\n") << text;
    EXPECT_EQ(best_checkpoint(runs).trouble, "");
  }
  EXPECT_NE(
      logged().find("best.txt is missing or damaged; by the attributes of the checkpoints the "
                    "best is that of step 4; best.txt is rewritten"),
      std::string::npos)
      << logged();
  fs::remove(runs / "best.txt");
  EXPECT_EQ(best(), "step_00000004");
  EXPECT_EQ(best_checkpoint(runs).trouble, "") << "as in a run that does not mark it";
}

TEST_F(DamagedBest, IsNotRemovedWhenTheRunGoesOn) {
  write_file(runs / "best.txt", "stfp_00000004\n");
  Store store(runs, 0, 1, 1, log);
  for (const std::int64_t step : {16, 20}) {
    save_at(store, step, 8, 4);
    ASSERT_TRUE(store.wait());
  }
  EXPECT_TRUE(fs::exists(at(4)));
}

TEST_F(DamagedBest, MayBeAheadOfTheAttributes) {
  // As after a kill between best.txt and evaluation.json of step 12.
  write_file(runs / "best.txt", "step_00000012\n");
  EXPECT_EQ(best(), "step_00000012");
  EXPECT_EQ(best_checkpoint(runs).trouble, "");
  Store store(runs, 0, 1, 3, log);
  store.check_best(4, 12);
  EXPECT_EQ(best_txt(), "step_00000012\n");
  EXPECT_EQ(logged(), "");
  store.check_best(4, -1);  // evaluated: out of date
  EXPECT_EQ(best_txt(), "step_00000004\n");
}

TEST_F(DamagedBest, ThatIsGoneIsNotSilentlyTheNewest) {
  fs::remove_all(at(4));
  fs::remove(runs / "best.txt");
  EXPECT_EQ(best(), "none");
  EXPECT_NE(best_checkpoint(runs).trouble.find("the best checkpoint, of step 4, does not exist"),
            std::string::npos);
  Store store(runs, 0, 1, 3, log);
  store.check_best(4, -1);
  EXPECT_NE(logged().find("'best' means the newest"), std::string::npos) << logged();
  EXPECT_EQ(best_txt(), "");
}

}  // namespace
}  // namespace tern::checkpoint::testing
