// The report of a run: which plots, what is on the page, and what happens without gnuplot.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "job/run_record.hpp"
#include "report/detail/history.hpp"
#include "report/detail/page.hpp"
#include "report/detail/plots.hpp"
#include "report/metrics.hpp"
#include "report/report.hpp"
#include "scratch.hpp"

namespace tern::report {
namespace {

using test::Scratch;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

void write_run(const Scratch& run, int steps) {
  Metrics metrics(run.path(), 0);
  for (int step = 1; step <= steps; ++step) {
    metrics.write(step,
                  {{"train/loss", 3.0 + std::exp(-step / 50.0)},
                   {"train/lr", 1e-3 / step},
                   {"train/throughput", 1000.0 + step % 7},
                   {"train/grad_norm", 1.0},
                   {"system/gpu_memory_allocated", 0x1p30},
                   {"train/loss_step_0", 2.0},
                   {"train/loss_step_1", 1.0},
                   {"train/wait", 0.1 * step},
                   {"train/skipped", 0.0},
                   {"train/tokens", 2048.0 * step}},
                  {{"samples_hash", "91c0"}});
    if (step % 10 == 0) metrics.write(step, {{"val/loss", 3.1}});
  }
}

// Sets PATH for its lifetime.
class Path {
 public:
  explicit Path(const std::string& value) : before_(std::getenv("PATH")) {
    ::setenv("PATH", value.c_str(), 1);
  }
  ~Path() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(Report, SensorsOfTheRanksArePlottedButNotTheirNumbers) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (int step = 1; step <= 20; ++step)
      metrics.write(step, {{"system/gpu_power", 600.0 + step},
                           {"system/gpu_power_max", 650.0 + step},
                           {"system/gpu_hottest_rank", step % 4},
                           {"system/slowest_rank", step % 3},
                           {"system/slowest_rank_excess", 0.01 * step}});
  }
  std::vector<std::string> drawn;
  std::size_t power = 0;
  for (const auto& plot : detail::choose_plots(detail::read_history(run / "metrics.jsonl"))) {
    drawn.push_back(plot.file);
    if (plot.file == "gpu_power") power = plot.names.size();
  }
  EXPECT_EQ(drawn, (std::vector<std::string>{"gpu_power", "slowest_rank"}));
  EXPECT_EQ(power, 2u) << "mean and largest together";
}

TEST(Report, PlotsAreChosenFromWhatWasLogged) {
  Scratch run;
  write_run(run, 20);
  const auto plots = detail::choose_plots(detail::read_history(run / "metrics.jsonl"));
  std::vector<std::string> files;
  for (const auto& plot : plots) files.push_back(plot.file);
  EXPECT_EQ(files, (std::vector<std::string>{"loss", "loss_steps", "throughput", "grad_norm", "lr",
                                             "memory", "train_wait"}));
  EXPECT_EQ(plots[0].names, (std::vector<std::string>{"train/loss", "val/loss"}));
  EXPECT_EQ(plots[1].names, (std::vector<std::string>{"train/loss_step_0", "train/loss_step_1"}));
}

TEST(Report, MemoryOfTheProcessIsDrawnOnceWhereItIsTheDevices) {
  for (const double of_device : {1.0, 2.0}) {
    Scratch run;
    {
      Metrics metrics(run.path(), 0);
      for (int step = 1; step <= 3; ++step)
        metrics.write(step, {{"system/gpu_memory_allocated", of_device * step},
                             {"system/gpu_memory_peak", of_device * step},
                             {"system/process_memory", step},
                             {"system/process_memory_peak", step}});
    }
    const auto plots = detail::choose_plots(detail::read_history(run / "metrics.jsonl"));
    ASSERT_EQ(plots.size(), 1u);
    std::vector<std::string> drawn{"system/process_memory", "system/process_memory_peak"};
    if (of_device > 1)
      drawn.insert(drawn.begin(), {"system/gpu_memory_allocated", "system/gpu_memory_peak"});
    EXPECT_EQ(plots[0].names, drawn);
  }
}

TEST(Report, AProfileIsDrawnOverItsNumbers) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (const int step : {1, 2})
      metrics.write(step, {{"train/loss", 3.0 / step},
                           {"val/accuracy_t/0.250", 0.25 * step},
                           {"val/accuracy_t/0.750", 0.125 * step}});
  }
  const auto history = detail::read_history(run / "metrics.jsonl");
  const auto plots = detail::choose_plots(history);
  ASSERT_EQ(plots.size(), 2u);
  EXPECT_EQ(plots[1].file, "accuracy_t");
  EXPECT_EQ(plots[1].names, (std::vector<std::string>{"val/accuracy_t"}));
  const std::string program = detail::gnuplot_program(history, plots);
  EXPECT_EQ(count(program, "set xlabel 'fraction of masked tokens, t'"), 1u);
  EXPECT_NE(program.find("0.25 0.5\n0.75 0.25\n"), std::string::npos) << program;
}

