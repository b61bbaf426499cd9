/// Between the device's arrays and a checkpoint: names, shapes, and who holds which part.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "model/parameters.hpp"
#include "optimizer/optimizer.hpp"

namespace tern::weights {

/// Throws UserError unless the file holds all `wanted` and of /model nothing more. States of an
/// optimizer that are not wanted may be in it.
void require_same_model(const checkpoint::Reader& reader,
                        const std::vector<checkpoint::Tensor>& wanted);

template <class T>
class Snapshot {
  using A = Accumulate<T>;

 public:
  /// Lists /model and /optimizer of the whole model. `owned` is the part of its arrays this rank
  /// answers for, `states` the optimizer's; `writes`: this rank's part goes into checkpoints (with
  /// shard = 'none' the first data rank alone writes). Collective over the replica.
  Snapshot(const model::ParameterTree& tree, const model::Parameters<T>& parameters,
           optimizer::Range owned, const std::vector<optimizer::State<T>>& states, bool writes);

  /// Copies what this rank holds to the host and hands it to the store, which copies it again and
  /// returns. Local; called by all ranks.
  void save(const ops::Context&, checkpoint::Store& store, const checkpoint::Header& header);

  /// Fills parameters and states from a checkpoint of any layout. Throws UserError if it is of
  /// another model or another kind of optimizer.
  void load(const ops::Context&, const checkpoint::Reader& reader);

 private:
  /// One array parallel to a range of the span, stored below `prefix`.
  struct Array {
    std::string prefix;  // "" for the parameters, "/optimizer/exp_avg"
    Vector<A> values;
    optimizer::Range range;    // of this rank's arrays
    optimizer::Range covered;  // of the span, all ranks together
    HostVector<A> host;

    bool covers(const model::Parameter& p) const {
      return p.offset >= covered.first && p.offset < covered.end();
    }
  };
  template <class Body>
  void for_each_piece(Body body);

  const model::ParameterTree& tree_;
  const model::Parameters<T>& parameters_;
  bool writes_;
  std::vector<Array> arrays_;
  std::vector<checkpoint::Tensor> tensors_;
  std::map<std::string, std::size_t> numbers_;  // of the tensors, by path
};

}  // namespace tern::weights
