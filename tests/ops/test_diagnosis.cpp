// What diagnose prints of what it found.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checks/diagnosis.hpp"

namespace tern::checks {
namespace {

Diagnosis found() {
  Diagnosis d;
  d.versions = {{"tern", "1.2.3"}, {"Kokkos", "4.5.1"}};
  d.ranks_of_host = 2;
  d.machines = {{"node1", "GPU 0", 70, 80}, {"node1", "GPU 1", 71, 80}};
  d.rates = {{"copy (read + write)", "GB/s", 4000, 4200},
             {"  on the busiest link", "GB/s", 300, 310}};
  d.checked = "one against the other";
  d.checks = {{"swiglu", "N 3", 1e-3, 1e-3, 2e-3, true, true},
              {"rotary", "N 5", 9e-3, 1e-3, 2e-3, true, true},
              {"norm", "N 7", 1e-4, 1e-3, 2e-3, true, true}};
  d.failed = {1, 0};
  return d;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Diagnosis, TextListsWhatFails) {
  const std::string text = to_text(found(), false);
  EXPECT_TRUE(has(text, "tern 1.2.3, Kokkos 4.5.1\n2 rank(s), 2 on this host\n"));
  EXPECT_TRUE(has(text, "rank 1: node1, GPU 1, 71.0 of 80.0 GiB free\n"));
  EXPECT_TRUE(has(text, "4000.0 to    4200.0 GB/s\n"));
  EXPECT_TRUE(has(text, "rotary") && has(text, "FAIL: error"));
  EXPECT_FALSE(has(text, "swiglu"));
  EXPECT_TRUE(has(text, "3 cases; nearest to its bar: rotary, N 5: 9.0e-03 of 2.0e-03\n"));
  EXPECT_TRUE(has(text, "rank 0: 1 FAIL\nsome operations FAIL"));
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
  EXPECT_TRUE(has(text, "2 cases; nearest to its bar: swiglu"));
  EXPECT_FALSE(has(text, "verdict"));
  EXPECT_TRUE(text.ends_with("all operations pass on all ranks"));
  d.failed.clear(), d.checks.clear(), d.rates.clear();  // neither checked nor measured
  EXPECT_TRUE(to_text(d, false).ends_with("GiB free"));
}

TEST(Diagnosis, JsonHasAll) {
  const auto json = nlohmann::json::parse(to_json(found()));
  EXPECT_EQ(json["versions"]["Kokkos"], "4.5.1");
  EXPECT_EQ(json["ranks"][1]["device"], "GPU 1");
  EXPECT_EQ(json["rates"][1]["name"], "on the busiest link");
  EXPECT_EQ(json["rates"][1]["most"], 310);
  EXPECT_EQ(json["checks"]["failed_per_rank"], nlohmann::json({1, 0}));
  EXPECT_EQ(json["checks"]["cases"].size(), 3u);
  EXPECT_EQ(json["checks"]["cases"][1]["verdict"], "FAIL: error");
}

}  // namespace
}  // namespace tern::checks