TEST(Report, OnePageWithPlotsTableDeckAndSamples) {
  Scratch run;
  write_run(run, 300);
  run.write("deck.in", "&campaign name = 'a<b' / ! R&D\n");
  run.write("samples.txt", "Once upon <a> time");
  run.write("log.txt", "step 300  loss 3.00\n");
  make_report(run.path());
  const std::string page = run.read("report.html");
  EXPECT_EQ(count(page, "<svg"), 7u);
  EXPECT_EQ(count(page, "</svg>"), 7u);
  EXPECT_NE(page.find("R&amp;D"), std::string::npos);
  EXPECT_NE(page.find("Once upon &lt;a&gt; time"), std::string::npos);
  EXPECT_NE(page.find("step 300  loss 3.00"), std::string::npos);
  EXPECT_NE(page.find("<tr><td>Validation loss <code>val/loss</code><td>3.1<td>300<td>3.1<td>3.1"),
            std::string::npos);
  for (const char* fetched :
       {"<script", "<link", "src=", "url(", "@import", "href='http", "href=\"http"})
    EXPECT_EQ(page.find(fetched), std::string::npos)
        << "the page needs nothing but itself: " << fetched;
  for (const char* file : {"loss.svg", "lr.svg", "memory.svg"})
    EXPECT_NE(run.read(file).find("</svg>"), std::string::npos) << file;
  EXPECT_FALSE(std::filesystem::exists(run / ".report"));
}

TEST(Report, WithoutGnuplotItHasNoPlotsAndSaysSoOnce) {
  Scratch run, nothing;
  write_run(run, 20);
  const Path path(nothing.path().string());
  {
    Log log;
    log.open(run / "log.txt");
    Report report(run.path(), log);
    report.make();
    report.make();
  }
  EXPECT_EQ(count(run.read("log.txt"), "gnuplot was not found"), 1u) << run.read("log.txt");
  const std::string page = run.read("report.html");
  EXPECT_EQ(count(page, "<svg"), 0u);
  EXPECT_NE(page.find("<code>train/loss</code>"), std::string::npos);
}

std::vector<std::string> names_of(const std::vector<detail::Plot>& plots, const std::string& file) {
  for (const auto& plot : plots)
    if (plot.file == file) return plot.names;
  return {};
}

/// A sum of weighted parts is not the quantity that validation measures: it gets its own plot.
TEST(Report, TrainingAndValidationAreDrawnTogetherOnlyIfTheyAreTheSameQuantity) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (const int step : {1, 2})
      metrics.write(step, {{"train/loss", 6.0 / step},
                           {"train/loss_per_token", 3.0 / step},
                           {"train/loss_plan", 2.0 / step},
                           {"train/loss_execution", 4.0 / step},
                           {"val/loss_plan", 2.5},
                           {"val/loss", 3.0 / step},
                           {"train/clip_low_plan", 0.5 * (step - 1)},
                           {"train/clip_high_plan", 1.0}});
  }
  const auto history = detail::read_history(run / "metrics.jsonl");
  const auto plots = detail::choose_plots(history);
  EXPECT_EQ(names_of(plots, "loss"),
            (std::vector<std::string>{"train/loss_per_token", "val/loss"}));
  EXPECT_EQ(names_of(plots, "clip"),
            (std::vector<std::string>{"train/clip_high_plan", "train/clip_low_plan"}));
  EXPECT_EQ(names_of(plots, "objective"), std::vector<std::string>{"train/loss"});
  const std::string program = detail::gnuplot_program(history, plots);
  for (const char* legend : {"title 'training'", "title 'validation'", "title 'plan, training'",
                             "title 'plan, validation'", "title 'low plan'"})
    EXPECT_EQ(count(program, legend), 1u) << legend;
  EXPECT_EQ(count(program, "train/"), 0u) << "names are for programs";
}

/// No value is beyond an axis, including the first ones; where they differ much it is logarithmic.
TEST(Report, TheBeginningOfACurveIsDrawn) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (int step = 0; step <= 1000; ++step)
      metrics.write(step,
                    {{"val/loss", step < 5 ? 7.0 : 0.05}, {"val/perplexity", 2.0 + step % 2}});
  }
  const auto history = detail::read_history(run / "metrics.jsonl");
  const auto plots = detail::choose_plots(history);
  const std::string program = detail::gnuplot_program(history, plots);
  EXPECT_NE(program.find("set logscale y\nset ytics (1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1e0, 2e0, "
                         "5e0, 1e1, 2e1, 5e1)\nset yrange [0.0463:7.56]"),
            std::string::npos)
      << program.substr(0, 400);
  EXPECT_EQ(count(program, "\nset logscale y"), 1u)
      << "from 2 to 3 a linear axis is easier to read";
  EXPECT_EQ(count(program, "set yrange [*:*]"), 1u);
}

