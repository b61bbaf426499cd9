#include "transformers/safetensors.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/types.hpp"
#include "transformers/detail/convert.hpp"
#include "transformers/detail/safetensors_header.hpp"

namespace tern::transformers {

using namespace detail;
namespace fs = std::filesystem;

namespace {

struct OpenFile {
  explicit OpenFile(const fs::path& path) : file(path, O_RDONLY), arrays(parse_safetensors(file)) {}
  File file;
  std::map<std::string, StoredArray> arrays;
};

constexpr std::size_t chunk = std::size_t{4} << 20;  // bytes converted at a time
constexpr std::size_t wide = std::size_t{32} << 10;  // bytes of a row worth a separate read

void read_bytes(const File& file, void* to, std::size_t count, std::size_t offset) {
  if (file.read(to, count, offset) != count)
    user_error("it ended before byte {} while it was read", offset + count);
}

/// `count` contiguous values from byte `offset`.
template <class Stored, class V>
void read_run(const File& file, std::size_t offset, std::size_t count, V* to) {
  if constexpr (std::is_same_v<Stored, V>) return read_bytes(file, to, count * sizeof(V), offset);
  thread_local std::vector<unsigned char> buffer;
  buffer.resize(std::max(buffer.size(), std::min(count * sizeof(Stored), chunk)));
  constexpr std::size_t step = chunk / sizeof(Stored);
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t n = std::min(step, count - first);
    read_bytes(file, buffer.data(), n * sizeof(Stored), offset + first * sizeof(Stored));
    convert<Stored>(buffer.data(), n, to + first);
  }
}

/// Columns of a matrix with rows of `width` values that starts at byte `offset`. Narrow parts are
/// extracted from whole rows, since a read costs as much as thousands of bytes.
template <class Stored, class V>
void read_columns(const File& file, std::size_t offset, std::size_t width, const Part& part,
                  V* to) {
  const std::size_t row_bytes = width * sizeof(Stored);
  if (part.columns * sizeof(Stored) >= wide || row_bytes > chunk) {
    for (std::size_t r = 0; r < part.rows; ++r)
      read_run<Stored>(file, offset + (part.row + r) * row_bytes + part.column * sizeof(Stored),
                       part.columns, to + r * part.columns);
    return;
  }
  thread_local std::vector<unsigned char> buffer;
  buffer.resize(chunk);
  const std::size_t together = chunk / row_bytes;
  for (std::size_t first = 0; first < part.rows; first += together) {
    const std::size_t rows = std::min(together, part.rows - first);
    read_bytes(file, buffer.data(), rows * row_bytes, offset + (part.row + first) * row_bytes);
    for (std::size_t r = 0; r < rows; ++r)
      convert<Stored>(buffer.data() + r * row_bytes + part.column * sizeof(Stored), part.columns,
                      to + (first + r) * part.columns);
  }
}

nlohmann::json read_index(const fs::path& path) {
  nlohmann::json index;
  try {
    index = parse_json(read_text(path));
  } catch (const FileError& error) {
    user_error("{}", error.what());
  } catch (const nlohmann::json::exception& error) {
    user_error("{}: is not JSON: {}", path.string(), reason(error));
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    user_error("{}: is not a JSON object with a weight_map", path.string());
  return index["weight_map"];
}

}  // namespace

struct SafetensorsReader::Impl {
  explicit Impl(const fs::path& path_) : path(path_) {
    const fs::path single = path / "model.safetensors",
                   index = path / "model.safetensors.index.json";
    if (!fs::exists(path)) user_error("{}: no such file or folder", path.string());
    if (!fs::is_directory(path))
      open_file(path);
    else if (fs::exists(single))
      open_file(single);
    else if (fs::exists(index))
      open_index(index);
    else
      user_error("{}: has neither model.safetensors nor model.safetensors.index.json",
                 path.string());
  }

  const OpenFile& open_file(const fs::path& file) {
    try {
      files.push_back(std::make_unique<OpenFile>(file));
    } catch (const std::runtime_error& error) {
      user_error("{}: {}", file.string(), error.what());
    }
    for (const auto& [name, array] : files.back()->arrays)
      locations[name] = {files.back().get(), &array};
    return *files.back();
  }

