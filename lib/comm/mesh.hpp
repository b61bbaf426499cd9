/// The mesh of ranks: data x tensor x pipeline. Tensor varies fastest, then pipeline, then data, so
/// that ranks that divide a layer are neighbors on a node.
#pragma once
#include <memory>

#include "comm/comm.hpp"

namespace tern::comm {

/// Ranks in each direction.
struct Extents {
  int data = 1, tensor = 1, pipeline = 1;
  int replica() const { return tensor * pipeline; }
  int ranks() const { return data * replica(); }
};

/// `data` = 0: ranks / (tensor x pipeline). Throws UserError, with valid choices, unless data x
/// tensor x pipeline is `ranks`.
Extents extents_for(int ranks, int data, int tensor, int pipeline);

class Mesh {
 public:
  /// Divides `world`, which has extents.ranks() ranks. `kv_replicas`: number of neighboring tensor
  /// ranks that hold the same key-value heads; divides extents.tensor. Collective over `world`.
  Mesh(std::unique_ptr<Group> world, const Extents& extents, int kv_replicas = 1);

  const Extents& extents() const { return extents_; }
  Group& world() const { return *world_; }
  /// Ranks that hold the same parameters and take different data.
  Group& data() const { return *data_; }
  /// Ranks that divide each layer.
  Group& tensor() const { return *tensor_; }
  /// Pipeline stages of this rank's model: rank s is stage s.
  Group& pipeline() const { return *pipeline_; }
  /// Ranks that hold one model together: tensor x pipeline of them.
  Group& replica() const { return *replica_; }
  /// Tensor ranks that hold the same key-value heads.
  Group& kv_replicas() const { return *kv_replicas_; }
  /// First and last stage, which both hold tied embeddings; single-rank on other stages.
  Group& ends() const { return *ends_; }

  /// A mesh with sizes only, where this process is rank 0 in every direction: to plan runs on more
  /// ranks than there are. Its collectives leave data unchanged.
  static std::unique_ptr<Mesh> for_planning(const Extents& extents);

  /// The mesh of this replica, without the other data ranks. Collective over world().
  std::unique_ptr<Mesh> one_replica() const;

 private:
  Mesh() = default;

  Extents extents_;
  bool planning_ = false;
  std::unique_ptr<Group> world_, replica_, data_, tensor_, pipeline_, kv_replicas_, ends_;
};

/// Single-rank mesh.
std::unique_ptr<Mesh> single_rank_mesh();

}  // namespace tern::comm
