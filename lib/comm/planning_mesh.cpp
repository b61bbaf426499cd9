#include "comm/mesh.hpp"

namespace tern::comm {
namespace {

/// Rank 0 of `size` ranks, without the others.
class PlanningGroup : public Group {
 public:
  explicit PlanningGroup(int size) : size_(size) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  void all_reduce(double*, std::size_t, Sum) override {}
  void all_reduce(std::int64_t*, std::size_t, Sum) override {}
  void broadcast(void*, std::size_t, int) override {}
  void barrier() override {}
  void all_reduce(float*, std::size_t, const DeviceStream&) override {}
  void all_reduce(double*, std::size_t, const DeviceStream&) override {}
  void all_reduce(bf16*, std::size_t, const DeviceStream&) override {}
  void all_reduce(fp16*, std::size_t, const DeviceStream&) override {}
  void reduce_scatter(float*, std::size_t, const DeviceStream&) override {}
  void reduce_scatter(double*, std::size_t, const DeviceStream&) override {}
  void all_gather(void*, std::size_t, const DeviceStream&) override {}
  void broadcast_device(void*, std::size_t, int, const DeviceStream&) override {}
  void connect(const std::vector<int>&) override {}
  void exchange(const Message&, const Message&, const DeviceStream&) override {}
  std::unique_ptr<PartExchange> part_exchange(void*, std::size_t) override { return nullptr; }
  std::unique_ptr<Group> split(int, const std::string&) override {
    return std::make_unique<PlanningGroup>(size_);
  }

 private:
  int size_;
};

}  // namespace

std::unique_ptr<Mesh> Mesh::for_planning(const Extents& extents) {
  const auto group = [](int size) { return std::make_unique<PlanningGroup>(size); };
  std::unique_ptr<Mesh> mesh(new Mesh);
  mesh->extents_ = extents;
  mesh->planning_ = true;
  mesh->world_ = group(extents.ranks());
  mesh->replica_ = group(extents.replica());
  mesh->data_ = group(extents.data);
  mesh->tensor_ = group(extents.tensor);
  mesh->pipeline_ = group(extents.pipeline);
  mesh->kv_replicas_ = group(1);
  mesh->ends_ = group(1);
  return mesh;
}

}  // namespace tern::comm
