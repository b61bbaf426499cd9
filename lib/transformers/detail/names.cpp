#include "transformers/detail/names.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace tern::transformers::detail {
namespace {

const std::string layers = "model/layers/";

struct Gpt2Name {
  const char* name;
  bool transposed = false;
  std::size_t part = 0, parts = 1;  // number and count of equal parts along the outputs
};

/// Location of a parameter of `shape` = (outputs, inputs) or (outputs) in its tensor of `parts` such.
TensorLocation gpt2_location(const std::string& tensor, const Gpt2Name& kept,
                             std::vector<std::size_t> shape) {
  TensorLocation location{tensor, {}, kept.transposed && shape.size() > 1, kept.part * shape[0]};
  shape[0] *= kept.parts;
  if (location.transposed) std::reverse(shape.begin(), shape.end());
  location.shape = std::move(shape);
  return location;
}

TensorLocation gpt2_location(const std::string& name, const std::vector<std::size_t>& shape) {
  static const std::map<std::string, std::string> top = {
      {"model/embed_tokens/weight", "transformer.wte.weight"},
      {"model/embed_positions/weight", "transformer.wpe.weight"},
      {"model/norm/weight", "transformer.ln_f.weight"},
      {"model/norm/bias", "transformer.ln_f.bias"},
      {"lm_head/weight", "lm_head.weight"}};
  static const std::map<std::string, Gpt2Name> inner = {
      {"input_layernorm", {"ln_1"}},
      {"post_attention_layernorm", {"ln_2"}},
      {"self_attn/q_proj", {"attn.c_attn", true, 0, 3}},
      {"self_attn/k_proj", {"attn.c_attn", true, 1, 3}},
      {"self_attn/v_proj", {"attn.c_attn", true, 2, 3}},
      {"self_attn/o_proj", {"attn.c_proj", true}},
      {"mlp/up_proj", {"mlp.c_fc", true}},
      {"mlp/down_proj", {"mlp.c_proj", true}}};
  if (const auto found = top.find(name); found != top.end()) return {found->second, shape};
  const std::size_t start = layers.size(), after = name.find('/', start), leaf = name.rfind('/');
  TERN_REQUIRE(name.rfind(layers, 0) == 0 && after < leaf && leaf != std::string::npos,
               "GPT-2 has no '{}'", name);
  const auto found = inner.find(name.substr(after + 1, leaf - after - 1));
  TERN_REQUIRE(found != inner.end(), "GPT-2 has no '{}'", name);
  return gpt2_location(fmt::format("transformer.h.{}.{}.{}", name.substr(start, after - start),
                                   found->second.name, name.substr(leaf + 1)),
                       found->second, shape);
}

std::string dotted(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace

TensorLocation location_of(const std::string& architecture, const std::string& name,
                           const std::vector<std::size_t>& shape) {
  if (architecture == "GPT2LMHeadModel") return gpt2_location(name, shape);
  return {dotted(name), shape};
}

std::optional<TensorLocation> fused_location(const std::string& name,
                                             const std::vector<std::size_t>& shape,
                                             std::size_t experts) {
  const std::string marker = "/mlp/experts/";
  const std::size_t at = name.find(marker);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t number = at + marker.size(), slash = name.find('/', number);
  const std::string kind = name.substr(slash + 1, name.rfind('/') - slash - 1);
  const auto expert = static_cast<std::size_t>(std::stoull(name.substr(number, slash - number)));
  const bool down = kind == "down_proj";
  const std::size_t outputs = shape[0], together = down ? outputs : 2 * outputs;
  return TensorLocation{dotted(name.substr(0, number)) + (down ? "down_proj" : "gate_up_proj"),
                        {experts, together, shape[1]},
                        false,
                        expert * together + (kind == "up_proj" ? outputs : 0)};
}

Part part_in_tensor(const TensorLocation& location, const Part& part) {
  if (location.transposed) return {part.column, part.columns, location.first + part.row, part.rows};
  if (location.shape.size() == 1)
    return {part.row, part.rows, location.first + part.column, part.columns};
  return {location.first + part.row, part.rows, part.column, part.columns};
}

}  // namespace tern::transformers::detail
