// fail_on_rank RANK|all|none user|internal|abort: the given rank throws, or fails as a device does
// in Kokkos, while the others wait in a collective of the device.
#include <string>

#include "base/error.hpp"
#include "comm/comm.hpp"
#include "comm/device_data.hpp"

int main(int argc, char** argv) {
  const tern::comm::Session session(&argc, &argv);
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return tern::comm::run_ranks([&] {
    const std::string who = argv[1], what = argv[2];
    const auto group = tern::comm::world();
    if (who == "all" || who == std::to_string(session.rank())) {
      if (what == "user") tern::user_error("deck.in:3: no such value");
      if (what == "abort") Kokkos::abort("unspecified launch failure");
      TERN_REQUIRE(session.size() < 0, "size {}", session.size());
    }
    const tern::test::DeviceData<float> ones(std::vector<float>(1000, 1));
    group->all_reduce(ones.data(), ones.size(), tern::test::DefaultStream());
    return ones.read().back() == static_cast<float>(session.size()) ? 0 : 2;
  });
}
