/// Where a parameter of Tern stands in a model of Transformers.
#pragma once
#include <string>
#include <vector>

namespace tern::checkpoint::detail {

struct Place {
  std::string tensor;               // Transformers' name
  bool transposed = false;          // it keeps (inputs, outputs)
  std::size_t part = 0, parts = 1;  // which of equal parts along the outputs
};

Place place_of(const std::string& architecture, const std::string& name);

/// Shape of the whole tensor, from that of Tern's parameter.
std::vector<std::size_t> tensor_shape(const Place& place, const std::vector<std::size_t>& shape);
/// Takes Tern's parameter out of the tensor, and puts it in.
std::vector<float> extract(const Place& place, const std::vector<std::size_t>& shape,
                           std::vector<float> tensor);
void insert(const Place& place, const std::vector<std::size_t>& shape, const float* parameter,
            std::vector<float>& tensor);

}  // namespace tern::checkpoint::detail
