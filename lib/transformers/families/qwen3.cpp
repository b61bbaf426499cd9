#include "transformers/families/qwen3.hpp"

namespace tern::transformers::detail {

deck::Model read_qwen3(Settings& settings) {
  deck::Model m = read_llama(settings);
  m.qk_norm = true;
  m.attention_bias = settings.flag("attention_bias", false);
  return m;
}

Json write_qwen3(const deck::Model& m) {
  Json config = write_llama(m);
  config["attention_bias"] = m.attention_bias;
  config["use_sliding_window"] = false;
  return config;
}

namespace {

deck::Model read(Settings& settings) {
  deck::Model m = read_qwen3(settings);
  m.head_dim = settings.count_or("head_dim", 128);
  return m;
}

}  // namespace

extern const Family qwen3{"Qwen3ForCausalLM", "qwen3", read, write_qwen3, locations_of_llama,
                          recomputed_by_llama};

}  // namespace tern::transformers::detail
