/// Device of a plan: this rank's, or an imagined one, and the nodes that ranks share.
#pragma once
#include <memory>
#include <string>

#include "deck/deck.hpp"
#include "memory/arena.hpp"

namespace tern::device {
struct DataSheet;
}

namespace tern::plan {

/// Nodes of a plan. Consecutive ranks share a node, the last of which may have fewer.
struct Nodes {
  int ranks = 0;  // per node; 0: all of them on one
  double gigabits =
      0;  // network between nodes, Gbit/s per rank and direction; 0: the device's usual

  /// Nodes that `all` ranks take.
  int count(int all) const { return ranks > 0 ? (all + ranks - 1) / ranks : 1; }
  /// Whether a boundary of nodes divides some of the blocks of `block` consecutive ranks.
  bool divide(int block) const { return ranks > 0 && ranks % block != 0; }
};

/// This rank's device, or the imagined device of a dry run, with its nodes. A value type.
class PlannedDevice {
 public:
  /// This rank's device.
  PlannedDevice() = default;
  /// GPU of this name ('h100', 'h200', 'a100', 'a100-40gb'); empty: this rank's device. Throws
  /// UserError for an unknown name.
  explicit PlannedDevice(const std::string& name, const Nodes& nodes = {});

  bool is_gpu() const;
  /// Name of a known GPU ('H200'), else the driver's name of the GPU, or the host backend
  /// ('OpenMP, 2 threads').
  std::string name() const;
  /// An imagined GPU is empty but for the memory of driver and libraries.
  DeviceCapacity capacity() const;
  /// Data sheet; null on the host and for unknown GPUs.
  const device::DataSheet* data_sheet() const;
  /// On a host: times a product of the deck's shape and a copy on this rank's processors, about a
  /// quarter of a second, for rates(). No effect otherwise. Local.
  void time_host(const deck::Deck& deck);
  /// Whether rates() was timed.
  bool timed() const { return timed_ != nullptr; }
  /// The data sheet, or what time_host() found in its place; else null.
  const device::DataSheet* rates() const { return timed_ ? timed_.get() : data_sheet(); }

  const Nodes& nodes() const { return nodes_; }
  /// Nodes whose network's rate, unless given, is that of a DGX node of these devices; 0 on the
  /// host and for unknown GPUs.
  Nodes placed() const;

 private:
  const device::DataSheet* elsewhere_ = nullptr;
  std::shared_ptr<const device::DataSheet> timed_;
  Nodes nodes_;
};

}  // namespace tern::plan
