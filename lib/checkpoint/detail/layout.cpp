#include "checkpoint/detail/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace tern::checkpoint::detail {
namespace {

constexpr std::size_t chunk_elements = std::size_t{1} << 19;

/// Box of `size` elements along `axis` from `start`, full extent along later axes.
Box box_at(const Shape& shape, std::size_t axis, Shape start, std::size_t size, std::size_t inner) {
  Shape extent(shape.size(), 1);
  extent[axis] = size;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) extent[i] = shape[i];
  return {std::move(start), std::move(extent), size * inner};
}

}  // namespace

Shape chunk_shape(const Shape& shape) {
  std::size_t rest = element_count(shape);
  if (shape.empty() || rest == 0) return {};
  Shape chunk = shape;
  for (std::size_t& extent : chunk) {
    const std::size_t inner = rest / extent;
    const std::size_t most = std::max<std::size_t>(1, chunk_elements / inner);
    // Equal chunks: the last one is stored in full, however little of it is used.
    const std::size_t chunks = (extent + most - 1) / most;
    extent = (extent + chunks - 1) / chunks;
    if (inner <= chunk_elements) break;
    rest = inner;
  }
  return chunk;
}

std::vector<Box> boxes_of_range(const Shape& shape, std::size_t first, std::size_t count) {
  if (shape.empty()) return {Box{{}, {}, 1}};
  std::vector<Box> boxes;
  // Greedy: at each position the largest box that starts there, fits and stays within its row.
  while (count > 0) {
    Shape start(shape.size());
    std::size_t rest = first;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) start[i] = rest % shape[i];
    std::size_t axis = shape.size() - 1, inner = 1;
    while (axis > 0 && start[axis] == 0 && count >= inner * shape[axis]) inner *= shape[axis--];
    const std::size_t size = std::min(count / inner, shape[axis] - start[axis]);
    boxes.push_back(box_at(shape, axis, start, size, inner));
    first += boxes.back().count;
    count -= boxes.back().count;
  }
  return boxes;
}

std::vector<Extent> cover(const std::vector<Tensor>& tensors, std::vector<Extent> extents) {
  const auto order = [](const Extent& e) { return std::tuple(e.tensor, e.first, e.rank); };
  std::sort(extents.begin(), extents.end(),
            [&](const Extent& a, const Extent& b) { return order(a) < order(b); });
  std::vector<Extent> result;
  auto next = extents.begin();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::size_t covered = 0;
    for (; next != extents.end() && next->tensor == t && next->first <= covered; ++next) {
      if (next->first + next->count <= covered) continue;
      const std::size_t known = covered - next->first;
      result.push_back({t, covered, next->count - known, next->offset + known, next->rank});
      covered = next->first + next->count;
    }
    const std::size_t wanted = element_count(tensors[t].shape);
    if (covered != wanted || (next != extents.end() && next->tensor == t))
      throw std::runtime_error(fmt::format("{}: no rank holds the elements from {} on ({} in all)",
                                           tensors[t].path, covered, wanted));
  }
  return result;
}

std::vector<Band> bands(const Shape& shape, const std::vector<Extent>& extents) {
  std::vector<Band> result;
  std::map<int, std::size_t> open;  // by rank: the band that may continue
  const std::size_t width = shape.empty() ? 0 : shape.back();
  for (const Extent& e : extents) {
    if (const auto found = open.find(e.rank); found != open.end()) {
      Band& band = result[found->second];
      const Extent& first = band.extent;
      if (e.count == first.count && e.first == first.first + band.rows * width &&
          e.offset == first.offset + band.rows * first.count) {
        ++band.rows;
        continue;
      }
    }
    const bool within_row = shape.size() == 2 && e.first % width + e.count <= width;
    if (within_row)
      open[e.rank] = result.size();
    else
      open.erase(e.rank);
    result.push_back({e, 1});
  }
  return result;
}

}  // namespace tern::checkpoint::detail
