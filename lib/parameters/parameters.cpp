#include "parameters/parameters.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "ops/ops.hpp"
#include "parameters/full_sharding.hpp"

namespace tern::model {
namespace {

/// Initial values of part of a parameter: `to` begins at element `begin` of this rank's part.
template <class V>
void draw(const ops::Context& context, const Parameter& p, std::uint64_t seed, const Vector<V>& to,
          std::size_t begin) {
  if (p.init_std == 0)
    return Kokkos::deep_copy(context.space, to,
                             static_cast<V>(static_cast<Accumulate<V>>(p.init_mean)));
  TERN_REQUIRE(p.shape.size() <= 2, "'{}' has {} dimensions", p.name, p.shape.size());
  const bool rows = p.shape.size() == 2;
  const std::size_t all = rows ? p.whole[1] : p.whole[0];
  const std::size_t first = rows ? p.first[0] * all + p.first[1] : p.first[0];
  ops::draw_normal<V>(
      context, {p.init_mean, p.init_std, seed, p.place, p.shape.back(), all, first, begin}, to);
}

constexpr std::size_t alignment = 16;

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

ParameterTree::ParameterTree(const Declarations& whole, std::size_t parts, Division division,
                             const ModelShard& share)
    : share_(share), layers_(layers_of(whole.model, share)), kv_heads_(size(whole.model.kv_heads)) {
  const std::vector<Declaration>& declared = whole.parts;
  unit_line_ = alignment * (division == Division::units ? parts : 1);
  lay_out(declared, parts);
  if (division != Division::whole_matrices || parts == 1) return;
  // Parts grow by what does not fit until everything does.
  part_ = std::max(span_ / parts, round_up(largest_, alignment));
  for (lay_out(declared, parts); span_ > parts * part_; lay_out(declared, parts))
    part_ = span_ / parts;
  span_ = parts * part_;
}

void ParameterTree::lay_out(const std::vector<Declaration>& declared, std::size_t parts) {
  parameters_.clear();
  index_.clear();
  units_.clear();
  span_ = 0;
  place_ = 0;
  for (const Declaration& part : declared) lay_out(part, true);
  begin_unit(-1);
  decayed_ = span_;
  for (const Declaration& part : declared) lay_out(part, false);
  span_ = round_up(span_, alignment * parts);
  units_.back().count = span_ - units_.back().first;
}

/// Lays out a part's matrices, which form a unit, or its vectors. Parameters that are not held here
/// only advance `place_`.
void ParameterTree::lay_out(const Declaration& part, bool matrices) {
  bool begun = !matrices;
  for (const Declaration::FusedGroups& bank : part.banks()) {
    if (bank.matrices() != matrices) continue;
    const bool here = holds(bank.stages, part.layer());
    if (!begun && (here || part.layer() < 0)) begin_unit(part.layer());
    begun = true;
    if (here && matrices && part.layer() >= 0) keep_together(bank);
    for (const std::vector<Declared>& group : bank.groups) {
      if (here) align();
      for (const Declared& parameter : group) add(parameter, bank.stages, part.layer());
    }
    if (here) align();
  }
}

void ParameterTree::begin_unit(std::int64_t layer) {
  span_ = round_up(span_, unit_line_);
  if (!units_.empty()) units_.back().count = span_ - units_.back().first;
  units_.push_back({{span_, 0}, layer});
}

void ParameterTree::align() { span_ = round_up(span_, alignment); }

/// Aligns; if the groups of a bank, which have a constant stride, do not fit the rest of the
/// current part, shifts them so that the next part begins with a group.
void ParameterTree::keep_together(const Declaration::FusedGroups& bank) {
  align();
  std::size_t elements = 0;
  for (const Declared& parameter : bank.groups.front()) elements += part_of(parameter).count;
  const std::size_t group = round_up(elements, alignment), all = bank.groups.size() * group;
  largest_ = std::max(largest_, all);
  if (part_ == 0) return;
  const std::size_t room = part_ - span_ % part_;
  if (all > room) span_ += room % group;
}

/// This rank's part of a parameter, placed at the end of the span.
Parameter ParameterTree::part_of(const Declared& d) const {
  Parameter p{d.name, d.shape, span_, 1, d.initial.mean, d.initial.std, d.shape, {}, place_};
  p.first.assign(d.shape.size(), 0);
  const auto cut = [&](std::size_t dimension, std::size_t part, std::size_t parts) {
    TERN_REQUIRE(d.shape[dimension] % parts == 0, "'{}' of {} in {} parts", d.name,
                 d.shape[dimension], parts);
    p.shape[dimension] /= parts;
    p.first[dimension] = part * p.shape[dimension];
  };
  const std::size_t rank = share_.tensor, ranks = share_.tensors;
  if (d.held == Placement::rows) cut(0, rank, ranks);
  if (d.held == Placement::columns) cut(1, rank, ranks);
  if (d.held == Placement::kv_rows) {
    const std::size_t holders = std::max<std::size_t>(1, ranks / kv_heads_);
    cut(0, rank / holders, ranks / holders);
    p.counted = rank % holders == 0;
    if (holders > 1) p.summed = Summed::kv_replicas;
  }
  if (d.held == Placement::whole || d.held == Placement::whole_of_heads) p.counted = rank == 0;
  if (d.held == Placement::whole_of_heads && ranks > 1) p.summed = Summed::tensor;
  for (const std::size_t extent : p.shape) p.count *= extent;
  return p;
}

void ParameterTree::add(const Declared& whole, Stages stages, std::int64_t layer) {
  if (holds(stages, layer)) {
    Parameter p = part_of(whole);
    p.layer = layer;
    if (stages == Stages::ends && share_.stages > 1) {
      p.counted = share_.first();
      p.summed = Summed::ends;
    }
    index_.emplace(p.name, parameters_.size());
    span_ += p.count;
    parameters_.push_back(std::move(p));
  }
  ++place_;
}

bool ParameterTree::holds(Stages stages, std::int64_t layer) const {
  switch (stages) {
    case Stages::of_layer:
      return layers_.contains(size(layer));
    case Stages::first:
      return share_.first();
    case Stages::last:
      return share_.last();
    case Stages::ends:
      return share_.first() || share_.last();
    case Stages::all:
      break;
  }
  return true;
}

const Parameter& ParameterTree::at(const std::string& name) const {
  const auto found = index_.find(name);
  TERN_REQUIRE(found != index_.end(), "no parameter '{}'", name);
  return parameters_[found->second];
}

bool ParameterTree::has(const std::string& name) const { return index_.count(name) > 0; }

std::size_t ParameterTree::count() const {
  std::size_t sum = 0;
  for (const Parameter& p : parameters_) sum += p.count;
  return sum;
}

std::vector<Slice> ParameterTree::sections(std::size_t part, std::size_t parts) const {
  std::vector<Slice> result;
  std::size_t local = 0;
  for (const Unit& unit : units_) {
    const std::size_t count = unit.count / parts;
    TERN_REQUIRE(count * parts == unit.count, "a unit of {} in {} parts", unit.count, parts);
    result.push_back({{unit.first + part * count, count}, local});
    local += count;
  }
  return result;
}

std::vector<Range> ParameterTree::counted() const {
  std::vector<Range> ranges;
  const auto close = [&](std::size_t end) { ranges.back().count = end - ranges.back().first; };
  bool open = false;
  for (const Parameter& p : parameters_) {
    if (p.counted && !open) ranges.push_back({p.offset, 0});
    if (!p.counted && open) close(p.offset);
    open = p.counted;
  }
  if (open) close(span_);
  return ranges;
}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Purpose purpose, Arena& arena)
    : Parameters(purpose, {{{0, tree.span()}, 0}}, arena) {}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Purpose purpose, comm::Group& group,
                          Arena& arena)
    : Parameters(purpose,
                 tree.sections(static_cast<std::size_t>(group.rank()),
                               static_cast<std::size_t>(group.size())),
                 arena) {
  full_sharding = std::make_shared<FullSharding<T>>(tree, compute, gradient, group, arena);
}

