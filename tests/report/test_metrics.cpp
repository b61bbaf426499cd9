// metrics.jsonl and TensorBoard's events: what is written is read back, across resumes, kills and a
// full disk.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/hashes.hpp"
#include "report/detail/process.hpp"
#include "report/detail/tfrecord.hpp"
#include "report/metrics.hpp"
#include "scratch.hpp"

namespace tern::report {
namespace {

using test::Scratch;

std::vector<nlohmann::json> entries(const Scratch& run) {
  std::vector<nlohmann::json> out;
  std::istringstream lines(run.read("metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

std::vector<std::int64_t> steps(const Scratch& run) {
  std::vector<std::int64_t> out;
  for (const auto& entry : entries(run)) out.push_back(entry.at("step").get<std::int64_t>());
  return out;
}

// "tag step value" lines, by the tensorboard package; and those of descriptions.
std::string read_by_tensorboard(const Scratch& run, bool described = false) {
  const char* python = std::getenv("TERN_PYTHON");
  const auto ending =
      detail::run_program({python ? python : "python3",
                           TERN_SOURCE_DIR "/tests/campaign/read_events.py", run.path().string()},
                          run / "read.txt", {std::chrono::hours(1), std::chrono::hours(1)});
  const std::string output = run.read("read.txt");
  EXPECT_EQ(ending, detail::Ending::success)
      << "needs Python with the packages of tests/requirements.txt (TERN_PYTHON):\n"
      << output;
  // The package may warn on its standard error; its answers are the lines that start with a tag.
  std::string answers;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    for (const char* start :
         {"Loss/", "Score/", "train/", "val/", "histogram ", "text ", "hparam ", "about "})
      if (line.starts_with(start) && (described || start[0] != 'a')) answers += line + "\n";
  return answers;
}

std::filesystem::path event_file(const Scratch& run) {
  for (const auto& entry : std::filesystem::directory_iterator(run.path()))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) return entry.path();
  return {};
}

TEST(Metrics, OneObjectAStepWithNumbersAndTexts) {
  Scratch run;
  Metrics metrics(run.path(), 0);
  metrics.write(10, {{"train/loss", 4.5}, {"train/lr", 6e-4}}, {{"samples_hash", "91c0 \"x\"\n"}});
  metrics.write(20, {{"train/loss", 1.0 / 3.0}});
  const auto read = entries(run);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].at("step"), 10);
  EXPECT_EQ(read[0].at("train/lr").get<double>(), 6e-4);
  EXPECT_EQ(read[0].at("samples_hash"), "91c0 \"x\"\n");
  EXPECT_EQ(read[1].at("train/loss").get<double>(), 1.0 / 3.0) << "doubles survive to the last bit";
  EXPECT_GT(read[1].at("time").get<double>(), 1e9);
  EXPECT_TRUE(metrics.sync());
}

TEST(Metrics, NumbersThatJsonLacksAreNull) {
  Scratch run;
  Metrics metrics(run.path(), 0);
  metrics.write(1,
                {{"train/loss", std::nan("")}, {"train/grad_norm", INFINITY}, {"train/lr", 0.1}});
  const auto read = entries(run).at(0);
  EXPECT_TRUE(read.at("train/loss").is_null());
  EXPECT_TRUE(read.at("train/grad_norm").is_null());
  EXPECT_EQ(read.at("train/lr"), 0.1);
}

TEST(Metrics, ResumeDropsWhatComesAfterTheCheckpoint) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (int step = 10; step <= 50; step += 10) metrics.write(step, {{"train/loss", double(step)}});
  }
  {
    Metrics metrics(run.path(), 30);
    metrics.write(40, {{"train/loss", -40.0}});
  }
  EXPECT_EQ(steps(run), (std::vector<std::int64_t>{10, 20, 30, 40}));
  EXPECT_EQ(entries(run).back().at("train/loss"), -40.0);
  EXPECT_EQ(read_by_tensorboard(run),
            "Loss/train/loss 10 10.0\nLoss/train/loss 20 20.0\nLoss/train/loss 30 30.0\n"
            "Loss/train/loss 40 -40.0\n");
}

