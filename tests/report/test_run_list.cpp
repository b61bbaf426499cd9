// The list of a folder's runs, and the runs that one is compared with.
#include <gtest/gtest.h>

#include "job/exit_code.hpp"
#include "job/run_lock.hpp"
#include "job/run_record.hpp"
#include "report/metrics.hpp"
#include "report/report.hpp"
#include "report/run_list.hpp"
#include "scratch.hpp"

namespace tern::report {
namespace {

using test::Scratch;

/// A run of 60 steps with evaluations, the best at step 40.
void write_run(const std::filesystem::path& directory, std::optional<int> code,
               std::int64_t steps = 60) {
  std::filesystem::create_directories(directory);
  job::RunRecord record;
  record.steps = steps;
  record.exit_code = code;
  ASSERT_TRUE(job::write_run_record(directory, record));
  Metrics metrics(directory, -1);
  metrics.write(0, {{"val/loss", 0.5}});
  for (const auto& [step, loss] : {std::pair{20, 4.0}, {40, 3.0}, {60, 3.25}})
    metrics.write(step, {{"val/loss", loss}, {"system/seconds", 2.0 * step}});
}

TEST(RunList, StepLossBestAndTime) {
  Scratch folder;
  write_run(folder / "b", job::finished);
  write_run(folder / "a", job::interrupted, 100);
  folder.write("note.txt", "no run");
  std::filesystem::create_directories(folder / "empty");
  const auto runs = runs_in(folder.path());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].directory, (folder / "a").string());
  EXPECT_EQ(runs[0].state, "interrupted");
  EXPECT_EQ(runs[1].state, "finished");
  EXPECT_EQ(runs[0].step, 60);
  EXPECT_EQ(runs[0].steps, 100);
  EXPECT_EQ(runs[0].loss, 3.25);
  EXPECT_EQ(runs[0].best, 3.0);  // not that of step 0
  EXPECT_EQ(runs[0].best_step, 40);
  EXPECT_EQ(runs[0].seconds, 120);
  const std::string text = table(runs);
  EXPECT_NE(text.find("interrupted  60/100  3.2500           3.0000 at 40  2.0 min  20"),
            std::string::npos)
      << text;
  EXPECT_EQ(runs_in(folder / "a").size(), 1u);
  EXPECT_TRUE(is_run(folder / "a"));
  EXPECT_FALSE(is_run(folder.path()));
}

TEST(RunList, States) {
  Scratch folder;
  const auto state = [&](const char* name) { return runs_in(folder / name).at(0).state; };
  write_run(folder / "early", job::finished, 100);
  write_run(folder / "diverged", job::diverged);
  write_run(folder / "full", job::not_saved);
  write_run(folder / "verdict", job::verdict_failed);
  write_run(folder / "error", 1);
  write_run(folder / "killed", {});
  folder.write("bare/metrics.jsonl", "{\"step\": 3, \"train/loss\": 4}\n");
  folder.write("damaged/run.json", "{");
  EXPECT_EQ(state("early"), "ended early");
  EXPECT_EQ(state("diverged"), "diverged");
  EXPECT_EQ(state("full"), "not saved");
  EXPECT_EQ(state("verdict"), "verdict failed");
  EXPECT_EQ(state("error"), "exit code 1");
  EXPECT_EQ(state("killed"), "killed or failed");
  EXPECT_EQ(state("bare"), "no run.json");
  EXPECT_EQ(state("damaged"), "no run.json");
  EXPECT_NE(table(runs_in(folder / "damaged")).find("no run.json  0     -                -     -"),
            std::string::npos)
      << table(runs_in(folder / "damaged"));
  {
    const job::RunLock lock(folder / "killed");
    EXPECT_TRUE(job::in_use(folder / "killed"));
    EXPECT_EQ(state("killed"), "running");
  }
  EXPECT_EQ(state("killed"), "killed or failed");
}

TEST(ComparedRuns, StandInAReportWithoutAVerdict) {
  Scratch folder;
  write_run(folder / "other", job::finished);
  write_run(folder / "own", job::finished);
  Metrics(folder / "own", 60).write(61, {{"val/loss", 2.6}});
  const std::string other = (folder / "other").string();
  folder.write("own/deck.in", "&evaluation beside = '" + other + "', 'nowhere' /\n");
  EXPECT_EQ(compared_text({other, "nowhere"}, 2.6),
            "compared with " + other +
                ": 3.2500 at step 60; this run's, 2.6000, is lower by 0.6500 (20.0%)\n"
                "compared with nowhere: there is no such directory");
  EXPECT_EQ(compared_text({}, 2.6), "");
  Log silent(false);
  make_report(folder / "own", silent);
  const std::string page = folder.read("own/report.html");
  EXPECT_NE(page.find("<th>Compared with other<td>3.2500 at step 60; this run's, 2.6000, is "
                      "lower by 0.6500 (20.0%)"),
            std::string::npos);
  EXPECT_NE(page.find("<th>Compared with nowhere<td>there is no such directory"),
            std::string::npos);
}

}  // namespace
}  // namespace tern::report
