// The report of a run: which plots and axes, what is on the page, and what happens without gnuplot.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "job/run_record.hpp"
#include "report/detail/gnuplot.hpp"
#include "report/detail/history.hpp"
#include "report/detail/page.hpp"
#include "report/detail/page_files.hpp"
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

/// The program that draws all plots of a history.
std::string program_of(const detail::History& history) {
  return detail::gnuplot_program(detail::figures_of(history, detail::choose_plots(history)));
}

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
  EXPECT_EQ(drawn, (std::vector<std::string>{"slowest_rank", "gpu_power"}));
  EXPECT_EQ(power, 2u) << "mean and largest together";
}

TEST(Report, PlotsAreChosenFromWhatWasLogged) {
  Scratch run;
  write_run(run, 20);
  const auto plots = detail::choose_plots(detail::read_history(run / "metrics.jsonl"));
  std::vector<std::string> files;
  for (const auto& plot : plots) files.push_back(plot.file);
  EXPECT_EQ(files, (std::vector<std::string>{"loss", "loss_steps", "throughput", "memory",
                                             "grad_norm", "lr", "train_wait"}));
  EXPECT_EQ(plots[0].names, (std::vector<std::string>{"train/loss", "val/loss"}));
  EXPECT_EQ(plots[1].names, (std::vector<std::string>{"train/loss_step_0", "train/loss_step_1"}));
}

/// A peak lies on the curve of what is in use, and hides it.
TEST(Report, MemoryHasAPlotForGpuAndHostWithoutPeaks) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (int step = 1; step <= 3; ++step)
      metrics.write(step, {{"system/gpu_memory_allocated", 2.0 * step},
                           {"system/gpu_memory_peak", 2.0 * step},
                           {"system/process_memory", step},
                           {"system/process_memory_peak", step}});
  }
  const auto plots = detail::choose_plots(detail::read_history(run / "metrics.jsonl"));
  ASSERT_EQ(plots.size(), 2u);
  EXPECT_EQ(plots[0].names, std::vector<std::string>{"system/gpu_memory_allocated"});
  EXPECT_EQ(plots[1].names, std::vector<std::string>{"system/process_memory"});
  for (const auto& plot : plots) EXPECT_EQ(plot.section, detail::Section::machine);
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
  const std::string program = program_of(history);
  EXPECT_EQ(count(program, "set xlabel 'fraction of masked tokens, t'"), 1u);
  EXPECT_NE(program.find("0.25 50\n0.75 25\n"), std::string::npos) << "in percent: " << program;
}

TEST(Report, OnePageWithCardsPlotsTableDeckAndSamples) {
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
  for (const char* file : {"loss.svg", "lr.svg", "memory.svg"})
    EXPECT_NE(run.read(file).find("</svg>"), std::string::npos) << file;
  EXPECT_FALSE(std::filesystem::exists(run / ".report"));
  // In this order; all behind the samples is folded.
  std::size_t at = 0;
  for (const char* part : {"class=\"cards\"", "Loss per token", "<h2>Samples", "<details>",
                           "<summary>Speed", "<summary>Machine", "<summary>Optimizer and data",
                           "<summary>Last values", "<summary>Deck"}) {
    const std::size_t found = page.find(part, at);
    ASSERT_NE(found, std::string::npos) << part;
    at = found;
  }
}

/// The plotting library is part of the build, and the page fetches nothing.
TEST(Report, ThePageNeedsNothingButItself) {
  ASSERT_NE(detail::dygraphs_js(), "")
      << "this build lacks dygraphs (Debian, Ubuntu: libjs-dygraphs)";
  EXPECT_NE(detail::dygraphs_js().find("(MIT)"), std::string_view::npos) << "keeps its license";
  Scratch run;
  write_run(run, 20);
  make_report(run.path());
  std::string page = run.read("report.html");
  EXPECT_NE(page.find("content=\"default-src 'none';"), std::string::npos);
  EXPECT_EQ(count(page, "</script>"), 3u) << "data, library, script of the page";
  for (const std::string_view own : {detail::dygraphs_js(), detail::report_js()}) {
    const std::size_t at = page.find(own);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(own.find("</"), own.find("</div>")) << "nothing in it ends its element";
    page.erase(at, own.size());
  }
  for (const char* fetched :
       {"<link", "src=", "url(", "@import", "href='http", "href=\"http", "sourceMappingURL"})
    EXPECT_EQ(page.find(fetched), std::string::npos) << fetched;
}