TEST(Metrics, AFreshRunStartsEmpty) {
  Scratch run;
  { Metrics(run.path(), -1).write(0, {{"val/loss", 1.0}}); }
  { Metrics(run.path(), -1).write(0, {{"val/loss", 2.0}}); }
  ASSERT_EQ(entries(run).size(), 1u);
  EXPECT_EQ(entries(run)[0].at("val/loss"), 2.0);
  EXPECT_EQ(read_by_tensorboard(run), "Loss/val/loss 0 2.0\n");
}

TEST(Metrics, WhatAKillCutOffIsDroppedOnResume) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    metrics.write(1, {{"train/loss", 1.0}});
    metrics.write(2, {{"train/loss", 2.0}});
  }
  for (const auto& file : {run / "metrics.jsonl", event_file(run)})
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
  { Metrics(run.path(), 2).write(3, {{"train/loss", 3.0}}); }
  EXPECT_EQ(steps(run), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(read_by_tensorboard(run), "Loss/train/loss 1 1.0\nLoss/train/loss 3 3.0\n");
}

TEST(Metrics, AnEvaluationThatWillBeRepeatedIsDroppedOnResume) {
  for (const bool evaluated : {true, false}) {
    Scratch run;
    {
      Metrics metrics(run.path(), -1);
      metrics.write(0, {{"val/loss", 5.0}});
      metrics.write(2, {{"train/loss", 2.0}});
      metrics.write(2, {{"val/loss", 4.0}});
      metrics.write(3, {{"train/loss", 3.0}});
    }
    { Metrics(run.path(), 2, evaluated).write(3, {{"train/loss", 3.5}}); }
    EXPECT_EQ(steps(run), evaluated ? (std::vector<std::int64_t>{0, 2, 2, 3})
                                    : (std::vector<std::int64_t>{0, 2, 3}));
    EXPECT_EQ(read_by_tensorboard(run).find("val/loss 2 4.0") != std::string::npos, evaluated);
  }
}

