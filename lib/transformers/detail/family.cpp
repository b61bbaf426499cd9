#include "transformers/detail/family.hpp"

#include "base/error.hpp"
#include "transformers/detail/config.hpp"

namespace tern::transformers::detail {

extern const Family gpt2, llama, qwen3, qwen3_moe;

std::span<const Family* const> families() {
  static constexpr const Family* all[] = {&llama, &qwen3, &qwen3_moe, &gpt2};
  return all;
}

namespace {

/// Settings of the model that its config.json as this family would not keep.
std::vector<deck::Difference> obstacles(const Family& family, const deck::Model& model) {
  Settings settings(settings_of(family, model), "config.json");
  return deck::model_differences(model, read_model(family, settings));
}

std::string shown(const std::vector<deck::Difference>& obstacles) {
  std::string text;
  for (const deck::Difference& d : obstacles)
    text +=
        fmt::format("{}{} = {} (needs {})", text.empty() ? "" : ", ", d.name, d.first, d.second);
  return text;
}

}  // namespace

const Family& family_of(const deck::Model& model) {
  const Family* nearest = nullptr;
  std::vector<deck::Difference> fewest;
  for (const Family* family : families()) {
    std::vector<deck::Difference> found = obstacles(*family, model);
    if (found.empty()) return *family;
    if (!nearest || found.size() < fewest.size()) nearest = family, fewest = std::move(found);
  }
  user_error("this model has no architecture in Transformers: {}, the nearest, differs in {}",
             nearest->architecture, shown(fewest));
}

}  // namespace tern::transformers::detail
