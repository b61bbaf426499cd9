/// Mapping between device arrays and a checkpoint: names, shapes, distribution over ranks.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "optimizer/optimizer.hpp"
#include "parameters/parameters.hpp"
#include "weights/host_copy.hpp"

namespace tern::weights {

/// Throws UserError unless the file holds all of `wanted` and, except for optimizer states, nothing
/// else.
void require_same_model(const checkpoint::Reader& reader,
                        const std::vector<checkpoint::Tensor>& wanted);

template <class T>
class Snapshot {
  using A = Accumulate<T>;

 public:
  /// Lists /model and /optimizer of the whole model. `owned`: range of the arrays that this rank
  /// updates; `states`: the optimizer's; `writes`: whether this rank's part goes into checkpoints
  /// (with shard = 'none' only the first data rank writes). Collective over the replica.
  Snapshot(const model::ParameterTree& tree, const model::Parameters<T>& parameters, Range owned,
           const std::vector<optimizer::State<T>>& states, bool writes);

  /// Copies this rank's part to the store's buffer in host memory, from which it is written in the
  /// background. Not collective, but called by all ranks.
  void save(const ops::Context&, checkpoint::Store& store, const checkpoint::Header& header);

  /// Fills parameters and states from a checkpoint written with any layout of ranks. Throws
  /// UserError if it is of another model or another kind of optimizer.
  void load(const ops::Context&, const checkpoint::Reader& reader);

 private:
  /// An array parallel to a range of the span, stored under `prefix`.
  struct Array {
    std::string prefix;  // "" for the parameters, "/optimizer/exp_avg"
    Vector<A> values;
    Range range;    // within this rank's arrays
    Range covered;  // within the span, over all ranks
  };
  template <class Body>
  void for_each_slice(Body body) const;

  const model::ParameterTree& tree_;
  const model::Parameters<T>& parameters_;
  bool writes_;
  std::vector<Array> arrays_;
  HostCopy host_copy_;
  std::vector<checkpoint::Tensor> tensors_;
  std::map<std::string, std::size_t> numbers_;  // index of each tensor, by path
};

}  // namespace tern::weights
