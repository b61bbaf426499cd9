// late_rank RANK|none OPERATION SECONDS: the given rank sleeps while the others wait for it in an
// operation, with a limit of so many seconds.
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "comm/device_data.hpp"
#include "comm/mesh.hpp"
#include "comm/waits.hpp"

namespace {

using tern::comm::Group;

void take_part(const std::string& operation, const tern::comm::Mesh& mesh) {
  Group& world = mesh.world();
  const tern::test::DeviceData<float> data(std::vector<float>(1024, 1));
  if (operation == "barrier" || operation == "long") world.barrier();
  if (operation == "host") world.any(true);
  if (operation == "device")
    world.all_reduce(data.data(), data.size(), tern::test::DefaultStream());
  if (operation == "exchange") {
    const Group::Message message{data.data(), data.bytes(), 1 - mesh.pipeline().rank()};
    mesh.pipeline().exchange(mesh.pipeline().rank() == 0 ? message : Group::Message{},
                             mesh.pipeline().rank() == 0 ? Group::Message{} : message,
                             tern::test::DefaultStream());
  }
  data.read();
}

}  // namespace

int main(int argc, char** argv) {
  const tern::comm::Session session(&argc, &argv);
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return tern::comm::run_ranks([&] {
    const std::string who = argv[1], operation = argv[2];
    const int limit = std::stoi(argv[3]);
    tern::comm::limit_waits(limit / 60.0);
    const int stages = operation == "exchange" ? 2 : 1;
    const tern::comm::Mesh mesh(tern::comm::world(), {session.size() / stages, 1, stages});
    take_part(operation, mesh);  // what is slow the first time
    std::unique_ptr<tern::comm::LongWait> patience;
    if (operation == "long") patience = std::make_unique<tern::comm::LongWait>();
    const bool late = who == std::to_string(session.rank());
    if (operation == "end")
      return late ? std::this_thread::sleep_for(std::chrono::seconds(600)), 0 : 0;
    if (late)
      std::this_thread::sleep_for(std::chrono::seconds(operation == "long" ? 3 * limit : 600));
    take_part(operation, mesh);
    return 0;
  });
}
