#include "transformers/directory.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/types.hpp"
#include "transformers/detail/config.hpp"

namespace tern::transformers {
namespace {

constexpr const char *head = "lm_head/weight", *embeddings = "model/embed_tokens/weight";

/// The first location that the files hold; none: the first.
detail::TensorLocation location_in(const SafetensorsReader& weights, const detail::Config& config,
                                   const std::string& parameter, const detail::Shape& shape) {
  const auto all = config.family->locations(parameter, shape, config.model);
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const auto& location) { return weights.has(location.tensor); });
  return found == all.end() ? all.front() : *found;
}

/// The fault of the stored tensor; empty: none.
std::string mismatch(const SafetensorsReader& weights, const detail::TensorLocation& location) {
  if (!weights.has(location.tensor))
    return fmt::format("has no tensor '{}', which its config.json requires", location.tensor);
  const std::vector<std::size_t> shape = weights.shape(location.tensor);
  if (shape == location.shape) return "";
  return fmt::format("tensor '{}' has shape ({}), and config.json requires ({})", location.tensor,
                     fmt::join(shape, ", "), fmt::join(location.shape, ", "));
}

/// Whether config.json ties the head to the embeddings although the files hold a different head.
/// Transformers 5 keeps a head that differs and ties one that is equal.
bool holds_own_head(const SafetensorsReader& weights, const detail::Config& config) {
  const std::string own = location_in(weights, config, head, {1, 1}).tensor,
                    tied = location_in(weights, config, embeddings, {1, 1}).tensor;
  if (!config.model.tie_embeddings || !weights.has(own) || !weights.has(tied)) return false;
  const std::vector<std::size_t> shape = weights.shape(own);
  if (shape.size() != 2 || shape != weights.shape(tied)) return true;
  constexpr std::size_t together = std::size_t{1} << 20;
  const std::size_t rows = std::max<std::size_t>(1, together / std::max<std::size_t>(1, shape[1]));
  std::vector<float> a(std::min(rows, shape[0]) * shape[1]), b(a.size());
  for (std::size_t row = 0; row < shape[0]; row += rows) {
    const Part part{row, std::min(rows, shape[0] - row), 0, shape[1]};
    weights.read(own, part, a.data());
    weights.read(tied, part, b.data());
    if (std::memcmp(a.data(), b.data(), part.rows * part.columns * sizeof(float)) != 0) return true;
  }
  return false;
}

/// The first few faults of a list, and their number.
struct Faults {
  std::size_t count = 0;
  std::string shown = {};
  void add(const std::string& fault) {
    if (++count <= 8) shown += "\n  " + fault;
  }
  std::string text() const {
    return count <= 8 ? shown : fmt::format("{}\n  and {} more", shown, count - 8);
  }
};

}  // namespace

bool is_transformers(const std::filesystem::path& directory) {
  return std::filesystem::exists(directory / "config.json");
}

deck::Model transformers_model(const std::filesystem::path& directory) {
  detail::Config config = detail::read_config(directory / "config.json");
  std::optional<SafetensorsReader> weights;
  try {
    if (config.model.tie_embeddings) weights.emplace(directory);
  } catch (const UserError&) {  // optional here; reported by TransformersReader when needed
    return config.model;
  }
  if (weights && holds_own_head(*weights, config)) config.model.tie_embeddings = false;
  return config.model;
}

TransformersReader::TransformersReader(const std::filesystem::path& directory)
    : TransformersReader(directory, detail::read_config(directory / "config.json")) {}

TransformersReader::TransformersReader(const std::filesystem::path& directory,
                                       const detail::Config& config)
    : directory_(directory),
      family_(*config.family),
      model_(config.model),
      weights_(directory),
      own_head_(holds_own_head(weights_, config)) {
  if (own_head_) model_.tie_embeddings = false;
}

std::string TransformersReader::architecture() const { return family_.architecture; }

/// Actual or expected location of the parameter in the files.
detail::TensorLocation TransformersReader::location(const std::string& name,
                                                    const std::vector<std::size_t>& shape) const {
  return location_in(weights_, {&family_, model_}, name, shape);
}

detail::TensorLocation TransformersReader::stored_location(
    const std::string& name, const std::vector<std::size_t>& shape) const {
  detail::TensorLocation found = location(name, shape);
  if (const std::string wrong = mismatch(weights_, found); !wrong.empty())
    user_error("{}: {}", directory_.string(), wrong);
  return found;
}

void TransformersReader::require(const std::vector<Described>& parameters) const {
  Faults faults;
  std::set<std::string> known;
  for (const Described& p : parameters) {
    const detail::TensorLocation found = location(p.name, p.shape);
    if (!known.insert(found.tensor).second) continue;
    if (const std::string wrong = mismatch(weights_, found); !wrong.empty()) faults.add(wrong);
  }
  if (model_.tie_embeddings)
    known.insert(location(head, {1, 1}).tensor);  // equal to the embeddings
  for (const std::string& name : weights_.names())
    if (!known.contains(name) && !family_.recomputed(name))
      faults.add(fmt::format("tensor '{}' is not part of the model", name));
  if (faults.count > 0)
    user_error("{}: the weights do not match its config.json:{}", directory_.string(),
               faults.text());
}

template <class V>
void TransformersReader::read(const std::string& name, const std::vector<std::size_t>& shape,
                              const Part& part, V* to) const {
  const detail::TensorLocation found = stored_location(name, shape);
  const Part stored = detail::part_in_tensor(found, part);
  if (!found.transposed) return weights_.read(found.tensor, stored, to);
  std::vector<V> turned(part.rows * part.columns);
  weights_.read(found.tensor, stored, turned.data());
  for (std::size_t r = 0; r < part.rows; ++r)
    for (std::size_t c = 0; c < part.columns; ++c)
      to[r * part.columns + c] = turned[c * part.rows + r];
}

std::vector<float> TransformersReader::read(const std::string& name,
                                            const std::vector<std::size_t>& shape) const {
  const std::size_t columns = shape.back();
  const std::size_t rows = shape.size() > 1 ? shape[0] : 1;
  std::vector<float> values(rows * columns);
  read(name, shape, {0, rows, 0, columns}, values.data());
  return values;
}

const std::string& TransformersReader::dtype(const Described& p) const {
  return weights_.dtype(stored_location(p.name, p.shape).tensor);
}

std::pair<std::size_t, std::size_t> TransformersReader::position(const Described& p) const {
  const detail::TensorLocation found = stored_location(p.name, p.shape);
  auto [file, byte] = weights_.position(found.tensor);
  return {file, byte + found.first};
}

template void TransformersReader::read(const std::string&, const std::vector<std::size_t>&,
                                       const Part&, float*) const;
template void TransformersReader::read(const std::string&, const std::vector<std::size_t>&,
                                       const Part&, bf16*) const;
template void TransformersReader::read(const std::string&, const std::vector<std::size_t>&,
                                       const Part&, fp16*) const;

std::string transformers_architecture(const deck::Model& model) {
  return detail::family_of(model).architecture;
}

}  // namespace tern::transformers
