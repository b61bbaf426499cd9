#include "weights/parts.hpp"

#include <fmt/ranges.h>

#include <set>
#include <sstream>

#include "base/error.hpp"
#include "comm/text.hpp"

namespace tern::weights {
namespace {

std::size_t product(const std::vector<std::size_t>& shape, std::size_t from) {
  std::size_t elements = 1;
  for (std::size_t i = from; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

/// One line per tensor: path and shape.
std::string to_text(const std::vector<checkpoint::Tensor>& tensors) {
  std::string text;
  for (const checkpoint::Tensor& t : tensors)
    text += fmt::format("{} {}\n", t.path, fmt::join(t.shape, " "));
  return text;
}

std::vector<checkpoint::Tensor> from_text(const std::string& text) {
  std::vector<checkpoint::Tensor> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    checkpoint::Tensor tensor;
    words >> tensor.path;
    for (std::size_t extent = 0; words >> extent;) tensor.shape.push_back(extent);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

/// Runs break at the innermost divided dimension.
std::size_t run_length(const model::Parameter& p) {
  std::size_t divided = 0;
  for (std::size_t i = 0; i < p.shape.size(); ++i)
    if (p.shape[i] != p.whole[i]) divided = i;
  return product(p.shape, divided);
}

std::size_t place_in_whole(const model::Parameter& p, std::size_t element) {
  std::size_t place = 0, stride = 1;
  for (std::size_t i = p.shape.size(); i-- > 0; element /= p.shape[i]) {
    place += (p.first[i] + element % p.shape[i]) * stride;
    stride *= p.whole[i];
  }
  return place;
}

void read_part(const checkpoint::Reader& reader, const std::string& path, const model::Parameter& p,
               std::size_t begin, std::size_t count, float* to) {
  constexpr std::size_t most = std::size_t{1} << 24;  // elements read at a time
  // Neighboring runs are read together with the gaps between them, in large reads.
  std::vector<Slice> runs;  // of the whole, in `to`
  std::vector<float> between;
  const auto read = [&] {
    if (runs.empty()) return;
    const std::size_t first = runs.front().first, end = runs.back().end();
    if (runs.size() == 1) {
      reader.read(path, first, end - first, to + runs.front().local);
    } else {
      between.resize(end - first);
      reader.read(path, first, end - first, between.data());
      for (const Slice& run : runs)
        std::copy_n(between.data() + (run.first - first), run.count, to + run.local);
    }
    runs.clear();
  };
  for_each_run(p, begin, count, [&](std::size_t first, std::size_t n, std::size_t offset) {
    if (!runs.empty() && first + n - runs.front().first > most) read();
    runs.push_back({{first, n}, offset});
  });
  read();
}

std::vector<checkpoint::Tensor> of_all_stages(const std::vector<checkpoint::Tensor>& tensors,
                                              const model::ModelShard& share) {
  if (share.stages == 1) return tensors;
  TERN_REQUIRE(share.mesh, "a stage without the others");
  comm::Group& pipeline = share.mesh->pipeline();
  std::vector<checkpoint::Tensor> all;
  std::set<std::string> known;
  for (int stage = 0; stage < pipeline.size(); ++stage) {
    const std::string mine = stage == pipeline.rank() ? to_text(tensors) : std::string();
    for (checkpoint::Tensor& tensor : from_text(comm::broadcast_text(mine, pipeline, stage)))
      if (known.insert(tensor.path).second) all.push_back(std::move(tensor));
  }
  return all;
}

}  // namespace tern::weights