TEST(Report, TextsOfARunAreNeitherMarkupNorScript) {
  Scratch run;
  const std::string bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
  {
    Metrics metrics(run.path(), -1);
    for (const int step : {1, 2})
      metrics.write(step, {{"train/loss", 1.0 * step}, {"train/" + bad, 2.0 * step}},
                    {{"samples_hash", bad}});
  }
  for (const char* file : {"deck.in", "samples.txt", "log.txt"}) run.write(file, bad);
  job::RunRecord record;
  record.program = record.commit = record.started = record.host = record.device = record.model =
      record.batch = record.precision = bad;
  record.end(0);
  ASSERT_TRUE(job::write_run_record(run.path(), record));
  make_report(run.path());
  const std::string page = run.read("report.html");
  EXPECT_GT(count(page, "&lt;/script&gt;&lt;script&gt;"), 6u);
  EXPECT_NE(page.find("\\u003c/script>"), std::string::npos) << "the data of the charts";
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<script>alert"), 0u);
  EXPECT_EQ(count(page, "</script>"), 3u);
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
  EXPECT_GT(count(page, "<figure data-plot"), 0u) << "charts need no gnuplot";
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
  const std::string program = program_of(history);
  for (const char* legend : {"title 'training'", "title 'validation'", "title 'plan, training'",
                             "title 'plan, validation'", "title 'low plan'"})
    EXPECT_EQ(count(program, legend), 1u) << legend;
  EXPECT_EQ(count(program, "train/"), 0u) << "names are for programs";
  EXPECT_EQ(count(program, "set key"), plots.size() + 1) << "below each plot, and common settings";
}

detail::Axis axis_of(detail::Range range, std::vector<double> values, const char* unit = "") {
  detail::Plot plot{"a", "A", unit, 1, range};
  detail::Line line;
  line.points.value = std::move(values);
  return detail::axis_of(plot, {line});
}

/// No value is beyond an axis, including the first ones; where they differ much it is logarithmic.
TEST(Report, TheBeginningOfACurveIsDrawn) {
  const auto loss = axis_of(detail::Range::wide, {7.0, 1.0, 0.05});
  EXPECT_TRUE(loss.logarithmic);
  EXPECT_LT(loss.low, 0.05);
  EXPECT_GT(loss.high, 7.0);
  EXPECT_FALSE(axis_of(detail::Range::wide, {2, 3}).logarithmic)
      << "from 2 to 3 a linear axis is easier to read";
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (int step = 0; step <= 1000; ++step)
      metrics.write(step, {{"val/loss", step < 5 ? 7.0 : 0.05}});
  }
  const std::string program = program_of(detail::read_history(run / "metrics.jsonl"));
  EXPECT_NE(program.find("set logscale y\nset ytics (1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1e0, 2e0, "
                         "5e0, 1e1, 2e1, 5e1)\nset yrange [0.0463:7.56]"),
            std::string::npos)
      << program.substr(0, 400);
}

TEST(Report, NoiseDoesNotFillAnAxis) {
  const auto noise = axis_of(detail::Range::values, {0.449, 0.4515});
  EXPECT_GE(noise.high - noise.low, detail::least_span * 0.4515);
  EXPECT_LT(noise.low, 0.449);
  EXPECT_GT(noise.high, 0.4515);
  const auto constant = axis_of(detail::Range::values, {0, 0});
  EXPECT_LT(constant.low, constant.high);
  const auto change = axis_of(detail::Range::values, {1, 3});
  EXPECT_NEAR(change.high - change.low, 2, 0.2) << "no more than the values need";
  EXPECT_EQ(axis_of(detail::Range::from_zero, {30, 99}, "%").high, 103);
  EXPECT_EQ(axis_of(detail::Range::from_zero, {30, 99}).low, 0);
}

