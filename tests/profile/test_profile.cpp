// Profile of a step: what is recorded, summed and written.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <thread>

#include "base/json.hpp"
#include "memory/views.hpp"
#include "ops/core/recorder.hpp"
#include "profile/detail/operation_name.hpp"
#include "profile/profile.hpp"

namespace tern::profile {
namespace {

constexpr bool on_host = std::is_same_v<Device, Kokkos::DefaultHostExecutionSpace>;

void fill(const char* label, std::size_t n) {
  const Kokkos::View<float*, Device> values("values", n);
  Kokkos::parallel_for(
      label, Kokkos::RangePolicy<Device>(0, n),
      KOKKOS_LAMBDA(const int i) { values(i) = static_cast<float>(i); });
}

void fence() { Device().fence(); }

/// Lines of a table that begin with the operation's name.
std::vector<std::string> lines_of(const std::string& table, const std::string& operation) {
  std::vector<std::string> result;
  std::istringstream in(table);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(operation + " ")) result.push_back(line);
  return result;
}

/// Columns of an operation's only line, which has both rates.
struct Figures {
  double calls = 0, kernels = 0, milliseconds = 0, tflops = 0, terabytes = 0;
  std::string fraction;

  Figures(const std::string& table, const std::string& operation) {
    const auto lines = lines_of(table, operation);
    EXPECT_EQ(lines.size(), 1u) << table;
    std::istringstream figures(lines.at(0).substr(operation.size()));
    figures >> calls >> kernels >> milliseconds >> fraction >> tflops >> terabytes;
  }
};

TEST(Profile, SumsTheCallsOfAnOperationAndTheKernelsInThem) {
  fill("tern::before", 10);
  Profile profile(fence);
  ASSERT_EQ(profile.trouble(), "");
  for (int i = 0; i < 2; ++i) {
    const ops::Region region("tern::product", [] { return ops::Work{3e9, 5e9}; });
    fill("tern::part", 1000);
    fill("tern::part", 1000);
  }
  fill("tern::alone", 1000);
  profile.finish();
  fill("tern::after", 10);
  const std::string table = profile.table(7, {});
  EXPECT_TRUE(table.starts_with("step 7: ")) << table;
  const Figures product(table, "product");
  EXPECT_EQ(product.calls, 2);
  EXPECT_EQ(product.kernels, on_host ? 2 : 4) << table;
  const double rounding = 0.5e-3 / product.milliseconds;  // the table's times have three decimals
  EXPECT_NEAR(product.tflops, 6e9 / (product.milliseconds * 1e-3) * 1e-12,
              (0.01 + rounding) * product.tflops + 1);
  EXPECT_NEAR(product.terabytes / product.tflops, 5.0 / 3, 0.02);
  EXPECT_EQ(lines_of(table, "part").size(), 0u) << table;
  for (const char* outside : {"before", "after"})
    EXPECT_EQ(table.find(outside), std::string::npos) << table;
}

TEST(Profile, ColumnsStayApartWhereRatesAreSmall) {
  Profile profile(fence);
  ASSERT_EQ(profile.trouble(), "");
  {
    const ops::Region region("tern::product", [] { return ops::Work{30, 50}; });
    fill("tern::part", 1000);
  }
  profile.finish();
  const Figures product(profile.table(1, {}), "product");
  ASSERT_LT(product.terabytes, 1e-4);  // as many digits as a rate can have: 1.23e-09
  EXPECT_NEAR(product.terabytes / product.tflops, 5.0 / 3, 0.02);
}

TEST(Profile, FractionOfTheCeilingIsThatOfTheSlowerOfProductsAndMemory) {
  Profile profile(fence);
  ASSERT_EQ(profile.trouble(), "");
  {
    const ops::Region region("tern::product", [] { return ops::Work{100, 1}; });
    fill("tern::part", 1000);
  }
  profile.finish();
  const auto fraction = [&](const Ceilings& ceilings) {
    const std::string line = lines_of(profile.table(1, ceilings), "product").at(0);
    const std::size_t last = line.find_last_of(' ');
    return std::stod(line.substr(last));
  };
  const double seconds = 1e-3 * Figures(profile.table(1, {}), "product").milliseconds;
  EXPECT_NEAR(fraction({100 / (0.5 * seconds), 0, 1 / (0.1 * seconds)}), 50, 5);
  EXPECT_NEAR(fraction({100 / (0.1 * seconds), 0, 1 / (0.5 * seconds)}), 50, 5);
}

TEST(Profile, TraceHasTheEventsOfTheRank) {
  Profile profile(fence);
  ASSERT_EQ(profile.trouble(), "");
  {
    const ops::Region region("tern::product", [] { return ops::Work{100, 0}; });
    fill("tern::part", 1000);
  }
  profile.finish();
  const nlohmann::json trace = parse_json(profile.trace(3));
  int events = 0;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 3);
    if (event.at("ph") != "X" || event.at("name") != "product") continue;
    ++events;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GT(event.at("dur").get<double>(), 0);
    EXPECT_EQ(event.at("args").at("flops"), 100);
  }
  EXPECT_EQ(events, 1) << trace.dump();
}

TEST(Profile, WorkOfOtherThreadsIsNotTheStepsOwn) {
  Profile profile(fence);
  std::thread([] {
    Kokkos::parallel_for("tern::elsewhere", Kokkos::RangePolicy<Kokkos::Serial>(0, 1),
                         [](const int) {});
  }).join();
  profile.finish();
  EXPECT_EQ(profile.table(1, {}).find("elsewhere"), std::string::npos);
}

TEST(OperationName, IsTheFunctionThatLaunched) {
  EXPECT_EQ(detail::operation_name("tern::linear_forward"), "linear_forward");
  EXPECT_EQ(detail::operation_name("void Kokkos::Impl::launch<__nv_dl_wrapper_t<__nv_dl_tag<void "
                                   "(*)(int), &tern::ops::spread<float>, 1u>>>(int)"),
            "spread");
  EXPECT_EQ(
      detail::operation_name("void Kokkos::Impl::launch<__nv_dl_wrapper_t<__nv_dl_tag<void "
                             "(*)(int), &tern::ops::Fp8RoundRows<float>::portable, 1u>>>(int)"),
      "fp8_round_rows");
  EXPECT_EQ(detail::operation_name("void tern::ops::cuda::detail::norm_rows<8>(int)"), "norm_rows");
  EXPECT_EQ(detail::operation_name("void tern::ops::(anonymous namespace)::gather<8>(int)"),
            "gather");
  EXPECT_EQ(detail::operation_name("void Kokkos::Impl::cuda_parallel_launch_local_memory<"
                                   "Kokkos::Impl::ParallelFor<Kokkos::Impl::ViewFill<int>>>(a)"),
            "Kokkos::Impl::ViewFill");
  EXPECT_EQ(detail::operation_name("void cutlass::Kernel2<a<b>>(c)"), "cutlass::Kernel2");
  EXPECT_EQ(detail::operation_name("nvjet_tst_128x256"), "nvjet_tst_128x256");
  EXPECT_EQ(detail::operation_name("Kokkos::View::initialization [sums] via memset"),
            "Kokkos::View::initialization");
  EXPECT_EQ(detail::operation_name("copy between devices"), "copy between devices");
}

}  // namespace
}  // namespace tern::profile
