#include "comm/mesh.hpp"

#include "base/error.hpp"

namespace tern::comm {

Extents extents_for(int ranks, int data, int tensor, int pipeline) {
  const Extents extents{data > 0 ? data : ranks / (tensor * pipeline), tensor, pipeline};
  if (extents.data > 0 && extents.ranks() == ranks) return extents;
  const int replica = tensor * pipeline;
  if (data > 0)
    user_error(
        "&parallel data x tensor x pipeline = {} x {} x {} = {}, but the job has {} rank{}; start "
        "{} ranks{}",
        data, tensor, pipeline, data * replica, ranks, ranks > 1 ? "s" : "", data * replica,
        ranks % replica == 0 ? fmt::format(", or set data = {} (or 0: all ranks)", ranks / replica)
                             : "");
  const int lower = ranks / replica * replica;
  user_error(
      "{} rank{} cannot hold replicas of &parallel tensor x pipeline = {} x {} = {} ranks; start "
      "{}{} ranks, or change tensor or pipeline",
      ranks, ranks > 1 ? "s" : "", tensor, pipeline, replica,
      lower > 0 ? fmt::format("{} or ", lower) : "", lower + replica);
}

Mesh::Mesh(std::unique_ptr<Group> world, const Extents& extents, int kv_replicas)
    : extents_(extents), world_(std::move(world)) {
  TERN_REQUIRE(world_->size() == extents.ranks(), "{} ranks for a mesh of {} x {} x {}",
               world_->size(), extents.data, extents.tensor, extents.pipeline);
  TERN_REQUIRE(kv_replicas > 0 && extents.tensor % kv_replicas == 0,
               "{} kv_replicas of {} tensor ranks", kv_replicas, extents.tensor);
  replica_ = world_->split(world_->rank() / extents.replica(), "replica");
  data_ = world_->split(world_->rank() % extents.replica(), "data");
  tensor_ = replica_->split(replica_->rank() / extents.tensor, "tensor");
  pipeline_ = replica_->split(replica_->rank() % extents.tensor, "pipeline");
  kv_replicas_ = tensor_->split(tensor_->rank() / kv_replicas, "kv_replicas");
  const int stage = pipeline_->rank(), last = extents.pipeline - 1;
  ends_ = pipeline_->split(stage == last ? 0 : stage, "ends");
  std::vector<int> neighbors;
  if (stage > 0) neighbors.push_back(stage - 1);
  if (stage < last) neighbors.push_back(stage + 1);
  pipeline_->connect(neighbors);
}

std::unique_ptr<Mesh> Mesh::one_replica() const {
  if (planning_) return for_planning({1, extents_.tensor, extents_.pipeline});
  return std::make_unique<Mesh>(world_->split(data_->rank(), "replica"),
                                Extents{1, extents_.tensor, extents_.pipeline},
                                kv_replicas_->size());
}

std::unique_ptr<Mesh> single_rank_mesh() {
  return std::make_unique<Mesh>(single_rank_group(), Extents{});
}

}  // namespace tern::comm
