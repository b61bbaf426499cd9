/// Weights of a model's blocks, rounded to E4M3 on the host: reference for engines that keep them in
/// fp8.
#pragma once
#include "base/fp8.hpp"
#include "model/harness.hpp"

namespace tern::test {

/// Whether it belongs to a linear map of a block that is neither an expert nor their router.
inline bool is_map(const model::Parameter& p) {
  const std::string ending = "_proj/weight";
  return p.name.size() > ending.size() && p.name.find("/experts/") == std::string::npos &&
         p.name.compare(p.name.size() - ending.size(), ending.size(), ending) == 0;
}

/// Rounds each row of this rank's part of these maps with its own scale; returns their number.
template <class T>
std::size_t round_maps(const model::ParameterTree& tree, const model::Parameters<T>& parameters) {
  std::size_t maps = 0;
  for (const model::Parameter& p : tree.parameters()) {
    if (!is_map(p)) continue;
    const Vector<T> weight(parameters.compute.data() + p.offset, p.count);
    std::vector<double> values = download(weight);
    for (std::size_t row = 0; row < p.shape[0]; ++row) {
      double* of_row = values.data() + row * p.shape[1];
      double most = 0;
      for (std::size_t i = 0; i < p.shape[1]; ++i) most = std::max(most, std::abs(of_row[i]));
      const float scale = scale_for<E4M3>(static_cast<float>(most));
      for (std::size_t i = 0; i < p.shape[1]; ++i)
        of_row[i] = round_to<E4M3>(static_cast<float>(of_row[i]) * scale) / scale;
    }
    upload(values, weight);
    ++maps;
  }
  return maps;
}

}  // namespace tern::test