/// Under a legend of several rows the picture grows; the plot area keeps its place.
TEST(Report, PlotAreasOfNeighborsAlign) {
  Scratch run;
  {
    Metrics metrics(run.path(), 0);
    for (const int step : {1, 2}) {
      Values values{{"train/grad_norm", 1.0 * step}};
      for (int answer = 0; answer < 9; ++answer)
        values.emplace_back(fmt::format("val/loss_step_{}", answer), 1.0 * step);
      metrics.write(step, values);
    }
  }
  const std::string program = program_of(detail::read_history(run / "metrics.jsonl"));
  EXPECT_EQ(count(program, "set terminal svg size 480,310 "), 1u);
  EXPECT_EQ(count(program, "set terminal svg size 480,382 "), 1u) << program.substr(0, 600);
  EXPECT_EQ(count(program, "set bmargin at screen 0.2710\nset tmargin at screen 0.8903\n"), 1u);
  EXPECT_EQ(count(program, "set bmargin at screen 0.4084\nset tmargin at screen 0.9110\n"), 1u);
}

/// The score is in percent, with the interval of each evaluation.
TEST(Report, ScoresHaveTheirInterval) {
  Scratch run;
  {
    Metrics metrics(run.path(), -1);
    metrics.write(0, {{"val/loss", 9.0}});
    int step = 0;
    for (const double solved : {0.25, 0.5, 0.375}) {
      step += 100;
      metrics.write(step, {{"val/loss", 2.0 - solved},
                           {"train/loss", 1.5},
                           {"train/throughput", 472735.0},
                           {"train/mfu", 0.41},
                           {"system/seconds", 60.0 * step},
                           {"system/gpu_memory_peak", 0x1p35},
                           {"val/exact_match", solved},
                           {"val/exact_match_low", solved - 0.0625},
                           {"val/exact_match_high", solved + 0.125},
                           {"val/well_formed", 1.0}});
    }
  }
  const auto history = detail::read_history(run / "metrics.jsonl");
  const auto plots = detail::choose_plots(history);
  EXPECT_EQ(names_of(plots, "exact_match"),
            (std::vector<std::string>{"val/exact_match", "val/well_formed"}));
  const std::string program = program_of(history);
  EXPECT_NE(program.find("100 25 18.75 37.5\n200 50 43.75 62.5\n"), std::string::npos) << program;
  EXPECT_EQ(count(program, "with yerrorlines"), 1u);
  deck::Deck deck;
  deck.cost.dollars_per_gpu_hour = 2.5;
  job::RunRecord record;
  record.ranks = 8;
  record.steps = 400;
  std::string cards;
  for (const auto& card : detail::cards_of({"running", record, deck, history}))
    cards += fmt::format("{}: {} ({})\n", card.title, card.value, card.note);
  EXPECT_EQ(cards,
            "Status: running (step 300 of 400 (75%))\n"
            "Problems solved, best: 50.0% (95% interval 43.8 to 62.5%; step 200; last 37.5%)\n"
            "Validation loss: 1.6250 (best 1.5000 at step 200; training 1.5000)\n"
            "Tokens per second: 472,700 (MFU 41.0%)\n"
            "Time left: 100.0 min (5.0 h so far)\n"
            "Cost so far: $100.00 ($2.5 per GPU hour; $133.33 in all)\n"
            "GPU memory, peak: 32.0 GiB (largest rank)\n");
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
  shows("<tr><th>Status<td>running (or killed without writing a record)");
  shows("<tr><th>Model<td>124 M parameters</tr>");
  shows("<tr><th>Where<td>16 ranks x 4 threads, 8 per host, NVIDIA H200, on node&lt;7&gt;</tr>");
  shows("<tr><th>Steps<td>300 of 300</tr>");
  shows("<tr><th>Tokens<td>614.4 thousand</tr>");
  shows("<tr><th>Best<td>validation loss 3.1000 at step 10</tr>");
  shows("<tr><th>Program<td>tern 0.1.0, commit 0a1b2c3</tr>");
  shows("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
  record.end(0);
  shows("<tr><th>Status<td>finished, 20");
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

}  // namespace
}  // namespace tern::report