  /// Only tensors that the index lists, each from the file listed for it.
  void open_index(const fs::path& index) {
    std::map<std::string, const OpenFile*> opened;
    std::map<std::string, TensorLocation> named;
    const nlohmann::json weight_map = read_index(index);
    for (const auto& [name, value] : weight_map.items()) {
      const std::string file = value.is_string() ? value.get<std::string>() : "";
      if (file.empty() || fs::path(file).filename() != file || file == "..")
        user_error("{}: '{}' is not in a file next to it", index.string(), name);
      if (!opened.contains(file)) opened[file] = &open_file(index.parent_path() / file);
      const auto found = opened[file]->arrays.find(name);
      if (found == opened[file]->arrays.end())
        user_error("{}: {} has no tensor '{}'", index.string(), file, name);
      named[name] = {opened[file], &found->second};
    }
    locations = std::move(named);
  }

  struct TensorLocation {
    const OpenFile* file;
    const StoredArray* array;
  };

  const TensorLocation& at(const std::string& name) const {
    const auto found = locations.find(name);
    if (found == locations.end()) user_error("{}: has no tensor '{}'", path.string(), name);
    return found->second;
  }

  fs::path path;
  std::vector<std::unique_ptr<OpenFile>> files;
  std::map<std::string, TensorLocation> locations;
};

SafetensorsReader::SafetensorsReader(const fs::path& path) : impl_(std::make_unique<Impl>(path)) {}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;

bool SafetensorsReader::has(const std::string& name) const {
  return impl_->locations.contains(name);
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, location] : impl_->locations) names.push_back(name);
  return names;
}

std::vector<std::size_t> SafetensorsReader::shape(const std::string& name) const {
  return impl_->at(name).array->shape;
}

const std::string& SafetensorsReader::dtype(const std::string& name) const {
  return impl_->at(name).array->dtype;
}

std::pair<std::size_t, std::size_t> SafetensorsReader::position(const std::string& name) const {
  const auto& [file, array] = impl_->at(name);
  const auto same = [&, wanted = file](const auto& other) { return other.get() == wanted; };
  const auto found = std::find_if(impl_->files.begin(), impl_->files.end(), same);
  return {static_cast<std::size_t>(found - impl_->files.begin()), array->begin};
}

template <class V>
void SafetensorsReader::read(const std::string& name, const Part& part, V* to) const {
  const auto& [file, array] = impl_->at(name);
  const std::size_t width = array->shape.empty() ? 1 : array->shape.back();
  const std::size_t height = width == 0 ? 0 : array->elements / width;
  TERN_REQUIRE(part.row + part.rows <= height && part.column + part.columns <= width,
               "rows {} + {} and columns {} + {} of '{}', which is {} x {}", part.row, part.rows,
               part.column, part.columns, name, height, width);
  const auto read_stored = [&, opened = file, stored = array](auto type) {
    using Stored = decltype(type);
    if (part.columns == width)
      read_run<Stored>(opened->file, stored->begin + part.row * width * sizeof(Stored),
                       part.rows * width, to);
    else
      read_columns<Stored>(opened->file, stored->begin, width, part, to);
  };
  try {
    if (!with_stored_type(array->dtype, read_stored))
      user_error("it is {}, and only F32, F16, BF16 and F64 are supported", array->dtype);
  } catch (const std::runtime_error& error) {
    user_error("{}: tensor '{}': {}", impl_->path.string(), name, error.what());
  }
}

std::vector<float> SafetensorsReader::read(const std::string& name) const {
  const StoredArray& array = *impl_->at(name).array;
  const std::size_t width = array.shape.empty() ? 1 : array.shape.back();
  std::vector<float> values(array.elements);
  read(name, {0, width == 0 ? 0 : array.elements / width, 0, width}, values.data());
  return values;
}

template void SafetensorsReader::read(const std::string&, const Part&, float*) const;
template void SafetensorsReader::read(const std::string&, const Part&, bf16*) const;
template void SafetensorsReader::read(const std::string&, const Part&, fp16*) const;

}  // namespace tern::transformers
