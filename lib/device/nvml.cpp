// The functions used are declared here as in nvml.h, which the toolkit has and the driver has not.
#include "device/nvml.hpp"

#include <dlfcn.h>

namespace tern::device {
namespace {

using Device = struct nvmlDevice_st*;
constexpr int success = 0;
constexpr unsigned chip_temperature = 0, peer_by_nvlink = 2;
constexpr unsigned most_nvlinks = 18;

struct Utilization {
  unsigned gpu, memory;  // percent
};

}  // namespace

struct Nvml::Functions {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus)(const char*, Device*) = nullptr;
  // Null in drivers that lack them.
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*energy)(Device, unsigned long long*) = nullptr;
  int (*peer)(Device, Device, unsigned, unsigned*) = nullptr;
  int (*ancestor)(Device, Device, unsigned*) = nullptr;
  int (*nvlink)(Device, unsigned, unsigned*) = nullptr;
  int (*pcie_generation)(Device, unsigned*) = nullptr;
  int (*pcie_lanes)(Device, unsigned*) = nullptr;
  bool started = false;

  ~Functions() {
    if (started && shutdown) shutdown();
    if (library) ::dlclose(library);
  }

  bool open(const char* name) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    load(init, "nvmlInit_v2");
    load(shutdown, "nvmlShutdown");
    load(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    load(utilization, "nvmlDeviceGetUtilizationRates");
    load(power, "nvmlDeviceGetPowerUsage");
    load(temperature, "nvmlDeviceGetTemperature");
    load(energy, "nvmlDeviceGetTotalEnergyConsumption");
    load(peer, "nvmlDeviceGetP2PStatus");
    load(ancestor, "nvmlDeviceGetTopologyCommonAncestor");
    load(nvlink, "nvmlDeviceGetNvLinkState");
    load(pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    load(pcie_lanes, "nvmlDeviceGetMaxPcieLinkWidth");
    started = init && shutdown && by_bus && init() == success;
    return started;
  }
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
  }

  Device find(const std::string& gpu) const {
    Device device = nullptr;
    return by_bus(gpu.c_str(), &device) == success ? device : nullptr;
  }
};

std::shared_ptr<const Nvml> Nvml::open(const char* library) {
  std::shared_ptr<Nvml> nvml(new Nvml);
  nvml->functions_ = std::make_unique<Functions>();
  if (!nvml->functions_->open(library)) return nullptr;
  return nvml;
}

Nvml::~Nvml() = default;

bool Nvml::knows(const std::string& gpu) const { return functions_->find(gpu) != nullptr; }

Readings Nvml::read(const std::string& gpu) const {
  const Functions& f = *functions_;
  const Device device = f.find(gpu);
  if (!device) return {};
  Readings r;
  Utilization busy{};
  if (f.utilization && f.utilization(device, &busy) == success) r.utilization = 0.01 * busy.gpu;
  unsigned number = 0;
  if (f.power && f.power(device, &number) == success) r.watts = 1e-3 * number;
  if (f.temperature && f.temperature(device, chip_temperature, &number) == success)
    r.celsius = number;
  unsigned long long millijoules = 0;
  if (f.energy && f.energy(device, &millijoules) == success)
    r.joules = 1e-3 * static_cast<double>(millijoules);
  return r;
}

std::optional<Connection> Nvml::connection(const std::string& one, const std::string& other) const {
  const Functions& f = *functions_;
  const Device a = f.find(one), b = f.find(other);
  if (!a || !b) return std::nullopt;
  unsigned status = 1, level = 0;
  if (f.peer && f.peer(a, b, peer_by_nvlink, &status) == success && status == 0)
    return Connection::nvlink;
  if (!f.ancestor || f.ancestor(a, b, &level) != success) return std::nullopt;
  // nvmlGpuTopologyLevel_t: steps of ten, from the same board on.
  if (level <= 10) return Connection::pcie_switch;
  return level <= 20   ? Connection::pcie_switches
         : level <= 30 ? Connection::host_bridge
         : level <= 40 ? Connection::numa_node
                       : Connection::host;
}

int Nvml::nvlinks(const std::string& gpu) const {
  const Functions& f = *functions_;
  const Device device = f.find(gpu);
  int active = 0;
  for (unsigned link = 0; device && f.nvlink && link < most_nvlinks; ++link) {
    unsigned state = 0;
    if (f.nvlink(device, link, &state) == success && state == 1) ++active;
  }
  return active;
}

std::optional<PcieLink> Nvml::pcie(const std::string& gpu) const {
  const Functions& f = *functions_;
  const Device device = f.find(gpu);
  unsigned generation = 0, lanes = 0;
  if (!device || !f.pcie_generation || !f.pcie_lanes ||
      f.pcie_generation(device, &generation) != success || f.pcie_lanes(device, &lanes) != success)
    return std::nullopt;
  return PcieLink{static_cast<int>(generation), static_cast<int>(lanes)};
}

double PcieLink::gigabytes() const {
  // GT/s per lane; 8b/10b coding at first, then 128b/130b.
  double lane = generation <= 1 ? 2.5 * 0.8 : generation == 2 ? 5 * 0.8 : 8 * 128.0 / 130;
  for (int later = 3; later < generation; ++later) lane *= 2;
  return lanes * lane / 8;
}

const char* connection_name(Connection connection) {
  constexpr const char* names[] = {"NVLink",      "one PCIe switch", "PCIe switches",
                                   "host bridge", "NUMA node",       "between NUMA nodes"};
  return names[static_cast<int>(connection)];
}

}  // namespace tern::device
