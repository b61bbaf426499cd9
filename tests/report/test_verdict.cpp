// The verdict of a refinement campaign: each finding good and bad, from metrics.jsonl to the page.
#include "report/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "deck/rules.hpp"
#include "report/detail/history.hpp"
#include "report/detail/plots.hpp"
#include "report/detail/stability.hpp"
#include "report/metrics.hpp"
#include "report/report.hpp"
#include "scratch.hpp"

namespace tern::report {
namespace {

using test::Scratch;

const double nan = std::nan("");

deck::Deck deck_of(const std::string& preset_name) {
  deck::Deck deck;
  deck.objective.kind = "refinement";
  deck.objective.preset = preset_name;
  deck.campaign.max_steps = 200;
  deck.optimizer.warmup_steps = 50;
  if (const auto* preset = deck::preset_of(deck.objective)) {
    deck.objective.weight_base = preset->weight_base;
    deck.objective.reward = preset->reward;
    deck.objective.refinement_range = preset->refinement_range;
    deck.objective.norm_range = preset->norm_range;
  }
  return deck;
}

/// A run of 200 steps, logged every tenth step, evaluated at 0, 100 and 200. Tests change members.
struct Course {
  std::vector<double> shares = {1.0, 0.9, 0.85, 0.8};  // each answer's loss relative to the first's
  double norm = 1;
  std::map<std::int64_t, double> norms = {};   // at single steps
  std::map<std::int64_t, double> scales = {};  // factors of the training losses at single steps
  double skipped = 0;
  std::int64_t log_every = 10;
  std::vector<std::int64_t> evaluations = {0, 100, 200};
  double fall = 1;  // of the loss over the run, in nats

  double loss(std::int64_t step) const { return 5 - fall * double(step) / 200; }

