/// Declarations of parameters by the parts of a model (lib/model): names, shapes
/// in the whole model, initial values, distribution over ranks. The parameter tree lays out what is
/// declared and knows no names itself.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::model {

/// How tensor ranks hold a parameter.
enum class Placement {
  whole,           // replicated, with the full gradient
  whole_of_heads,  // replicated; a rank's gradient is the part from its heads
  rows,            // equal parts of the outputs
  columns,         // equal parts of the inputs
  kv_rows,         // rows of key-value heads; with fewer heads than ranks, ranks share one
};

/// Which pipeline stages hold a parameter.
enum class Stages { of_layer, first, last, ends, all };

/// Normal(mean, std); std 0: constant.
struct Initial {
  double mean = 0, std = 0;
};
/// Projections into the residual stream, of which each block has two (GPT-2, section 2.3).
Initial initial_residual(const deck::Model& model);
Initial initial_embedding(const deck::Model& model);
/// A head of its own.
Initial initial_head(const deck::Model& model);

struct Declared {
  std::string name;                // "model/layers/0/self_attn/q_proj/weight"
  std::vector<std::size_t> shape;  // as in Transformers: (out, in) for matrices
  Initial initial;
  Placement held = Placement::whole;
  bool matrix() const { return shape.size() > 1; }
};

/// A module of a linear map that is fused along the outputs.
struct Module {
  std::string name;  // "model/layers/0/self_attn/q_proj"
  std::size_t outputs;
  Placement held;
};

class Declaration {
 public:
  /// Groups of parameters. A group is contiguous, one fused matrix or vector; groups have equal
  /// size and a constant stride.
  struct FusedGroups {
    std::vector<std::vector<Declared>> groups;
    Stages stages;
    bool matrices() const { return groups.front().front().matrix(); }
  };

  /// `layer` < 0: the part is in no layer.
  explicit Declaration(Stages stages, std::int64_t layer = -1) : stages_(stages), layer_(layer) {}

  /// One parameter.
  void add(const Declared& parameter) { add(parameter, stages_); }
  void add(const Declared& parameter, Stages stages) {
    banks_.push_back({std::vector<std::vector<Declared>>(1, {parameter}), stages});
  }
  /// A linear map of `inputs`, fused from the modules; biases start at 0.
  void linear(const std::vector<Module>& modules, std::size_t inputs, Initial initial, bool bias);
  /// `count` such maps without biases; map i is fused from modules_of(i).
  void linears(std::size_t count, const std::function<std::vector<Module>(std::size_t)>& modules_of,
               std::size_t inputs, Initial initial);

  const std::vector<FusedGroups>& banks() const { return banks_; }
  std::int64_t layer() const { return layer_; }

 private:
  Stages stages_;
  std::int64_t layer_;
  std::vector<FusedGroups> banks_;
};

/// All parts of a model, in span order.
struct Declarations {
  deck::Model model;
  std::vector<Declaration> parts;
};

/// A setting of &model that tensor ranks divide.
struct Divided {
  const char* name;
  std::int64_t count;
  bool shared = false;  // ranks may share one: multiples of `count` divide too
};

}  // namespace tern::model
