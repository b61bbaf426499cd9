/// Exchange of a transformer with the ranks that hold the rest of its model.
#pragma once
#include <memory>

#include "memory/views.hpp"
#include "ops/core/context.hpp"
#include "parameters/model_shard.hpp"

namespace tern::model {

template <class T>
class ModelParallel {
 public:
  /// `sends_later`: see below. The first exchange throws InternalError if a share of a model has no
  /// mesh.
  ModelParallel(const ModelShard& share, bool sends_later)
      : share_(share), sends_later_(sends_later) {}

  const ModelShard& share() const { return share_; }
  /// The tensor ranks.
  comm::Group& tensor() const { return mesh().tensor(); }

  /// Sums over tensor ranks, in place. V is T or Accumulate<T>.
  template <class V>
  void sum(const ops::Context&, Matrix<V> values) const;

  /// All-gather over tensor ranks: rank r has written the r-th part of `values`.
  void gather(const ops::Context&, void* values, std::size_t bytes_of_part) const;

  // Between stages. With sends_later a message is sent together with the next receive: in training
  // two neighbors may have messages for each other, and neither may wait for the other to receive
  // first (schedule of Narayanan et al. 2021, section 2.2); in generation the next stage may still
  // work on the pass before. It must not be overwritten until then.
  void to_next(const ops::Context& context, Matrix<T> values) const;
  void to_previous(const ops::Context& context, Matrix<T> values) const;
  void from_next(const ops::Context& context, Matrix<T> values) const;
  void from_previous(const ops::Context& context, Matrix<T> values) const;
  /// Sends the deferred message, if any.
  void flush_send(const ops::Context& context) const;
  /// Broadcast from the last stage, after the deferred message; from_last_now: before it.
  void from_last(const ops::Context& context, void* values, std::size_t bytes) const;
  void from_last_now(const ops::Context& context, void* values, std::size_t bytes) const;

 private:
  using Message = comm::Group::Message;
  const comm::Mesh& mesh() const;
  void send(const ops::Context&, Matrix<T> values, int stage) const;
  void receive(const ops::Context&, Matrix<T> values, int stage) const;

  ModelShard share_;
  bool sends_later_;
  mutable Message waiting_;  // deferred; not logical state
};

}  // namespace tern::model