  Values step_losses(const std::string& kind, double first) const {
    Values values{{kind + "/refinement", 1 - shares.back()}};
    for (std::size_t s = 0; s < shares.size(); ++s)
      values.emplace_back(kind + "/loss_step_" + std::to_string(s), first * shares[s]);
    return values;
  }
  void write(const std::filesystem::path& directory) const {
    Metrics metrics(directory, 0);
    for (std::int64_t step = 0; step <= 200; ++step) {
      if (step > 0 && step % log_every == 0) {
        const double first = loss(step) * (scales.contains(step) ? scales.at(step) : 1);
        Values values = step_losses("train", first);
        values.emplace_back("train/loss", first * shares.back() - 1);
        values.emplace_back("train/grad_norm", norms.contains(step) ? norms.at(step) : norm);
        values.emplace_back("train/skipped", skipped);
        metrics.write(step, values);
      }
      if (std::find(evaluations.begin(), evaluations.end(), step) == evaluations.end()) continue;
      Values values = step_losses("val", loss(step));
      values.emplace_back("val/loss", loss(step) * shares.back());
      metrics.write(step, values);
    }
  }
};

Verdict verdict_of(const Course& run, const deck::Deck& deck) {
  Scratch directory;
  run.write(directory.path());
  return judge(directory.path(), deck);
}

const Finding& finding(const Verdict& verdict, const std::string& name) {
  for (const Finding& f : verdict.findings)
    if (f.name == name) return f;
  throw std::runtime_error("no finding " + name);
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The findings that are not good, as "name: grade".
std::vector<std::string> complaints(const Verdict& verdict) {
  std::vector<std::string> all;
  for (const Finding& f : verdict.findings) {
    if (f.grade != Grade::good) all.push_back(f.name + ": " + grade_name(f.grade));
    EXPECT_EQ(f.advice.empty(), f.grade == Grade::good) << f.name << ": " << f.advice;
    EXPECT_FALSE(f.found.empty() || f.expected.empty()) << f.name;
  }
  return all;
}
using Complaints = std::vector<std::string>;

TEST(Verdict, AGoodRunOfEachPreset) {
  const Verdict aggressive = verdict_of({}, deck_of("aggressive"));
  EXPECT_EQ(complaints(aggressive), Complaints{});
  EXPECT_TRUE(aggressive.succeeded());
  EXPECT_EQ(aggressive.step, 200);
  EXPECT_NEAR(aggressive.loss, 4 * 0.8, 1e-12);
  EXPECT_NEAR(finding(aggressive, "refinement").figure, 0.2, 1e-12);
  EXPECT_EQ(finding(aggressive, "order").found, "4.0000 > 3.6000 > 3.4000 > 3.2000");
  EXPECT_NEAR(finding(aggressive, "progress").figure, -0.8, 1e-12);

  const Course strong{.shares = {1, 0.6, 0.4, 0.3}, .norm = 5};
  EXPECT_EQ(complaints(verdict_of(strong, deck_of("extreme"))), Complaints{});
  EXPECT_EQ(complaints(verdict_of(strong, deck_of("aggressive"))),
            (Complaints{"refinement: remark", "gradient norm: warning"}));
  EXPECT_EQ(complaints(verdict_of({}, deck_of("extreme"))),
            (Complaints{"refinement: failure", "gradient norm: warning"}));
}

TEST(Verdict, AnAnswerThatIsWorseThanTheOneBeforeFails) {
  const Verdict rising = verdict_of({.shares = {1, 0.7, 0.75, 0.8}}, deck_of("none"));
  EXPECT_EQ(complaints(rising), Complaints{"order: failure"});
  EXPECT_FALSE(rising.succeeded());
  EXPECT_EQ(finding(rising, "order").found,
            "4.0000 > 2.8000 < 3.0000 < 3.2000; it does not fall from step 1 to 2, 2 to 3");
  EXPECT_EQ(finding(rising, "order").advice, "raise &objective reward above 1");
  EXPECT_EQ(complaints(verdict_of({.shares = {1, 0.8, 0.8, 0.79}}, deck_of("none"))),
            Complaints{"order: failure"})
      << "an answer that is no better is no refinement";
}

TEST(Verdict, RefinementOutsideItsRange) {
  const Verdict below = verdict_of({.shares = {1, 0.98, 0.95, 0.9}}, deck_of("aggressive"));
  EXPECT_EQ(complaints(below), Complaints{"refinement: failure"});
  EXPECT_EQ(finding(below, "refinement").advice,
            "write &objective preset = 'none' with the values of 'aggressive', but reward above 1, "
            "or raise &campaign max_steps above 200");
  const Verdict above = verdict_of({.shares = {1, 0.6, 0.5, 0.4}}, deck_of("none"));
  EXPECT_EQ(complaints(above), Complaints{"refinement: remark"});
  EXPECT_TRUE(above.succeeded());
  EXPECT_TRUE(holds(finding(above, "refinement").advice, "lower &objective reward below 1"));
}

TEST(Verdict, GradientNormsAreThoseAfterTheWarmup) {
  Course run;
  for (std::int64_t step = 10; step <= 50; step += 10) run.norms[step] = 19;
  for (std::int64_t step = 60; step <= 80; step += 10) run.norms[step] = 0.1;
  const Verdict warm = verdict_of(run, deck_of("none"));
  EXPECT_EQ(complaints(warm), Complaints{});
  EXPECT_EQ(finding(warm, "gradient norm").figure, 1);
  EXPECT_EQ(finding(warm, "largest gradient norm").figure, 19);

  const Verdict low = verdict_of({.norm = 0.4}, deck_of("none"));
  EXPECT_EQ(complaints(low), Complaints{"gradient norm: warning"});
  EXPECT_EQ(finding(low, "gradient norm").advice, "raise &objective reward above 1");
  deck::Deck unrewarded = deck_of("none");
  unrewarded.objective.reward = 0;
  unrewarded.optimizer.kind = "muon";
  unrewarded.optimizer.matrix_lr = 0.02;
  const Verdict high = verdict_of({.norm = 1.6}, unrewarded);
  EXPECT_TRUE(high.succeeded());
  EXPECT_EQ(finding(high, "gradient norm").advice,
            "lower &optimizer matrix_lr below 0.02, or raise warmup_steps above 50");

  const Course dull{.shares = {1, 0.98, 0.95, 0.9}, .norm = 1.6};
  EXPECT_EQ(finding(verdict_of(dull, deck_of("none")), "gradient norm").advice,
            "lower &optimizer lr below 0.0003, or raise warmup_steps above 50")
      << "refinement asks for more reward there";
  EXPECT_EQ(finding(verdict_of({.norm = 1.6}, deck_of("none")), "gradient norm").advice,
            "lower &objective reward below 1");

  const Verdict spikes = verdict_of({.norms = {{30, 21}, {90, 50}, {120, 20}}}, deck_of("none"));
  EXPECT_EQ(complaints(spikes), Complaints{"largest gradient norm: warning"});
  EXPECT_EQ(finding(spikes, "largest gradient norm").found, "50 at step 90; 2 of 20 above");
}

TEST(Verdict, WhatIsNotFiniteFails) {
  const Verdict norm = verdict_of({.norms = {{120, nan}, {140, INFINITY}}}, deck_of("extreme"));
  const Finding& lost = finding(norm, "finite values");
  EXPECT_EQ(lost.grade, Grade::failure);
  EXPECT_EQ(lost.found, "2 not finite, the first train/grad_norm at step 120");
  EXPECT_EQ(lost.advice, "set &objective preset = 'aggressive'");
  EXPECT_EQ(finding(norm, "gradient norm").found, "median 1 of 13");

  const Verdict loss = verdict_of({.scales = {{10, nan}}}, deck_of("aggressive"));
  EXPECT_EQ(complaints(loss), Complaints{"finite values: failure"});
  EXPECT_EQ(finding(loss, "finite values").advice,
            "lower &optimizer lr below 0.0003, or raise warmup_steps above 50");

  const Verdict skips = verdict_of({.skipped = 3}, deck_of("none"));
  EXPECT_EQ(complaints(skips), Complaints{"finite values: failure"});
  EXPECT_EQ(finding(skips, "finite values").found, "3 steps skipped");
}

TEST(Verdict, AnEvaluationThatIsNotFiniteIsTheLast) {
  Scratch run;
  Course().write(run.path());
  Values values{{"val/loss", nan}};
  for (int s = 0; s < 4; ++s) values.emplace_back("val/loss_step_" + std::to_string(s), nan);
  Metrics(run.path(), 200).write(201, values);
  const Verdict verdict = judge(run.path(), deck_of("none"));
  EXPECT_EQ(verdict.step, 201);
  EXPECT_TRUE(std::isnan(verdict.loss));
  EXPECT_EQ(complaints(verdict), (Complaints{"order: failure", "refinement: failure",
                                             "finite values: failure", "progress: failure"}));
  for (const char* name : {"order", "refinement", "progress"})
    EXPECT_EQ(finding(verdict, name).advice, "set &objective preset = 'aggressive'") << name;
}

TEST(Verdict, SmoothnessIsOfTheAnswersLosses) {
  const Verdict bump = verdict_of({.scales = {{150, 1.3}}}, deck_of("none"));
  EXPECT_EQ(complaints(bump), Complaints{"smoothness: warning"});
  EXPECT_TRUE(holds(finding(bump, "smoothness").found, "at step 150"));
  const Verdict spike = verdict_of({.scales = {{150, 1.7}}}, deck_of("none"));
  EXPECT_EQ(complaints(spike), Complaints{"smoothness: failure"});
  EXPECT_EQ(complaints(verdict_of({.scales = {{40, 1.7}}}, deck_of("none"))), Complaints{})
      << "within the warmup";
  Course noisy;
  for (std::int64_t step = 10; step <= 200; step += 20) noisy.scales[step] = 0.88;
  const Verdict jitter = verdict_of(noisy, deck_of("none"));
  EXPECT_EQ(complaints(jitter), Complaints{"smoothness: warning"});
  EXPECT_EQ(finding(jitter, "smoothness").advice, "raise &batch global above 0");
}

TEST(Verdict, RiseAndJitterOfKnownLosses) {
  // A slow climb, no step of which is a spike: means over 5 never fall below that of the first 5.
  std::vector<double> climb(5, 2.0);
  for (int i = 1; i <= 20; ++i) climb.push_back(2 + 0.1 * i);
  const detail::Stability up = detail::stability_of(climb);
  EXPECT_NEAR(up.rise, 1.0, 1e-12);
  EXPECT_EQ(up.at, 24u);
  EXPECT_LT(up.jitter, 0.06);

  const detail::Stability down = detail::stability_of({7, 6, 5, 4, 3, 2, 1, 0.5});
  EXPECT_EQ(down.rise, 0);
  EXPECT_NEAR(down.jitter, 0.2, 1e-12) << "of 1/5, 1/4 and 0.5/3";

  const detail::Stability small = detail::stability_of({0.01, 0.01, 0.01, 0.01, 0.01, 0.03});
  EXPECT_NEAR(small.rise, 0.2, 1e-12) << "relative to 0.1";
  EXPECT_EQ(detail::median({3, 1, 2}), 2);
  EXPECT_EQ(detail::median({4, 1, 2, 3}), 2.5);
}

TEST(Verdict, ALossThatDoesNotFallFails) {
  const Verdict verdict = verdict_of({.fall = -0.5}, deck_of("none"));
  EXPECT_EQ(complaints(verdict), Complaints{"progress: failure"});
  EXPECT_EQ(finding(verdict, "progress").found, "4.0000 at step 0, 4.4000 at step 200");
}

TEST(Verdict, MissingMetricsFailAndAreNamed) {
  Scratch empty;
  const Verdict nothing = judge(empty.path(), deck_of("none"));
  EXPECT_EQ(complaints(nothing).size(), 7u);
  EXPECT_EQ(finding(nothing, "order").found, "no val/loss_step_0");
  EXPECT_EQ(finding(nothing, "finite values").found, "no train/loss");
  EXPECT_EQ(finding(nothing, "progress").found, "no val/loss");

  const Verdict rare = verdict_of({.log_every = 20}, deck_of("none"));
  EXPECT_EQ(complaints(rare), (Complaints{"gradient norm: failure", "smoothness: failure"}));
  EXPECT_EQ(finding(rare, "gradient norm").found,
            "only 8 of train/grad_norm after the warmup of 50 steps, 10 needed");
  deck::Deck deck = deck_of("none");
  deck.output.log_every = 20;
  EXPECT_EQ(finding(verdict_of({.log_every = 20}, deck), "smoothness").advice,
            "lower &output log_every to at most 15");
  deck.optimizer.warmup_steps = 195;
  EXPECT_EQ(finding(verdict_of({}, deck), "smoothness").advice,
            "raise &campaign max_steps to at least 205");

  const Verdict once = verdict_of({.evaluations = {200}}, deck_of("none"));
  EXPECT_EQ(complaints(once), Complaints{"progress: failure"});
  EXPECT_EQ(finding(once, "progress").found, "only the evaluation of step 200");

  Scratch stale;
  Course().write(stale.path());
  Metrics(stale.path(), 200).write(201, {{"val/loss", 3}, {"val/loss_step_0", 4}});
  EXPECT_EQ(finding(judge(stale.path(), deck_of("none")), "refinement").found,
            "no val/loss_step_1 at step 201");

  deck::Deck five = deck_of("none");
  five.objective.supervision_steps = 5;
  EXPECT_EQ(finding(verdict_of({}, five), "order").found, "no val/loss_step_4");
}

TEST(Verdict, OtherRunsStandBesideAndFailNothing) {
  Scratch root;
  Course().write(root.path());
  for (const auto& [name, loss] : {std::pair<const char*, double>{"dense", 3.5}, {"wide", 3.0}}) {
    root.write(std::string(name) + "/log.txt", "");
    Metrics metrics(root / name, 0);
    metrics.write(0, {{"val/loss", 5.0}});
    metrics.write(300, {{"val/loss", loss}});
  }
  root.write("broken/metrics.jsonl",
             "{\"step\": 1, \"val/loss\": 4}\n{\"step\": 2, \"val/loss\": null}\n");
  root.write("young/metrics.jsonl", "{\"step\": 1, \"train/loss\": 4}\n");
  deck::Deck deck = deck_of("none");
  for (const char* name : {"dense/", "wide", "none", "broken", "young/."})
    deck.evaluation.compare_with.push_back((root / name).string());
  const Verdict verdict = judge(root.path(), deck);
  EXPECT_EQ(complaints(verdict), Complaints{});
  ASSERT_EQ(verdict.compared.size(), 5u);
  EXPECT_EQ(verdict.compared[0].name, "dense");
  EXPECT_NEAR(verdict.compared[0].difference, -0.3, 1e-12);
  const auto words = [&](std::size_t i) {
    return in_words(verdict.compared[i], "this run's last answer");
  };
  EXPECT_EQ(words(0),
            "3.5000 at step 300; this run's last answer, 3.2000, is lower by 0.3000 (8.6%)");
  EXPECT_EQ(words(1),
            "3.0000 at step 300; this run's last answer, 3.2000, is higher by 0.2000 (6.7%)");
  EXPECT_EQ(words(2), "there is no such directory");
  EXPECT_EQ(words(3), "its last val/loss is not finite");
  EXPECT_EQ(words(4), "its metrics.jsonl has no val/loss");
  EXPECT_EQ(verdict.compared[4].name, "young");
  EXPECT_TRUE(holds(text(verdict), "wide                   3.0000 at step 300")) << text(verdict);

  // The last answer is 3.2: below the baseline, above it, without one.
  const auto against = [&](const char* name) {
    deck.evaluation.baseline = (root / name).string();
    const Verdict graded = judge(root.path(), deck);
    EXPECT_EQ(graded.findings.back().name, "baseline");
    return graded.findings.back();
  };
  EXPECT_EQ(against("dense").grade, Grade::good);
  EXPECT_NEAR(against("dense").figure, -0.3, 1e-12);
  EXPECT_EQ(against("wide").grade, Grade::failure);
  EXPECT_TRUE(holds(against("wide").advice, "raise &objective detach_from above 0"));
  EXPECT_EQ(against("none").grade, Grade::failure);
  EXPECT_TRUE(holds(against("none").advice, "train it first")) << against("none").advice;
  deck.objective.detach_from = deck.objective.supervision_steps - 1;
  EXPECT_TRUE(holds(against("wide").advice, "lower &objective reward"));
  EXPECT_FALSE(judge(root.path(), deck).succeeded());
  EXPECT_TRUE(holds(text(verdict_of({}, deck_of("none"))), "compared runs: none"));
}

TEST(Verdict, TextSaysAllInOneTable) {
  const std::string said = text(verdict_of({.norm = 0.4, .skipped = 1}, deck_of("extreme")));
  EXPECT_TRUE(
      said.starts_with("verdict of recursive refinement at step 200 (preset extreme): failed\n"))
      << said;
  EXPECT_TRUE(holds(said, "  finite values          failure  1 step skipped (expected: each loss "))
      << said;
  EXPECT_TRUE(holds(said, "advice: set &objective preset = 'aggressive'\n")) << said;
}

TEST(Verdict, TheFileIsReadBack) {
  Scratch run;
  Course().write(run.path());
  deck::Deck deck = deck_of("aggressive");
  deck.objective.supervision_steps = 5;  // order has no figure then
  deck.evaluation.compare_with = {(run / "missing").string(), run.path().string()};
  const Verdict verdict = judge(run.path(), deck);
  ASSERT_TRUE(write_verdict(run.path(), verdict));
  const auto json = nlohmann::json::parse(run.read("verdict.json"));
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_EQ(json["succeeded"], false);
  EXPECT_EQ(json["findings"][0]["grade"], "failure");
  EXPECT_TRUE(json["findings"][0]["figure"].is_null());
  EXPECT_EQ(json["findings"][3]["figure"], 1.0);
  const auto back = read_verdict(run.path());
  ASSERT_TRUE(back);
  EXPECT_EQ(text(*back), text(verdict));
  EXPECT_EQ(back->succeeded(), verdict.succeeded());
  EXPECT_EQ(back->compared.at(1).loss, verdict.compared.at(1).loss);
  EXPECT_TRUE(std::isnan(back->compared.at(0).loss));

  EXPECT_FALSE(write_verdict(run / "missing", verdict));
  EXPECT_FALSE(read_verdict(run / "missing"));
  run.write("verdict.json", "{\"verdict\": \"good\"}");
  EXPECT_FALSE(read_verdict(run.path()));
  run.write("verdict.json", "[");
  EXPECT_FALSE(read_verdict(run.path()));
}

TEST(Verdict, AResumedRunHasTheSame) {
  Scratch whole, parts;
  Course().write(whole.path());
  Course().write(parts.path());
  {
    Metrics again(parts.path(), 100);  // drops what came after step 100
    Course run;
    for (std::int64_t step = 110; step <= 200; step += 10) {
      Values values = run.step_losses("train", run.loss(step));
      values.insert(values.end(), {{"train/loss", 1}, {"train/grad_norm", 1}});
      again.write(step, values);
    }
    Values values = run.step_losses("val", run.loss(200));
    values.emplace_back("val/loss", run.loss(200) * 0.8);
    again.write(200, values);
  }
  EXPECT_EQ(text(judge(parts.path(), deck_of("none"))), text(judge(whole.path(), deck_of("none"))));
}

TEST(Verdict, TheReportShowsIt) {
  Scratch run;
  Course().write(run.path());
  make_report(run.path());
  EXPECT_FALSE(holds(run.read("report.html"), "Verdict"));
  deck::Deck deck = deck_of("extreme");
  deck.evaluation.compare_with = {(run / "a<b").string()};
  ASSERT_TRUE(write_verdict(run.path(), judge(run.path(), deck)));
  make_report(run.path());
  const std::string page = run.read("report.html");
  EXPECT_TRUE(holds(page, "<h2>Verdict: <span class=\"failure\">failed</span></h2>"));
  EXPECT_TRUE(holds(page,
                    "<tr><td>refinement<td class=\"failure\">failure<td>0.200<td>0.5 to "
                    "0.97<td>write &amp;objective preset"));
  EXPECT_TRUE(holds(page, "<tr><td>a&lt;b<td>there is no such directory</tr>"));
  EXPECT_TRUE(holds(page, "preset extreme, at step 200</p>"));
  EXPECT_LT(page.find("Verdict"), page.find("<svg"));
  Metrics(run.path(), 200).write(210, {{"train/loss", 1}});
  make_report(run.path());
  EXPECT_TRUE(holds(run.read("report.html"), "at step 200; the run has continued to step 210</p>"));
}

TEST(Verdict, AFileThatIsNoVerdictIsWarnedOf) {
  Scratch run;
  Course().write(run.path());
  run.write("verdict.json", "{\"verdict\": \"good\"}");
  {
    Log log;
    log.open(run / "log.txt");
    make_report(run.path(), log);
  }
  EXPECT_TRUE(holds(run.read("log.txt"), "verdict.json is no verdict")) << run.read("log.txt");
  EXPECT_FALSE(holds(run.read("report.html"), "Verdict"));
  EXPECT_TRUE(holds(run.read("report.html"), "</html>"));
}

TEST(Verdict, StepLossesAndRefinementHaveTheirPlots) {
  Scratch run;
  Course().write(run.path());
  const auto plots = detail::choose_plots(detail::read_history(run / "metrics.jsonl"));
  ASSERT_GE(plots.size(), 4u);
  EXPECT_EQ(plots[1].file, "loss_steps");
  EXPECT_EQ(plots[1].names.size(), 4u);
  EXPECT_EQ(plots[2].file, "val_loss_steps");
  EXPECT_EQ(plots[2].names.front(), "val/loss_step_0");
  EXPECT_EQ(plots[3].names, (std::vector<std::string>{"train/refinement", "val/refinement"}));
}

}  // namespace
}  // namespace tern::report