template <class T>
Parameters<T>::Parameters(Purpose purpose, std::vector<Slice> where, Arena& arena)
    : sections(std::move(where)) {
  const std::size_t count = sections.back().local + sections.back().count;
  const bool training = purpose == Purpose::training;
  if (training && !std::is_same_v<T, Accumulate<T>>)
    master = arena.vector<Accumulate<T>>("master parameters", Term::parameters, count);
  compute = arena.vector<T>("compute parameters", Term::parameters, count);
  if constexpr (std::is_same_v<T, Accumulate<T>>) master = compute;
  if (training) gradient = arena.vector<Accumulate<T>>("gradients", Term::gradients, count);
}

template <class T>
std::vector<Slice> Parameters<T>::slices_of(const Parameter& p) const {
  std::vector<Slice> slices;
  for (const Slice& section : sections) {
    const Range held = common({p.offset, p.count}, section);
    if (held.count > 0)
      slices.push_back({{held.first - p.offset, held.count}, section.local_of(held.first)});
  }
  return slices;
}

template <class T>
void Parameters<T>::refresh_compute(const ops::Context& context) {
  if constexpr (!std::is_same_v<T, Accumulate<T>>)
    if (has_master()) ops::convert<Accumulate<T>, T>(context, master, compute);
  if (full_sharding) full_sharding->invalidate(context);
}

template <class T>
void Parameters<T>::complete_gradients(const ops::Context& context,
                                       const ParameterTree& tree) const {
  const comm::Mesh* mesh = tree.share().mesh;
  if (!mesh || mesh->replica().size() == 1) return;
  for (const Parameter& p : tree.parameters()) {
    Accumulate<T>* values = gradient.data() + p.offset;
    if (p.summed == Summed::tensor) mesh->tensor().all_reduce(values, p.count, context);
    if (p.summed == Summed::kv_replicas) mesh->kv_replicas().all_reduce(values, p.count, context);
    if (p.summed == Summed::ends) mesh->ends().all_reduce(values, p.count, context);
  }
}

template <class T>
void Parameters<T>::initialize(const ops::Context& context, const ParameterTree& tree,
                               std::uint64_t seed) {
  const auto draw_all = [&](const auto& array) {
    using V = typename std::decay_t<decltype(array)>::value_type;
    Kokkos::deep_copy(context.space, array, V(0.0f));
    for (const Parameter& p : tree.parameters())
      for (const Slice& held : slices_of(p))
        draw<V>(context, p, seed, Vector<V>(array.data() + held.local, held.count), held.first);
  };
  has_master() ? draw_all(master) : draw_all(compute);
  refresh_compute(context);
}

template struct Parameters<float>;
template struct Parameters<double>;
template struct Parameters<bf16>;
template struct Parameters<fp16>;

}  // namespace tern::model
