/// The parameter tree: every declared parameter (declaration.hpp) by its name in Hugging Face
/// Transformers' Llama, with '/' for '.', in one contiguous span.
///
/// Layout of the span: [embedding | layer 0's matrices | layer 1's ... | head | all vectors]. Each
/// of these is a unit, the granularity of gathering when fully sharded (full_sharding.hpp). Within
/// a layer q, k, v and gate, up are adjacent, so that each group is one fused (sum of outputs,
/// inputs) matrix; the experts' [gate | up] have a constant stride, as do their down matrices.
/// Matrices come first because weight decay applies to them only. Every group starts at a multiple
/// of 16 elements.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/range.hpp"
#include "base/types.hpp"
#include "comm/comm.hpp"
#include "deck/deck.hpp"
#include "memory/arena.hpp"
#include "ops/core/context.hpp"
#include "parameters/declaration.hpp"
#include "parameters/model_shard.hpp"

namespace tern::model {

/// Ranks over which a parameter's gradient must still be summed after backward.
enum class Summed {
  nobody,
  tensor,       // each tensor rank has the part from its heads
  kv_replicas,  // tensor ranks that hold the same key-value heads
  ends,         // first and last stage: tied embeddings
};

struct Parameter {
  std::string name;                // "model/layers/0/self_attn/q_proj/weight"
  std::vector<std::size_t> shape;  // as in Transformers: (out, in) for matrices
  std::size_t offset, count;       // elements, in the span
  double init_mean, init_std;      // normal(mean, std); std 0: constant
  // If the parameter is divided over ranks, `shape` is this rank's part:
  std::vector<std::size_t> whole;  // shape in Transformers
  std::vector<std::size_t> first;  // where the part starts, per dimension
  std::uint64_t place;             // index in the whole model: key of the initial values
  std::int64_t layer = -1;         // < 0: none
  bool counted = true;             // this rank, of all holders, counts and saves the part
  Summed summed = Summed::nobody;
  bool matrix() const { return shape.size() > 1; }
};

/// Where the span may be cut into parts.
enum class Division {
  anywhere,        // between any two lines of 16 elements
  whole_matrices,  // not within a layer's matrices either: padding moves them past the cut
  units,           // each unit is cut into equal parts, one per rank
};

/// A range of the span. `layer` < 0: embedding, head or vectors, used by all passes.
struct Unit : Range {
  std::int64_t layer;
};

class ParameterTree {
 public:
  /// Lays out what model::declare() returns (model/declare.hpp). The span is padded to divide into
  /// `parts` equal ranges of whole 16-element lines, one per rank. With whole_matrices the
  /// padding per part is at most a layer's largest group (q|k|v, o, gate|up, down; one expert's),
  /// but a part is no smaller than all experts' groups of a layer. Holds the parameters of `share`,
  /// which has passed workload::check_division().
  explicit ParameterTree(const Declarations& declared, std::size_t parts = 1,
                         Division division = Division::anywhere, const ModelShard& share = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Throws InternalError if there is none of that name.
  const Parameter& at(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Length of the span in elements, padding included (a multiple of 16 * parts).
  std::size_t span() const { return span_; }
  /// [0, decayed()) are matrices, [decayed(), span()) vectors.
  std::size_t decayed() const { return decayed_; }
  /// Number of parameters, padding not counted.
  std::size_t count() const;
  /// In span order, without gaps. With Division::units each divides into `parts`.
  const std::vector<Unit>& units() const { return units_; }
  /// Sections of the span that rank `part` of `parts` holds; with one part, the whole span.
  std::vector<Slice> sections(std::size_t part, std::size_t parts) const;
  const ModelShard& share() const { return share_; }
  /// Ranges of the span that this rank counts: over all ranks of a replica, each parameter once.
  /// The whole span on a single rank.
  std::vector<Range> counted() const;

 private:
  void lay_out(const std::vector<Declaration>& declared, std::size_t parts);
  void lay_out(const Declaration& part, bool matrices);
  void begin_unit(std::int64_t layer);
  void align();
  void keep_together(const Declaration::FusedGroups& bank);
  Parameter part_of(const Declared& whole) const;
  void add(const Declared& whole, Stages stages, std::int64_t layer);
  bool holds(Stages stages, std::int64_t layer) const;
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, std::size_t> index_;
  ModelShard share_;
  Range layers_;  // on this stage
  std::size_t kv_heads_;
  std::uint64_t place_ = 0;  // index of the next parameter
  std::size_t span_ = 0, decayed_ = 0;
  std::size_t part_ = 0;     // part length that cuts no matrix; 0: cut anywhere
  std::size_t largest_ = 0;  // largest bank of groups kept together
  std::vector<Unit> units_;
  std::size_t unit_line_ = 0;  // alignment of units in elements
};

template <class T>
class FullSharding;

/// Purpose of the weights: training keeps masters and gradients next to the compute values,
/// inference compute values only.
enum class Purpose { training, inference };

/// The arrays of one model. For float and double, `compute` is `master` itself.
template <class T>
struct Parameters {
  Vector<Accumulate<T>> master;    // (n); empty in bf16 inference
  Vector<T> compute;               // (n), read by kernels
  Vector<Accumulate<T>> gradient;  // (n), empty if not training
  std::vector<Slice> sections;     // location of the arrays in the span
  /// If fully sharded: windows that layers are gathered into and kernels use. Else null.
  std::shared_ptr<FullSharding<T>> full_sharding;

  /// The whole span.
  Parameters(const ParameterTree& tree, Purpose purpose, Arena& arena);
  /// Fully sharded over `group`; `tree` has Division::units and group.size() parts.
  Parameters(const ParameterTree& tree, Purpose purpose, comm::Group& group, Arena& arena);
  /// Draws the initial values on the device: a function of (seed, parameter's place, element of the
  /// whole parameter), the same in `compute` with and without masters.
  void initialize(const ops::Context&, const ParameterTree& tree, std::uint64_t seed);
  /// compute = master, rounded, if there are masters; gathers sharded parameters again. Call after
  /// loading.
  void refresh_compute(const ops::Context&);
  /// Sums gradients that several ranks have parts of, see Summed. Collective over the replica.
  void complete_gradients(const ops::Context&, const ParameterTree& tree) const;
  bool has_master() const { return master.extent(0) == compute.extent(0); }

  /// The slices of a parameter in the arrays.
  std::vector<Slice> slices_of(const Parameter& p) const;

 private:
  Parameters(Purpose purpose, std::vector<Slice> sections, Arena& arena);
};

}  // namespace tern::model
