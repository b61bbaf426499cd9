#include "weights/matching.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"

namespace tern::weights {
namespace {

using Shapes = std::map<std::string, std::vector<std::size_t>>;

Shapes shapes_of(const std::vector<checkpoint::Tensor>& tensors) {
  Shapes shapes;
  for (const checkpoint::Tensor& tensor : tensors) shapes[tensor.path] = tensor.shape;
  return shapes;
}

/// "/model/layers/*/mlp/up_proj/weight".
std::string without_numbers(const std::filesystem::path& path) {
  std::filesystem::path result;
  for (const std::filesystem::path& part : path) {
    const std::string& name = part.native();
    const bool number =
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    result /= number ? "*" : name;
  }
  return result.string();
}

/// Texts, and how often each was added.
class Lines {
 public:
  void add(const std::string& path, const std::string& text) {
    ++counts_[without_numbers(path) + text];
  }
  void log(const std::string& title, Log& log) const {
    for (const auto& [text, count] : counts_)
      log.line("{}: {}{}", title, text, count > 1 ? fmt::format(", {} of them", count) : "");
  }

 private:
  std::map<std::string, std::size_t> counts_;
};

std::string text_of(const std::vector<std::size_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace

std::set<std::string> matching_tensors(const std::vector<checkpoint::Tensor>& wanted,
                                       const std::vector<checkpoint::Tensor>& stored,
                                       const std::string& from, Log& log) {
  const Shapes here = shapes_of(wanted), there = shapes_of(stored);
  std::set<std::string> matching;
  Lines kept, left;
  for (const auto& [path, shape] : here) {
    const auto found = there.find(path);
    if (found == there.end())
      kept.add(path, fmt::format(" {}", text_of(shape)));
    else if (found->second != shape)
      kept.add(path, fmt::format(" {}, {} there", text_of(shape), text_of(found->second)));
    else
      matching.insert(path);
  }
  for (const auto& [path, shape] : there)
    if (!here.contains(path)) left.add(path, fmt::format(" {}", text_of(shape)));
  if (matching.empty())
    user_error(
        "{} has no tensor with the name and shape of one of the deck's model; set &model load to "
        "other weights",
        from);
  log.line("{} of the model's {} tensors are in {}", matching.size(), here.size(), from);
  kept.log("keeps its initial values", log);
  left.log("not taken", log);
  return matching;
}

}  // namespace tern::weights