TEST(Report, TheHeadSaysWhatRanWhereAndHowItEnded) {
  Scratch run;
  write_run(run, 300);
  job::RunRecord record;
  record.program = "tern 0.1.0";
  record.commit = "0a1b2c3";
  record.started = "2026-01-02 03:04:05 UTC";
  record.host = "node<7>";
  record.device = "NVIDIA H200";
  record.model = "124 M parameters";
  record.ranks = 16;
  record.ranks_per_host = 8;
  record.threads = 4;
  record.steps = 300;
  const auto shows = [&](const std::string& text) {
    EXPECT_TRUE(job::write_run_record(run.path(), record));
    make_report(run.path());
    EXPECT_NE(run.read("report.html").find(text), std::string::npos) << text;
  };
  shows("<tr><th>Ended<td>still running");
  shows("<tr><th>Model<td>124 M parameters</tr>");
  shows("<tr><th>Where<td>16 ranks x 4 threads, 8 per host, NVIDIA H200, on node&lt;7&gt;</tr>");
  shows("<tr><th>Steps<td>300 of 300</tr>");
  shows("<tr><th>Tokens<td>614.4 thousand</tr>");
  shows("<tr><th>Best<td>validation loss 3.1000 at step 10</tr>");
  shows("<tr><th>Program<td>tern 0.1.0, commit 0a1b2c3</tr>");
  shows("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
  record.end(0);
  shows("<tr><th>Ended<td>finished, 20");
  record.steps = 1000;
  shows("before its last step: by target_loss, patience or max_hours");
  record.end(75);
  shows("stopped by a signal or the job's time limit (exit code 75)");
  record.end(74);
  shows("a checkpoint, an evaluation or metrics could not be written (exit code 74)");
  run.write("run.json", "{\"program\": 3}");
  make_report(run.path());
  EXPECT_EQ(count(run.read("report.html"), "<th>Program"), 0u);
}

TEST(Report, AnEmptyRunHasAReportToo) {
  Scratch run;
  run.write("metrics.jsonl",
            "not json\n{\"step\": \"x\"}\n[]\n{\"step\": 3, \"train/loss\": null}\n{\"st");
  make_report(run.path());
  EXPECT_NE(run.read("report.html").find("</html>"), std::string::npos);
}

TEST(Report, AProgramThatHangsIsEnded) {
  Scratch run;
  EXPECT_EQ(detail::run_program({"sleep", "600"}, run / "out.txt", std::chrono::seconds(0)),
            detail::Ending::timed_out);
  EXPECT_EQ(detail::run_program({"false"}, run / "out.txt", std::chrono::hours(1)),
            detail::Ending::failed);
  EXPECT_EQ(detail::run_program({"echo", "$HOME; x"}, run / "out.txt", std::chrono::hours(1)),
            detail::Ending::success);
  EXPECT_EQ(run.read("out.txt"), "$HOME; x\n") << "no shell in between";
}

TEST(Report, LongRunsAreThinnedWithoutLosingSpikes) {
  detail::Curve curve;
  for (int i = 0; i < 100000; ++i) {
    curve.step.push_back(i);
    curve.value.push_back(i == 54321 ? 9.0 : i == 77777 ? -9.0 : 1.0);
  }
  const detail::Curve thin = detail::downsampled(curve, 2000);
  EXPECT_LE(thin.value.size(), 2000u);
  const auto spike = std::find(thin.value.begin(), thin.value.end(), 9.0);
  ASSERT_NE(spike, thin.value.end());
  EXPECT_EQ(thin.step[std::size_t(spike - thin.value.begin())], 54321);
  EXPECT_NE(std::find(thin.value.begin(), thin.value.end(), -9.0), thin.value.end());
  EXPECT_TRUE(std::is_sorted(thin.step.begin(), thin.step.end()));
  EXPECT_EQ(detail::downsampled(thin, 2000).value, thin.value);
}

TEST(Report, SmoothingKeepsStraightLinesStraight) {
  detail::Curve line;
  for (int i = 0; i < 50; ++i) line.step.push_back(i), line.value.push_back(2.0 * i);
  const detail::Curve smooth = detail::smoothed(line, 8);
  for (std::size_t i = 0; i < 46; ++i) EXPECT_NEAR(smooth.value[i], line.value[i], 1e-9);
}

}  // namespace
}  // namespace tern::report
