#include "weights/snapshot.hpp"

#include <fmt/ranges.h>

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
    if (found == stored.end()) reader.require_own(wanted.path);
    if (found == stored.end() && wanted.path.starts_with("/optimizer/"))
      user_error(
          "{} contains the states of another &optimizer: {} is missing; use the &optimizer of the "
          "deck stored in it, or start a new run from its weights with &model load",
          reader.path().string(), wanted.path);
    if (found == stored.end() || found->shape != wanted.shape)
      user_error(
          "{} contains another model: {} is {}, the deck's is ({}); use the deck stored in it or "
          "another &output directory, or start from its weights with &model load and load_rule = "
          "'matching'",
          reader.path().string(), wanted.path,
          found == stored.end() ? "missing" : fmt::format("({})", fmt::join(found->shape, ", ")),
          fmt::join(wanted.shape, ", "));
  }
  for (const checkpoint::Tensor& stored : reader.tensors())
    if (!stored.path.starts_with("/optimizer/") &&
        std::none_of(tensors.begin(), tensors.end(),
                     [&](const auto& wanted) { return wanted.path == stored.path; }))
      user_error(
          "{} contains another model: {} is not in the deck's; use the deck stored in it or "
          "another &output directory",
          reader.path().string(), stored.path);
}

template <class T>
Snapshot<T>::Snapshot(const model::ParameterTree& tree, const model::Parameters<T>& parameters,
                      Range owned, const std::vector<optimizer::State<T>>& states, bool writes)
    : tree_(tree), parameters_(parameters), writes_(writes) {
  const auto range = Kokkos::make_pair(owned.first, owned.first + owned.count);
  const Range span{0, tree.span()};
  arrays_.push_back({"", Kokkos::subview(parameters.master, range), owned, span});
  for (const auto& state : states)
    arrays_.push_back({"/optimizer/" + state.name, state.values, state.held, state.covered});
  for (const Array& array : arrays_)
    for (const model::Parameter& p : tree.parameters())
      if (array.covered.contains(p.offset))
        tensors_.push_back({array.prefix + "/" + p.name, p.whole});
  tensors_ = of_all_stages(tensors_, tree.share());
  for (std::size_t i = 0; i < tensors_.size(); ++i) numbers_[tensors_[i].path] = i;
}

/// Calls body(array, parameter, slice) for each slice of this rank's part in the array.
template <class T>
template <class Body>
void Snapshot<T>::for_each_slice(Body body) const {
  for (const Array& array : arrays_)
    for (const model::Parameter& p : tree_.parameters()) {
      if (!array.covered.contains(p.offset)) continue;
      for (const Slice& slice : parameters_.slices_of(p)) {
        const Range held = common({slice.local, slice.count}, array.range);
        if (held.count > 0)
          body(array, p,
               Slice{{slice.first + held.first - slice.local, held.count},
                     held.first - array.range.first});
      }
    }
}

template <class T>
void Snapshot<T>::save(const ops::Context& context, checkpoint::Store& store,
                       const checkpoint::Header& header) {
  std::vector<checkpoint::Piece> pieces;
  std::vector<std::pair<const Array*, std::size_t>> sources;  // of the pieces: array, offset in it
  if (writes_)
    for_each_slice([&](const Array& array, const model::Parameter& p, const Slice& slice) {
      if (!p.counted) return;  // saved by another rank
      const std::size_t tensor = numbers_.at(array.prefix + "/" + p.name);
      for_each_run(p, slice.first, slice.count,
                   [&](std::size_t first, std::size_t n, std::size_t from) {
                     pieces.push_back({tensor, first, n});
                     sources.emplace_back(&array, slice.local + from);
                   });
    });
  store.save(header, tensors_, pieces, [&](const std::vector<float*>& to) {
    for (const Array& array : arrays_) {
      std::vector<Run> runs;
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (sources[i].first == &array)
          runs.push_back({{sources[i].second, pieces[i].count}, to[i]});
      host_copy_.copy(context, array.values, std::move(runs));
    }
  });
}

template <class T>
void Snapshot<T>::load(const ops::Context& context, const checkpoint::Reader& reader) {
  require_same_model(reader, tensors_);
  for_each_slice([&](const Array& array, const model::Parameter& p, const Slice& slice) {
    const Vector<A> values(array.values.data() + slice.local, slice.count);
    const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace{}, values);
    read_part(reader, array.prefix + "/" + p.name, p, slice.first, slice.count, host.data());
    Kokkos::deep_copy(context.space, values, host);
    context.fence("checkpoint loaded");
  });
}

template class Snapshot<float>;
template class Snapshot<bf16>;
template class Snapshot<fp16>;

}  // namespace tern::weights
