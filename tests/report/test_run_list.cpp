// The list of a folder's runs, the runs that one is compared with, and several next to each other.
#include <gtest/gtest.h>

#include "job/exit_code.hpp"
#include "job/run_lock.hpp"
#include "job/run_record.hpp"
#include "report/comparison.hpp"
#include "report/detail/deck_values.hpp"
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
  folder.write("own/deck.in", "&evaluation compare_with = '" + other + "', 'nowhere' /\n");
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

TEST(Comparison, ResultsAndDifferencesOfDecks) {
  Scratch folder;
  write_run(folder / "a", job::finished);
  write_run(folder / "b<i>", job::interrupted, 100);
  folder.write("a/deck.in", "&campaign\n  name = 'a'\n/\n&model\n  heads = 4\n  layers = 2\n/\n");
  folder.write("b<i>/deck.in",
               "&campaign\n  name = 'b'\n/\n&model\n  heads = 8\n  layers = 2\n! gates = \n/\n");
  const std::string text = compare({(folder / "a").string(), (folder / "b<i>/").string()});
  EXPECT_NE(
      text.find("run   state        step    validation loss  best          time     solved  "
                "tokens/s\n"
                "a     finished     60/60   3.2500           3.0000 at 40  2.0 min  -       -\n"
                "b<i>  interrupted  60/100  3.2500           3.0000 at 40  2.0 min  -       -\n"
                "\n"
                "deck value     a    b<i>\n"
                "campaign.name  'a'  'b'\n"
                "model.heads    4    8\n"
                "model.gates    -    (none)\n"),
      std::string::npos)
      << text;
  const std::string file = (folder / "a/compare.html").string();
  EXPECT_TRUE(text.ends_with("curves and tables: " + file + "\n")) << text;
  const std::string page = folder.read("a/compare.html");
  EXPECT_NE(page.find("<tr><td>model.heads<td>4<td>8</tr>"), std::string::npos);
  EXPECT_NE(page.find("Validation loss"), std::string::npos);
  EXPECT_EQ(page.find("<i>"), std::string::npos) << "names are escaped";
  EXPECT_NE(page.find("\"label\":\"b\\u003ci>\""), std::string::npos);
  EXPECT_NE(page.find("</svg>"), std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "b<i>"))
    EXPECT_NE(entry.path().filename(), "compare.html") << "the first run's directory only";
}

TEST(Comparison, EqualDecksAndNames) {
  Scratch folder;
  for (const char* name : {"x/run", "y/run"}) {
    write_run(folder / name, job::finished);
    folder.write(std::string(name) + "/deck.in", "&model\n  heads = 4\n/\n");
  }
  const std::string text = compare({(folder / "x/run").string(), (folder / "y/run").string()});
  EXPECT_NE(text.find("The decks of the runs are the same."), std::string::npos) << text;
  EXPECT_NE(text.find("y/run"), std::string::npos) << "told apart by their paths: " << text;
}

TEST(Comparison, MistakesNameTheDirectoryAndTheRemedy) {
  Scratch folder;
  write_run(folder / "a", job::finished);
  folder.write("note/text", "no run");
  const std::string a = (folder / "a").string(), none = (folder / "none").string(),
                    note = (folder / "note").string();
  test::expect_user_error([&] { compare({a}); }, {"at least two runs", "--compare runs/a runs/b"});
  test::expect_user_error(
      [&] {
        compare({a, none});
      },
      {"--compare " + none + ": no such directory", "trainer --list"});
  test::expect_user_error([&] { compare({a, note}); }, {"--compare " + note, "metrics.jsonl"});
  test::expect_user_error([&] { compare({a, a + "/."}); }, {"the same run as " + a, "leave"});
  EXPECT_FALSE(std::filesystem::exists(folder / "a/compare.html"));
}

TEST(Comparison, ValuesOfADeckAsItIsPrinted) {
  deck::Deck deck;
  deck.campaign.name = "it's = 1";
  deck.model.heads = 7;
  const auto values = detail::deck_values(deck::print(deck, false));
  const auto value = [&](const std::string& wanted) {
    for (const auto& [name, text] : values)
      if (name == wanted) return text;
    return std::string("absent");
  };
  EXPECT_EQ(value("campaign.name"), "'it''s = 1'");
  EXPECT_EQ(value("model.heads"), "7");
  EXPECT_EQ(value("generation.stop"), "");
  EXPECT_GT(values.size(), 100u);
}

}  // namespace
}  // namespace tern::report