TEST(Metrics, ARunMayResumeBeforeItsFirstStep) {
  Scratch run;
  { Metrics(run.path(), -1).write(0, {{"val/loss", 5.0}}); }
  { Metrics(run.path(), 0, true).write(1, {{"train/loss", 1.0}}); }
  EXPECT_EQ(steps(run), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(read_by_tensorboard(run), "Loss/train/loss 1 1.0\nLoss/val/loss 0 5.0\n");
}

TEST(Metrics, ADirectoryThatIsNotThereIsTheUsersError) {
  EXPECT_THROW(Metrics("/nonexistent/run", -1), std::exception);
}

// A file size limit is a disk that fills up in the middle of a line.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit full{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

std::size_t size_of(const Scratch& run) {
  return std::filesystem::file_size(run / "metrics.jsonl");
}

TEST(Metrics, LinesThatTheDiskRefusesAreWrittenWithTheNextOnes) {
  Scratch run;
  Metrics metrics(run.path(), 0);
  metrics.write(1, {{"train/loss", 1.0}});
  {
    const FullDisk full(size_of(run) + 20);
    metrics.write(2, {{"train/loss", 2.0}, {"train/a_long_name_that_does_not_fit_any_more", 2.0}});
    metrics.write(3, {{"train/loss", 3.0}});
    EXPECT_FALSE(metrics.sync());
    EXPECT_EQ(std::count(metrics.unwritten().begin(), metrics.unwritten().end(), '\n'), 2);
    EXPECT_EQ(steps(run), std::vector<std::int64_t>{1}) << "no part of a line";
  }
  metrics.write(4, {{"train/loss", 4.0}});
  EXPECT_EQ(metrics.unwritten(), "");
  EXPECT_TRUE(metrics.sync());
  EXPECT_TRUE(metrics.events_complete());
  EXPECT_EQ(steps(run), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_NE(read_by_tensorboard(run).find(
                "Loss/train/loss 2 2.0\nLoss/train/loss 3 3.0\nLoss/train/loss 4 4.0\n"),
            std::string::npos);
}

TEST(Metrics, LinesThatTheDiskRefusesAreWrittenAtTheEnd) {
  Scratch run;
  Metrics metrics(run.path(), 0);
  {
    const FullDisk full(0);
    metrics.write(1, {{"train/loss", 1.0}});
    EXPECT_FALSE(metrics.sync());
  }
  EXPECT_TRUE(metrics.sync());
  EXPECT_EQ(steps(run), std::vector<std::int64_t>{1});
}

TEST(Metrics, LinesThatACheckpointHoldsAreAddedOnceOnResume) {
  for (const bool written_later : {false, true}) {
    Scratch run;
    std::string unwritten;
    {
      Metrics metrics(run.path(), 0);
      metrics.write(1, {{"train/loss", 1.0}});
      const auto full = std::make_unique<FullDisk>(size_of(run));
      metrics.write(2, {{"train/loss", 2.0}});
      metrics.write(3, {{"train/loss", 3.0}});
      metrics.write(3, {{"val/loss", 3.5}});
      unwritten = metrics.unwritten();
      if (!written_later) std::filesystem::copy(run / "metrics.jsonl", run / "kept.jsonl");
    }
    { Metrics(run.path(), 3, true).write(9, {{"train/loss", 9.0}}); }
    EXPECT_EQ(steps(run), (std::vector<std::int64_t>{1, 9})) << "were lost";
    if (written_later)
      run.write("metrics.jsonl", entries(run)[0].dump() + "\n" + unwritten);
    else
      std::filesystem::rename(run / "kept.jsonl", run / "metrics.jsonl");
    { Metrics(run.path(), 3, true, unwritten).write(4, {{"train/loss", 4.0}}); }
    EXPECT_EQ(steps(run), (std::vector<std::int64_t>{1, 2, 3, 3, 4})) << written_later;
    // An evaluation that is repeated is not among them.
    { Metrics(run.path(), 3, false, unwritten).write(4, {{"train/loss", 4.0}}); }
    EXPECT_EQ(steps(run), (std::vector<std::int64_t>{1, 2, 3, 4}));
  }
}

TEST(Metrics, KeepsABoundedPartOfWhatTheDiskRefuses) {
  Scratch run;
  Metrics metrics(run.path(), 0);
  {
    const FullDisk full(0);
    for (int step = 1; step <= 12'000; ++step)
      metrics.write(step, {{"train/a_long_name_of_a_metric_that_takes_its_place", 1.0 / 3.0}});
    EXPECT_LE(metrics.unwritten().size(), detail::KeptFile::most);
    EXPECT_GT(metrics.unwritten().size(), detail::KeptFile::most / 2);
  }
  EXPECT_FALSE(metrics.sync()) << "some are lost";
  const auto written = steps(run);
  for (std::size_t i = 0; i < written.size(); ++i)
    ASSERT_EQ(written[i], static_cast<std::int64_t>(i) + 1);
}

TEST(Metrics, AFileThatCannotBeReadIsNotEmpty) {
  Scratch run;
  std::filesystem::create_directory(run / "metrics.jsonl");
  EXPECT_THROW(Metrics(run.path(), 3), UserError);
}

TEST(TensorBoard, ValuesAreReadBackAsFloats) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    metrics.write(1, {{"train/loss", 0.1}, {"val/loss", -2.5}});
    metrics.write(std::int64_t(1) << 40, {{"train/loss", 1e-30}});
  }
  std::ostringstream expected;
  expected.precision(17);
  expected << "Loss/train/loss 1 " << double(0.1f) << "\nLoss/train/loss 1099511627776 ";
  EXPECT_EQ(read_by_tensorboard(run).rfind(expected.str(), 0), 0u) << read_by_tensorboard(run);
  EXPECT_NE(read_by_tensorboard(run).find("val/loss 1 -2.5\n"), std::string::npos);
}

/// Accuracy by the fraction of masked tokens is one histogram, not a scalar for each fraction.
TEST(TensorBoard, AProfileIsOneHistogram) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    metrics.write(5, {{"val/loss", 0.5},
                      {"val/accuracy_t/0.125", 0.25},
                      {"val/accuracy_t/0.375", 0.75},
                      {"val/accuracy_t/0.875", 1.0}});
    metrics.write(9, {{"val/accuracy_t/0.125", 0.5}});
  }
  EXPECT_EQ(read_by_tensorboard(run),
            "Loss/val/loss 5 0.5\n"
            "histogram val/accuracy_t 5 [[0.0, 0.25, 0.25], [0.25, 0.5, 0.75], [0.5, 0.75, 0.0], "
            "[0.75, 1.0, 1.0]]\n"
            "histogram val/accuracy_t 9 [[-0.375, 0.625, 0.5]]\n");
  EXPECT_EQ(entries(run)[0].at("val/accuracy_t/0.375"), 0.75) << "metrics.jsonl holds all";
}

