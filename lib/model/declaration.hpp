/// What a part of the model (model/block/, model/detail/) declares of its parameters: names, shapes
/// of the whole model, initial values, and which ranks hold them. The parameter tree lays out what
/// is declared and knows no name itself.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::model {

/// How tensor ranks hold a parameter.
enum class Held {
  whole,           // each has all of it, and its whole gradient
  whole_of_heads,  // each has all of it, and the part of the gradient that comes from its heads
  rows,            // equal parts of the outputs
  columns,         // equal parts of the inputs
  kv_rows,  // rows of key-value heads, which several ranks share where there are fewer of them
};

/// Which pipeline stages hold a parameter.
enum class Stages { of_layer, first, last, ends, all };

/// Normal(mean, std); std 0: constant.
struct Initial {
  double mean = 0, std = 0;
};
/// Of a projection into the residual stream, to which each block adds two (GPT-2, section 2.3).
Initial initial_residual(const deck::Model& model);
Initial initial_embedding(const deck::Model& model);

struct Declared {
  std::string name;                // "model/layers/0/self_attn/q_proj/weight"
  std::vector<std::size_t> shape;  // as in Transformers: (out, in) for matrices
  Initial initial;
  Held held = Held::whole;
  bool matrix() const { return shape.size() > 1; }
};

/// One of the modules that are fused along the outputs into one linear map.
struct Module {
  std::string name;  // "model/layers/0/self_attn/q_proj"
  std::size_t outputs;
  Held held;
};

class Declaration {
 public:
  /// Groups of parameters: those of a group lie side by side, as one fused matrix or vector; the
  /// groups, of equal size, lie at equal distances.
  struct Bank {
    std::vector<std::vector<Declared>> groups;
    Stages stages;
    bool matrices() const { return groups.front().front().matrix(); }
  };

  /// `layer` < 0: of a part that is in no layer.
  explicit Declaration(Stages stages, std::int64_t layer = -1) : stages_(stages), layer_(layer) {}

  /// One parameter.
  void add(const Declared& parameter) { add(parameter, stages_); }
  void add(const Declared& parameter, Stages stages) {
    banks_.push_back({std::vector<std::vector<Declared>>(1, {parameter}), stages});
  }
  /// A linear map of `inputs`, made of the modules; biases start at 0.
  void linear(const std::vector<Module>& modules, std::size_t inputs, Initial initial, bool bias);
  /// The same map, without biases, `count` times: that of i is made of modules_of(i).
  void linears(std::size_t count, const std::function<std::vector<Module>(std::size_t)>& modules_of,
               std::size_t inputs, Initial initial);

  const std::vector<Bank>& banks() const { return banks_; }
  std::int64_t layer() const { return layer_; }

 private:
  Stages stages_;
  std::int64_t layer_;
  std::vector<Bank> banks_;
};

/// All parts of a resolved model, in the order of the span.
std::vector<Declaration> declare(const deck::Model& model);

/// A number of &model that tensor ranks divide.
struct Divided {
  const char* name;
  std::int64_t count;
  bool shared = false;  // several ranks may hold the same one: a multiple of it divides too
};
/// Those of all parts.
std::vector<Divided> divided(const deck::Model& model);

}  // namespace tern::model
