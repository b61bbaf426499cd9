#include "weights/snapshot.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "weights/parts.hpp"

namespace tern::weights {

void require_same_model(const checkpoint::Reader& reader,
                        const std::vector<checkpoint::Tensor>& tensors) {
  for (const checkpoint::Tensor& wanted : tensors) {
    const auto& stored = reader.tensors();
    const auto found = std::find_if(stored.begin(), stored.end(),
                                    [&](const auto& tensor) { return tensor.path == wanted.path; });
    if (found == stored.end() && wanted.path.starts_with("/optimizer/"))
      user_error(
          "{} holds the states of another &optimizer: {} is missing; use that of the deck stored "
          "in "
          "it, or start a new run from its weights with &model load",
          reader.path().string(), wanted.path);
    if (found == stored.end() || found->shape != wanted.shape)
      user_error(
          "{} holds another model: {} is {}, the deck's is ({}); use the deck stored in it, or "
          "another &output directory",
          reader.path().string(), wanted.path,
          found == stored.end() ? "missing" : fmt::format("({})", fmt::join(found->shape, ", ")),
          fmt::join(wanted.shape, ", "));
  }
  for (const checkpoint::Tensor& stored : reader.tensors())
    if (!stored.path.starts_with("/optimizer/") &&
        std::none_of(tensors.begin(), tensors.end(),
                     [&](const auto& wanted) { return wanted.path == stored.path; }))
      user_error(
          "{} holds another model: {} is not in the deck's; use the deck stored in it, or another "
          "&output directory",
          reader.path().string(), stored.path);
}

template <class T>
Snapshot<T>::Snapshot(const model::ParameterTree& tree, const model::Parameters<T>& parameters,
                      optimizer::Range owned, const std::vector<optimizer::State<T>>& states,
                      bool writes)
    : tree_(tree), parameters_(parameters), writes_(writes) {
  const auto range = Kokkos::make_pair(owned.first, owned.first + owned.count);
  const optimizer::Range span{0, tree.span()};
  arrays_.push_back({"", Kokkos::subview(parameters.master, range), owned, span, {}});
  for (const auto& state : states)
    arrays_.push_back({"/optimizer/" + state.name, state.values, state.held, state.covered, {}});
  for (Array& array : arrays_) {
    array.host = Kokkos::create_mirror_view(Kokkos::HostSpace{}, array.values);
    for (const model::Parameter& p : tree.parameters())
      if (array.covers(p)) tensors_.push_back({array.prefix + "/" + p.name, p.whole});
  }
  tensors_ = of_all_stages(tensors_, tree.share());
  for (std::size_t i = 0; i < tensors_.size(); ++i) numbers_[tensors_[i].path] = i;
}

/// Calls body(array, parameter, first element in this rank's part, count, offset in the array).
template <class T>
template <class Body>
void Snapshot<T>::for_each_piece(Body body) {
  for (Array& array : arrays_)
    for (const model::Parameter& p : tree_.parameters()) {
      if (!array.covers(p)) continue;
      parameters_.for_each_piece(p, [&](std::size_t local, std::size_t first, std::size_t count) {
        const std::size_t begin = std::max(local, array.range.first);
        const std::size_t end = std::min(local + count, array.range.end());
        if (begin < end)
          body(array, p, first + begin - local, end - begin, begin - array.range.first);
      });
    }
}

template <class T>
void Snapshot<T>::save(const ops::Context& context, checkpoint::Store& store,
                       const checkpoint::Header& header) {
  std::vector<checkpoint::Piece> pieces;
  if (writes_) {
    for (Array& array : arrays_) Kokkos::deep_copy(context.space, array.host, array.values);
    context.fence("checkpoint");
    for_each_piece([&](const Array& array, const model::Parameter& p, std::size_t begin,
                       std::size_t count, std::size_t offset) {
      if (!p.counted) return;  // saved by another rank
      const std::size_t tensor = numbers_.at(array.prefix + "/" + p.name);
      for_each_run(p, begin, count, [&](std::size_t first, std::size_t n, std::size_t from) {
        pieces.push_back({tensor, first, n, array.host.data() + offset + from});
      });
    });
  }
  store.save(header, tensors_, pieces);
}

template <class T>
void Snapshot<T>::load(const ops::Context& context, const checkpoint::Reader& reader) {
  require_same_model(reader, tensors_);
  for_each_piece([&](const Array& array, const model::Parameter& p, std::size_t begin,
                     std::size_t count, std::size_t offset) {
    read_part(reader, array.prefix + "/" + p.name, p, begin, count, array.host.data() + offset);
  });
  for (Array& array : arrays_) Kokkos::deep_copy(context.space, array.values, array.host);
  context.fence("checkpoint loaded");
}

template class Snapshot<float>;
template class Snapshot<bf16>;

}  // namespace tern::weights
