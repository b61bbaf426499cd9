/// The parameter tree: every parameter that the parts of the model declare (declaration.hpp), by
/// the name Hugging Face Transformers gives it in Llama, with '/' for '.', laid out in one
/// contiguous span.
///
/// Layout of the span: [embedding | layer 0's matrices | layer 1's ... | head | all vectors]. Each
/// of these is a unit: what fully sharded parameters are gathered by (residence.hpp). Within a
/// layer q, k, v and gate, up lie side by side, so that each group is one fused (sum of outputs,
/// inputs) matrix; the experts' [gate | up] lie at equal distances from each other, and so do their
/// down matrices. Matrices come first because weight decay applies to them only. Every parameter
/// starts at a multiple of 16 elements.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.hpp"
#include "comm/comm.hpp"
#include "deck/deck.hpp"
#include "memory/arena.hpp"
#include "model/declaration.hpp"
#include "model/share.hpp"
#include "ops/context.hpp"

namespace tern::model {

/// Over whom the gradient of a parameter must still be summed once a rank has its own.
enum class Summed {
  nobody,
  tensor,   // each tensor rank has the part that comes from its heads
  sharers,  // tensor ranks that hold the same key-value heads
  ends,     // first and last stage: tied embeddings
};

struct Parameter {
  std::string name;                // "model/layers/0/self_attn/q_proj/weight"
  std::vector<std::size_t> shape;  // as in Transformers: (out, in) for matrices
  std::size_t offset, count;       // elements, in the span
  double init_mean, init_std;      // normal(mean, std); std 0: constant
  // Of a parameter that is divided over ranks, `shape` is this rank's part:
  std::vector<std::size_t> whole;  // shape in Transformers
  std::vector<std::size_t> first;  // where the part starts, per dimension
  std::uint64_t place;             // number in the whole model: key of the initial values
  std::int64_t layer = -1;         // < 0: of none
  bool counted = true;  // of the ranks that hold this part, one counts and saves it: this one
  Summed summed = Summed::nobody;
  bool matrix() const { return shape.size() > 1; }
};

/// Where the span may be cut into parts.
enum class Division {
  anywhere,        // between any two lines of 16 elements
  whole_matrices,  // and not within a layer's matrices: padding moves them behind the cut
  units,           // each unit is cut into equal parts, of which a rank has one
};

/// A part of the span. `layer`: its number; < 0 for what all layers' passes need.
struct Unit {
  std::int64_t layer;
  std::size_t first, count;  // elements
};

/// [local, local + count) of a rank's arrays is [first, first + count) of the span.
struct Section {
  std::size_t local, first, count;
};

class ParameterTree {
 public:
  /// `model` is resolved (kv_heads, head_dim, ffn_hidden nonzero). The span is padded so that it
  /// divides into `parts` equal ranges, one a rank, of whole 16-element lines. With whole_matrices
  /// that costs at most the largest of a layer's groups (q|k|v, o, gate|up, down; of one expert) a
  /// part, but a part is no smaller than all experts' groups of a layer.
  /// Holds the parameters of `share`, which check_division() has passed.
  explicit ParameterTree(const deck::Model& model, std::size_t parts = 1,
                         Division division = Division::anywhere, const Share& share = {});

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
  /// In the order of the span, which they fill. With Division::units each divides into `parts`.
  const std::vector<Unit>& units() const { return units_; }
  /// Where the arrays of rank `part` of `parts` stand in the span: whole where it is not cut.
  std::vector<Section> sections(std::size_t part, std::size_t parts) const;
  const Share& share() const { return share_; }
  /// The ranges of the span that this rank counts: together those of all ranks of a replica hold
  /// each parameter once. Of a rank alone, the whole span.
  struct Stretch {
    std::size_t first, end;
  };
  std::vector<Stretch> counted() const;

 private:
  void lay_out(const std::vector<Declaration>& declared, std::size_t parts);
  void lay_out(const Declaration& part, bool matrices);
  void begin_unit(std::int64_t layer);
  void align();
  void keep_together(const Declaration::Bank& bank);
  Parameter part_of(const Declared& whole) const;
  void add(const Declared& whole, Stages stages, std::int64_t layer);
  bool holds(Stages stages, std::int64_t layer) const;
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, std::size_t> index_;
  Share share_;
  Layers layers_;  // of this stage
  std::size_t kv_heads_;
  std::uint64_t place_ = 0;  // of what is added next
  std::size_t span_ = 0, decayed_ = 0;
  std::size_t part_ = 0;     // length of a part that cuts no matrix; 0: cuts are free
  std::size_t largest_ = 0;  // of the groups that are kept together
  std::vector<Unit> units_;
  std::size_t unit_line_ = 0;  // each unit begins at a multiple of it
};

template <class T>
class Residence;

/// What the weights are for: training keeps masters and gradients beside what the kernels read,
/// inference nothing.
enum class Holds { training, inference };

/// The arrays of one model. For float and double, `compute` is `master` itself.
template <class T>
struct Parameters {
  Vector<Accumulate<T>> master;    // (n); of inference in bf16 empty
  Vector<T> compute;               // (n), what the kernels read
  Vector<Accumulate<T>> gradient;  // (n), empty if not training
  std::vector<Section> sections;   // where they stand in the span
  /// Fully sharded: where layers are gathered, and kernels read and write. Else null.
  std::shared_ptr<Residence<T>> residence;

  /// The whole span.
  Parameters(const ParameterTree& tree, Holds holds, Arena& arena);
  /// Fully sharded over `group`; `tree` was made for Division::units of as many parts.
  Parameters(const ParameterTree& tree, Holds holds, comm::Group& group, Arena& arena);
  /// Draws the initial values on the device: a function of (seed, parameter's place, element of the
  /// whole parameter), the same in `compute` with and without masters.
  void initialize(const ops::Context&, const ParameterTree& tree, std::uint64_t seed);
  /// compute = master, rounded; after loading. Without masters nothing is to do.
  void refresh_compute(const ops::Context&);
  /// Sums what several ranks have a part of, see Summed. Collective over the replica.
  void complete_gradients(const ops::Context&, const ParameterTree& tree) const;
  bool has_master() const { return master.extent(0) == compute.extent(0); }

  /// visit(first element in the arrays, first element of the parameter, elements) for each piece of
  /// a parameter that this rank holds.
  template <class Visit>
  void for_each_piece(const Parameter& p, Visit visit) const {
    for (const Section& h : sections) {
      const std::size_t begin = std::max(p.offset, h.first);
      const std::size_t end = std::min(p.offset + p.count, h.first + h.count);
      if (begin < end) visit(h.local + begin - h.first, begin - p.offset, end - begin);
    }
  }

 private:
  Parameters(Holds holds, std::vector<Section> sections, Arena& arena);
};

}  // namespace tern::model