TEST(TensorBoard, TheDeckIsAText) {
  Scratch run;
  run.write("deck.in", "&campaign\n  name = 'a' /");
  { Metrics(run.path(), -1).write(1, {{"train/loss", 1.0}}); }
  EXPECT_EQ(read_by_tensorboard(run),
            "Loss/train/loss 1 1.0\n"
            "hparam campaign.name str 'a' /\n"
            "text deck 0 \"    &campaign\\n      name = 'a' /\\n\"\n");
  { Metrics(run.path(), 1).write(2, {{"train/loss", 2.0}}); }
  EXPECT_NE(read_by_tensorboard(run).find("text deck 1 "), std::string::npos)
      << "a resumed run has its own";
}

/// For TensorBoard's comparison of runs.
TEST(TensorBoard, TheDecksValuesAreSettings) {
  Scratch run;
  run.write("deck.in",
            "&campaign\n  name = 'it''s'\n  max_steps = 300\n/\n&optimizer\n  lr = 6e-4\n/\n"
            "&evaluation\n  compare_with = 'a', 'b'\n! stop = \n/\n&model\n  tied = .true.\n/\n");
  { Metrics(run.path(), -1).write(1, {{"train/loss", 1.0}}); }
  const std::string read = read_by_tensorboard(run);
  for (const char* line :
       {"hparam campaign.name str it's\n", "hparam campaign.max_steps float 300.0\n",
        "hparam optimizer.lr float 0.0006\n", "hparam evaluation.compare_with str 'a', 'b'\n",
        "hparam evaluation.stop str \n", "hparam model.tied bool True\n"})
    EXPECT_NE(read.find(line), std::string::npos) << line << "in\n" << read;
}

/// TensorBoard sorts groups with capitals first.
TEST(TensorBoard, LossesAndScoresComeFirstAndScalarsAreDescribed) {
  Scratch run;
  {
    Metrics metrics(run.path(), -1);
    for (const int step : {1, 2})
      metrics.write(step, {{"data/fill", 1.0},
                           {"train/loss_plan", 2.0},
                           {"train/loss_scale", 4.0},
                           {"train/lr", 0.5},
                           {"val/exact_match", 0.25},
                           {"val/accuracy", 0.5}});
    metrics.show(2, "val/samples", "once <upon> a\ntime");
  }
  const std::string read = read_by_tensorboard(run, true);
  for (const char* line :
       {"Loss/train/loss_plan 2 2.0\n", "Score/val/exact_match 1 0.25\n",
        "Score/val/accuracy 1 0.5\n", "train/loss_scale 1 4.0\n", "about train/lr: Learning rate\n",
        "about Score/val/exact_match: Problems solved\n",
        "text val/samples 2 '    once <upon> a\\n    time\\n'\n"})
    EXPECT_NE(read.find(line), std::string::npos) << line << "in\n" << read;
}

TEST(TensorBoard, ChecksumIsThatOfRfc3720) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

TEST(TensorBoard, ADamagedRecordEndsTheFile) {
  const std::string one =
      detail::frame_record(detail::summary_event(1.0, 7, {{"train/loss", 1.0, "a loss"}}));
  for (std::size_t at = 0; at < one.size(); ++at) {
    std::string damaged = one;
    damaged[at] ^= 0x10;
    std::string_view rest = damaged;
    EXPECT_FALSE(detail::take_record(rest)) << "byte " << at;
  }
  std::string_view rest = one;
  const auto record = detail::take_record(rest);
  ASSERT_TRUE(record);
  EXPECT_EQ(detail::event_step(*record), 7);
  EXPECT_FALSE(detail::event_step(record->substr(0, record->size() - 1)));
  EXPECT_TRUE(rest.empty());
}

}  // namespace
}  // namespace tern::report
