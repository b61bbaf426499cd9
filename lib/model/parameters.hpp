/// The parameter tree: every parameter by the name Hugging Face Transformers gives it in Llama,
/// with '/' for '.', laid out in one contiguous span.
///
/// Layout of the span: [embedding | layer 0's matrices | layer 1's ... | head | all vectors].
/// Within a layer q, k, v and gate, up lie side by side, so that each group is one fused (sum of
/// outputs, inputs) matrix. Matrices come first because weight decay applies to them only. Every
/// parameter starts at a multiple of 16 elements.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.hpp"
#include "deck/deck.hpp"
#include "memory/arena.hpp"
#include "ops/context.hpp"

namespace tern::model {

struct Parameter {
  std::string name;                // "model/layers/0/self_attn/q_proj/weight"
  std::vector<std::size_t> shape;  // as in Transformers: (out, in) for matrices
  std::size_t offset, count;       // elements, in the span
  double init_mean, init_std;      // normal(mean, std); std 0: constant
  // Of a parameter that is divided over ranks, `shape` is this rank's part:
  std::vector<std::size_t> whole;  // shape in Transformers
  std::vector<std::size_t> first;  // where the part starts, per dimension
  std::uint64_t place;             // number in the whole model: key of the initial values
  bool matrix() const { return shape.size() > 1; }
};

/// Where the span may be cut into parts.
enum class Division {
  anywhere,        // between any two lines of 16 elements
  whole_matrices,  // and not within a layer's matrices: padding moves them behind the cut
};

class ParameterTree {
 public:
  /// `model` is resolved (kv_heads, head_dim, ffn_hidden nonzero). The span is padded so that it
  /// divides into `parts` equal ranges, one a rank, of whole 16-element lines. With whole_matrices
  /// that costs at most the largest of a layer's groups (q|k|v, o, gate|up, down) a part.
  explicit ParameterTree(const deck::Model& model, std::size_t parts = 1,
                         Division division = Division::anywhere);

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

 private:
  void add(std::string name, std::vector<std::size_t> shape, double mean, double std);
  void align();
  void keep_together(std::size_t elements);
  void lay_out(const deck::Model& model, std::size_t parts);
  void add_matrices(const deck::Model& model);
  void add_vectors(const deck::Model& model);
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t span_ = 0, decayed_ = 0;
  std::size_t part_ = 0;     // length of a part that cuts no matrix; 0: cuts are free
  std::size_t largest_ = 0;  // of the groups that are kept together
};

/// What the weights are for: training keeps masters and gradients beside what the kernels read,
/// inference nothing.
enum class Holds { training, inference };

/// The spans of one model. For float and double, `compute` is `master` itself.
template <class T>
struct Parameters {
  Vector<Accumulate<T>> master;    // (span); of inference in bf16 empty
  Vector<T> compute;               // (span), what the kernels read
  Vector<Accumulate<T>> gradient;  // (span), empty if not training

  Parameters(const ParameterTree& tree, Holds holds, Arena& arena);
  /// Draws the initial values on the device: a function of (seed, parameter's place, element of the
  /// whole parameter), the same in `compute` with and without masters.
  void initialize(const ops::Context&, const ParameterTree& tree, std::uint64_t seed);
  /// compute = master, rounded; after loading. Without masters nothing is to do.
  void refresh_compute(const ops::Context&);
  bool has_master() const { return master.extent(0) == compute.extent(0); }
};

}  // namespace tern::model
