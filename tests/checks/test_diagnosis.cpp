// What diagnose prints of what it found.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checks/detail/expected.hpp"
#include "checks/diagnosis.hpp"
#include "checks/recommendation.hpp"

namespace tern::checks {
namespace {

Machine gpu(const char* host, int number, double free_gib) {
  Machine m;
  m.host = host, m.device = "GPU " + std::to_string(number);
  m.free_gib = free_gib, m.total_gib = 80;
  m.processors = "0-7";
  m.bus = "0000:1B:00." + std::to_string(number);
  m.near = "0-55", m.numa_node = 0, m.nvlinks = 18;
  return m;
}

/// Two H100 of one host, as figures of a good node.
Diagnosis found() {
  Diagnosis d;
  d.versions = {{"tern", "1.2.3"}, {"Kokkos", "4.5.1"}};
  d.ranks_of_host = 2;
  d.machines = {gpu("node1", 0, 70), gpu("node1", 1, 71)};
  const char* sheet = "H100's data sheet";
  d.rates = {{"copy (read + write)", "GB/s", 2900, 3000, 1, {3350, sheet}},
             {rate_name::fp8, "TFLOP/s", 1200, 1210, 0, {1978.9, sheet}},
             {rate_name::bf16, "TFLOP/s", 700, 710, 0, {989.4, sheet}},
             {rate_name::fp32, "TFLOP/s", 50, 51, 0, {66.9, sheet}},
             {rate_name::attention_forward, "TFLOP/s", 350, 351, 0, {989.4, sheet}},
             {rate_name::attention_backward, "TFLOP/s", 330, 331, 0, {989.4, sheet}},
             {rate_name::busiest_link, "GB/s", 300, 310, 0, {450, sheet}}};
  d.pairs = {{0, 1, "NVLink", 360, {450, sheet}}};
  d.rows_to_fill = 4096;
  d.checked = "one against the other";
  d.checks = {{"swiglu", "N 3", 1e-3, 1e-3, 2e-3, true, true},
              {"rotary", "N 5", 9e-3, 1e-3, 2e-3, true, true},
              {"norm", "N 7", 1e-4, 1e-3, 2e-3, true, true}};
  d.failed = {1, 0};
  d.warnings = warnings(d);
  d.deck = recommend(d);
  return d;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Diagnosis, TextListsWhatFails) {
  const std::string text = to_text(found(), false);
  EXPECT_TRUE(has(text, "tern 1.2.3, Kokkos 4.5.1\n2 rank(s), 2 on this host\n"));
  EXPECT_TRUE(has(text, "rank 1: node1, GPU 1, 71.0 of 80.0 GiB free\n"));
  EXPECT_TRUE(has(text, "bus 0000:1B:00.1, NUMA node 0, 18 NVLinks, close to processors 0-55; "));
  EXPECT_TRUE(has(text, "2900.0 to    3000.0 GB/s  of 3350.0 (87%), H100's data sheet\n"));
  EXPECT_TRUE(has(text, "NVLink: 1 pair, 360.0 (ranks 0 and 1) to 360.0 GB/s  of 450.0 (80%)"));
  EXPECT_TRUE(has(text, "rotary") && has(text, "FAIL: error"));
  EXPECT_FALSE(has(text, "swiglu"));
  EXPECT_TRUE(has(text, "3 cases; closest to its tolerance: rotary, N 5: 9.0e-03 of 2.0e-03\n"));
  EXPECT_TRUE(has(text, "rank 0: 1 FAIL\nsome operations FAIL\ndeck settings for this machine"));
  EXPECT_FALSE(found().passed());
}

TEST(Diagnosis, TextListsAllIfVerbose) {
  const std::string text = to_text(found(), true);
  EXPECT_TRUE(has(text, "swiglu") && has(text, "norm"));
}

TEST(Diagnosis, TextOfWhatPassesIsShort) {
  Diagnosis d = found();
  d.checks.erase(d.checks.begin() + 1);
  d.failed = {0, 0};
  const std::string text = to_text(d, false);
  EXPECT_TRUE(d.passed());
  EXPECT_TRUE(has(text, "2 cases; closest to its tolerance: swiglu"));
  EXPECT_FALSE(has(text, "verdict"));
  EXPECT_TRUE(has(text, "all operations pass on all ranks\n"));
  EXPECT_TRUE(text.ends_with("  /")) << "the deck is last";
  d.failed.clear(), d.checks.clear(), d.rates.clear();  // neither checked nor measured
  d.pairs.clear(), d.rows_to_fill = 0, d.deck = recommend(d);
  EXPECT_TRUE(to_text(d, false).ends_with("runs on processors 0-7"));
}

TEST(Diagnosis, PairsAreAMatrix) {
  Diagnosis d = found();
  d.machines.push_back(gpu("node2", 0, 70));
  d.pairs = {{0, 1, "NVLink", 360, {}}, {0, 2, "network", 24.5, {}}, {1, 2, "network", 25, {}}};
  const std::string text = to_text(d, false);
  EXPECT_TRUE(has(text, "  NVLink: 1 pair, 360.0"));
  EXPECT_TRUE(has(text, "  network: 2 pairs, 24.5 (ranks 0 and 2) to 25.0 GB/s\n"));
  EXPECT_TRUE(has(text,
                  "  rank       0       1       2\n"
                  "     0       -   360.0    24.5\n"
                  "     1   360.0       -    25.0\n"
                  "     2    24.5    25.0       -\n"));
}

TEST(Diagnosis, JsonHasAll) {
  const auto json = nlohmann::json::parse(to_json(found()));
  EXPECT_EQ(json["versions"]["Kokkos"], "4.5.1");
  EXPECT_EQ(json["ranks"][1]["device"], "GPU 1");
  EXPECT_EQ(json["ranks"][1]["bus"], "0000:1B:00.1");
  EXPECT_EQ(json["ranks"][1]["close_processors"], "0-55");
  EXPECT_EQ(json["rates"][6]["name"], "on the busiest link");
  EXPECT_EQ(json["rates"][6]["most"], 310);
  EXPECT_EQ(json["rates"][0]["slowest_rank"], 1);
  EXPECT_EQ(json["rates"][0]["expected"], 3350);
  EXPECT_EQ(json["pairs"][0]["ranks"], nlohmann::json({0, 1}));
  EXPECT_EQ(json["pairs"][0]["connection"], "NVLink");
  EXPECT_EQ(json["pairs"][0]["expected_of"], "H100's data sheet");
  EXPECT_EQ(json["deck"].size(), found().deck.size());
  EXPECT_EQ(json["warnings"].size(), 0u);
  EXPECT_EQ(json["checks"]["failed_per_rank"], nlohmann::json({1, 0}));
  EXPECT_EQ(json["checks"]["cases"].size(), 3u);
  EXPECT_EQ(json["checks"]["cases"][1]["verdict"], "FAIL: error");
}

/// "group.name = value" of the lines; reasons by hand.
std::string deck_of(const Diagnosis& d) {
  std::string text;
  for (const DeckLine& line : recommend(d)) {
    EXPECT_FALSE(line.reason.empty()) << line.name;
    text += line.group + "." + line.name + " = " + line.value + "\n";
  }
  return text;
}

TEST(Recommendation, FollowsTheRates) {
  Diagnosis d = found();
  EXPECT_EQ(deck_of(d),
            "model.attention = 'auto'\nprecision.compute = 'fp8'\nbatch.per_rank = 0\n"
            "parallel.data = 0\nparallel.tensor = 1\nparallel.shard = 'optimizer'\n");
  d.rates[1].least = 750;  // fp8 gains little
  EXPECT_TRUE(has(deck_of(d), "compute = 'bf16'"));
  d.rates.erase(d.rates.begin() + 1);  // no fp8
  EXPECT_TRUE(has(deck_of(d), "compute = 'bf16'"));
  d.rates[1].least = 55;  // as on a processor
  EXPECT_TRUE(has(deck_of(d), "compute = 'fp32'"));
}

TEST(Recommendation, DoesWithoutWhatFailsItsCheck) {
  Diagnosis d = found();
  d.checks.push_back({"attention, causal", "B 2", 1, 1e-3, 2e-3, true, true});
  d.checks.push_back({"fp8_linear_forward", "N 16", 1, 1e-3, 2e-3, true, true});
  EXPECT_TRUE(has(deck_of(d), "attention = 'portable'"));
  EXPECT_TRUE(has(deck_of(d), "compute = 'bf16'"));
}

TEST(Recommendation, OfASingleRankOnProcessors) {
  Diagnosis d = found();
  d.machines.resize(1);
  d.machines[0].bus.clear();
  d.pairs.clear(), d.rates.pop_back();
  d.rows_to_fill = 1024;
  const std::string lines = deck_of(d);
  EXPECT_TRUE(has(lines, "batch.per_rank = 4"));
  EXPECT_TRUE(has(lines, "shard = 'none'"));
  EXPECT_FALSE(has(lines, "tensor"));
  d.rates.clear();
  EXPECT_EQ(deck_of(d), "") << "nothing measured, nothing recommended";
}

TEST(Recommendation, HidesASlowExchange) {
  Diagnosis d = found();
  const auto reason = [](const Diagnosis& of) {
    for (const DeckLine& line : recommend(of))
      if (line.name == "per_rank") return line.reason;
    return std::string();
  };
  EXPECT_FALSE(has(reason(d), "slow gradient exchange"));
  EXPECT_TRUE(has(reason(d), "70.0 GiB"));
  d.rates.back().least = 9;
  EXPECT_TRUE(has(reason(d), "slow gradient exchange"));
}

TEST(Warnings, NameWhatIsWrong) {
  Diagnosis d = found();
  EXPECT_TRUE(warnings(d).empty());
  d.machines[1].processors = "56-63,120";
  d.rates[2].least = 400, d.rates[2].slowest = 1;  // bf16 on rank 1
  d.rates[0].least = 900, d.rates[0].most = 950;   // copy
  const std::vector<std::string> all = warnings(d);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(has(all[0], "rank 1 runs on CPUs 56-63,120, but its GPU is close to 0-55"));
  EXPECT_TRUE(has(all[1], "copy (read + write): 28% of the expected rate"));
  EXPECT_TRUE(has(all[2], "matrix product, bf16: rank 1 on node1 reaches 56% of the fastest"));
}

TEST(Warnings, CountThreadsThatShareProcessors) {
  Diagnosis d = found();
  for (Machine& m : d.machines) m.threads = 4;
  EXPECT_TRUE(warnings(d).empty()) << "eight on processors 0-7";
  d.machines[0].threads = 5;
  ASSERT_EQ(warnings(d).size(), 1u);
  EXPECT_TRUE(has(warnings(d)[0], "9 threads of ranks on node1 share 8 CPUs (0-7)"));
  d.machines[1].processors = "8-15";
  EXPECT_TRUE(warnings(d).empty());
}

TEST(Warnings, NameASlowRankOnce) {
  Diagnosis d = found();
  d.rates[0].least = 2000;  // copy on rank 1
  d.rates[2].least = 300, d.rates[2].slowest = 1;
  d.rates[3].least = 40, d.rates[3].slowest = 0;
  const std::vector<std::string> all = warnings(d);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(has(all[0], "matrix product, float: rank 0 on node1 reaches 78%"));
  EXPECT_TRUE(has(all[1], "matrix product, bf16: rank 1 on node1 reaches 42%")) << "its worst";
}

TEST(Expectations, OfGpusAndProcessors) {
  device::Processor processor;
  processor.gigahertz = 2, processor.flops_per_cycle = 64;
  const detail::Expectations h100(device::data_sheet_of("NVIDIA H100 80GB HBM3"),
                                  device::PcieLink{5, 16}, {}, 0);
  EXPECT_DOUBLE_EQ(h100.products("fp8").rate, 1978.9);
  EXPECT_DOUBLE_EQ(h100.products("tf32").rate, 494.7);
  EXPECT_DOUBLE_EQ(h100.copy().rate, 3350);
  EXPECT_DOUBLE_EQ(h100.connection("NVLink").rate, 450);
  EXPECT_NEAR(h100.connection("host bridge").rate, 63, 0.1);
  EXPECT_EQ(h100.connection("network").rate, 0);
  EXPECT_EQ(h100.products("double").rate, 0) << "not in the table";
  const detail::Expectations unknown(nullptr, {}, {}, 0);
  EXPECT_EQ(unknown.copy().rate + unknown.host_copy().rate + unknown.products("bf16").rate, 0);
  const detail::Expectations host(nullptr, {}, processor, 3);
  EXPECT_DOUBLE_EQ(host.products("fp32").rate, 3 * 2 * 64);
  EXPECT_DOUBLE_EQ(host.products("double").rate, 3 * 2 * 32);
  EXPECT_EQ(host.products("fp32").basis, "3 cores x 2.0 GHz x 64");
  EXPECT_EQ(host.products("bf16").rate, 0);
}

}  // namespace
}  // namespace tern::checks
