#include "checkpoint/detail/transformers_names.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace tern::checkpoint::detail {
namespace {

const std::string layers = "model/layers/";

Place gpt2_place(const std::string& name) {
  static const std::map<std::string, std::string> top = {
      {"model/embed_tokens/weight", "transformer.wte.weight"},
      {"model/embed_positions/weight", "transformer.wpe.weight"},
      {"model/norm/weight", "transformer.ln_f.weight"},
      {"model/norm/bias", "transformer.ln_f.bias"},
      {"lm_head/weight", "lm_head.weight"}};
  static const std::map<std::string, Place> inner = {
      {"input_layernorm", {"ln_1"}},
      {"post_attention_layernorm", {"ln_2"}},
      {"self_attn/q_proj", {"attn.c_attn", true, 0, 3}},
      {"self_attn/k_proj", {"attn.c_attn", true, 1, 3}},
      {"self_attn/v_proj", {"attn.c_attn", true, 2, 3}},
      {"self_attn/o_proj", {"attn.c_proj", true}},
      {"mlp/up_proj", {"mlp.c_fc", true}},
      {"mlp/down_proj", {"mlp.c_proj", true}}};
  if (const auto found = top.find(name); found != top.end()) return {found->second};
  const std::size_t start = layers.size(), after = name.find('/', start), leaf = name.rfind('/');
  TERN_REQUIRE(name.rfind(layers, 0) == 0 && after < leaf && leaf != std::string::npos,
               "GPT-2 has no '{}'", name);
  const auto found = inner.find(name.substr(after + 1, leaf - after - 1));
  TERN_REQUIRE(found != inner.end(), "GPT-2 has no '{}'", name);
  Place place = found->second;
  place.tensor = fmt::format("transformer.h.{}.{}.{}", name.substr(start, after - start),
                             place.tensor, name.substr(leaf + 1));
  return place;
}

/// Calls visit(index in the parameter, index in the tensor) for each element.
template <class Visit>
void for_each_element(const Place& place, const std::vector<std::size_t>& shape, Visit visit) {
  const std::size_t outputs = shape[0], inputs = shape.size() > 1 ? shape[1] : 1;
  const std::size_t first = place.part * outputs, all = place.parts * outputs;
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t i = 0; i < inputs; ++i)
      visit(o * inputs + i, place.transposed ? i * all + first + o : (first + o) * inputs + i);
}

bool same_layout(const Place& place, const std::vector<std::size_t>& shape) {
  return place.parts == 1 && (!place.transposed || shape.size() == 1);
}

}  // namespace

Place place_of(const std::string& architecture, const std::string& name) {
  if (architecture == "GPT2LMHeadModel") return gpt2_place(name);
  std::string dotted = name;
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  return {dotted};
}

std::vector<std::size_t> tensor_shape(const Place& place, const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> result = shape;
  result[0] *= place.parts;
  if (place.transposed) std::reverse(result.begin(), result.end());
  return result;
}

std::vector<float> extract(const Place& place, const std::vector<std::size_t>& shape,
                           std::vector<float> tensor) {
  if (same_layout(place, shape)) return tensor;
  std::vector<float> result(tensor.size() / place.parts);
  for_each_element(place, shape,
                   [&](std::size_t to, std::size_t from) { result[to] = tensor[from]; });
  return result;
}

void insert(const Place& place, const std::vector<std::size_t>& shape, const float* parameter,
            std::vector<float>& tensor) {
  for_each_element(place, shape,
                   [&](std::size_t from, std::size_t to) { tensor[to] = parameter[from]; });
}

}  // namespace tern::checkpoint::detail
