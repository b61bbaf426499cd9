#include "block/model_parallel.hpp"

#include "base/error.hpp"

namespace tern::model {
template <class T>
const comm::Mesh& ModelParallel<T>::mesh() const {
  TERN_REQUIRE(share_.mesh, "a divided model without the ranks that hold the rest");
  return *share_.mesh;
}

template <class T>
template <class V>
void ModelParallel<T>::sum(const ops::Context& context, Matrix<V> values) const {
  if (share_.tensors == 1) return;
  tensor().all_reduce(values.data(), values.size(), context);
}

template <class T>
void ModelParallel<T>::gather(const ops::Context& context, void* values,
                              std::size_t bytes_of_part) const {
  if (share_.tensors == 1) return;
  tensor().all_gather(values, bytes_of_part, context);
}

template <class T>
void ModelParallel<T>::to_next(const ops::Context& context, Matrix<T> values) const {
  if (!share_.last()) send(context, values, static_cast<int>(share_.stage) + 1);
}
template <class T>
void ModelParallel<T>::to_previous(const ops::Context& context, Matrix<T> values) const {
  if (!share_.first()) send(context, values, static_cast<int>(share_.stage) - 1);
}
template <class T>
void ModelParallel<T>::from_next(const ops::Context& context, Matrix<T> values) const {
  if (!share_.last()) receive(context, values, static_cast<int>(share_.stage) + 1);
}
template <class T>
void ModelParallel<T>::from_previous(const ops::Context& context, Matrix<T> values) const {
  if (!share_.first()) receive(context, values, static_cast<int>(share_.stage) - 1);
}

template <class T>
void ModelParallel<T>::send(const ops::Context& context, Matrix<T> values, int stage) const {
  flush_send(context);
  waiting_ = {values.data(), values.size() * sizeof(T), stage};
  if (!sends_later_) flush_send(context);
}

template <class T>
void ModelParallel<T>::receive(const ops::Context& context, Matrix<T> values, int stage) const {
  if (waiting_.data == values.data()) flush_send(context);
  mesh().pipeline().exchange(waiting_, {values.data(), values.size() * sizeof(T), stage}, context);
  waiting_ = {};
}

template <class T>
void ModelParallel<T>::flush_send(const ops::Context& context) const {
  if (waiting_.rank == comm::Group::nobody) return;
  mesh().pipeline().exchange(waiting_, {}, context);
  waiting_ = {};
}

template <class T>
void ModelParallel<T>::from_last(const ops::Context& context, void* values,
                                 std::size_t bytes) const {
  flush_send(context);
  from_last_now(context, values, bytes);
}

template <class T>
void ModelParallel<T>::from_last_now(const ops::Context& context, void* values,
                                     std::size_t bytes) const {
  if (share_.stages == 1) return;
  mesh().pipeline().broadcast_device(values, bytes, static_cast<int>(share_.stages) - 1, context);
}

template class ModelParallel<float>;
template class ModelParallel<double>;
template class ModelParallel<bf16>;
template class ModelParallel<fp16>;
template void ModelParallel<float>::sum(const ops::Context&, Matrix<float>) const;
template void ModelParallel<double>::sum(const ops::Context&, Matrix<double>) const;
template void ModelParallel<bf16>::sum(const ops::Context&, Matrix<bf16>) const;
template void ModelParallel<fp16>::sum(const ops::Context&, Matrix<fp16>) const;
template void ModelParallel<bf16>::sum(const ops::Context&, Matrix<float>) const;
template void ModelParallel<fp16>::sum(const ops::Context&, Matrix<float>) const;

}  // namespace tern::model
