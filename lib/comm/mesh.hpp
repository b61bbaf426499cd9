/// The mesh of ranks: data x tensor x pipeline. Ranks are numbered tensor fastest, then pipeline,
/// then data, so that the ranks that divide a layer are neighbours on a node.
#pragma once
#include <memory>

#include "comm/comm.hpp"

namespace tern::comm {

/// How many ranks there are in each direction.
struct Extents {
  int data = 1, tensor = 1, pipeline = 1;
  int replica() const { return tensor * pipeline; }
  int ranks() const { return data * replica(); }
};

/// `data` 0 asks for all ranks that tensor and pipeline leave. Throws UserError unless data x
/// tensor x pipeline is `ranks`, with what would be.
Extents extents_for(int ranks, int data, int tensor, int pipeline);

class Mesh {
 public:
  /// Divides `world`, which has extents.ranks() ranks. `sharers`, a divisor of extents.tensor:
  /// neighbouring tensor ranks that hold the same key-value heads. Collective over `world`.
  Mesh(std::unique_ptr<Group> world, const Extents& extents, int sharers = 1);

  const Extents& extents() const { return extents_; }
  Group& world() const { return *world_; }
  /// Ranks that hold the same parameters and take different data.
  Group& data() const { return *data_; }
  /// Ranks that divide each layer.
  Group& tensor() const { return *tensor_; }
  /// Ranks that divide the stack of layers: rank s is stage s.
  Group& pipeline() const { return *pipeline_; }
  /// Ranks that hold one model together: tensor x pipeline of them.
  Group& replica() const { return *replica_; }
  /// Tensor ranks that hold the same key-value heads.
  Group& sharers() const { return *sharers_; }
  /// First and last stage, which both hold tied embeddings; of other ranks, one alone.
  Group& ends() const { return *ends_; }

  /// A mesh that knows its sizes alone, of which this process is rank 0 in every direction: to plan
  /// what would run on more ranks than there are. Its collectives give back what they are given.
  static std::unique_ptr<Mesh> imagined(const Extents& extents);

  /// The mesh of this replica alone, as if there were no other data ranks. Collective over world().
  std::unique_ptr<Mesh> one_replica() const;

 private:
  Mesh() = default;

  Extents extents_;
  bool imagined_ = false;
  std::unique_ptr<Group> world_, replica_, data_, tensor_, pipeline_, sharers_, ends_;
};

/// One rank alone.
std::unique_ptr<Mesh> lonely_mesh();

}  // namespace tern::comm
