#include "checkpoint/safetensors.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/types.hpp"
#include "checkpoint/detail/files.hpp"
#include "checkpoint/detail/layout.hpp"
#include "checkpoint/detail/mapping.hpp"
#include "checkpoint/detail/safetensors_header.hpp"

namespace tern::checkpoint {

using namespace detail;
namespace fs = std::filesystem;

namespace {

/// IEEE half precision: 5 exponent bits, 10 mantissa bits.
float float_of_half(std::uint16_t half) {
  const std::uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  float value;
  if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    const std::uint32_t wide =
        exponent == 31 ? 0x7f800000u | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
    std::memcpy(&value, &wide, sizeof value);
  }
  return half & 0x8000 ? -value : value;
}

/// `Stored` values, at any address, as floats.
template <class Stored, class Convert>
std::vector<float> convert(const unsigned char* from, std::size_t count, Convert to_float) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    result[i] = to_float(stored);
  }
  return result;
}

struct MappedFile {
  explicit MappedFile(const fs::path& path) : mapping(path) {
    arrays = parse_safetensors(mapping.data(), mapping.size());
  }
  Mapping mapping;
  std::map<std::string, StoredArray> arrays;
};

nlohmann::json read_index(const fs::path& path) {
  const auto index = nlohmann::json::parse(read_text(path), nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    user_error("{}: is no JSON object with a weight_map", path.string());
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

  const MappedFile& open_file(const fs::path& file) {
    try {
      files.push_back(std::make_unique<MappedFile>(file));
    } catch (const std::runtime_error& error) {
      user_error("{}: {}", file.string(), error.what());
    }
    for (const auto& [name, array] : files.back()->arrays)
      places[name] = {files.back().get(), &array};
    return *files.back();
  }

  /// Only what the index names, each from the file it names.
  void open_index(const fs::path& index) {
    std::map<std::string, const MappedFile*> opened;
    std::map<std::string, Place> named;
    const nlohmann::json weight_map = read_index(index);
    for (const auto& [name, value] : weight_map.items()) {
      const std::string file = value.is_string() ? value.get<std::string>() : "";
      if (file.empty() || fs::path(file).filename() != file || file == "..")
        user_error("{}: '{}' is not in a file beside it", index.string(), name);
      if (!opened.contains(file)) opened[file] = &open_file(index.parent_path() / file);
      const auto found = opened[file]->arrays.find(name);
      if (found == opened[file]->arrays.end())
        user_error("{}: {} has no tensor '{}'", index.string(), file, name);
      named[name] = {opened[file], &found->second};
    }
    places = std::move(named);
  }

  struct Place {
    const MappedFile* file;
    const StoredArray* array;
  };

  const Place& at(const std::string& name) const {
    const auto found = places.find(name);
    if (found == places.end()) user_error("{}: has no tensor '{}'", path.string(), name);
    return found->second;
  }

  fs::path path;
  std::vector<std::unique_ptr<MappedFile>> files;
  std::map<std::string, Place> places;
};

SafetensorsReader::SafetensorsReader(const fs::path& path) : impl_(std::make_unique<Impl>(path)) {}
SafetensorsReader::~SafetensorsReader() = default;

bool SafetensorsReader::has(const std::string& name) const { return impl_->places.contains(name); }

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : impl_->places) names.push_back(name);
  return names;
}

std::vector<std::size_t> SafetensorsReader::shape(const std::string& name) const {
  return impl_->at(name).array->shape;
}

std::vector<float> SafetensorsReader::read(const std::string& name) const {
  const auto& [file, array] = impl_->at(name);
  const unsigned char* from = file->mapping.data() + array->begin;
  const auto cast = [](auto value) { return static_cast<float>(value); };
  if (array->dtype == "F32") return convert<float>(from, array->elements, cast);
  if (array->dtype == "F64") return convert<double>(from, array->elements, cast);
  if (array->dtype == "BF16") return convert<bf16>(from, array->elements, cast);
  if (array->dtype == "F16") return convert<std::uint16_t>(from, array->elements, float_of_half);
  user_error("{}: tensor '{}' is {}, and only F32, F16, BF16 and F64 are read",
             impl_->path.string(), name, array->dtype);
}

namespace {

std::size_t width_of(Dtype dtype) { return dtype == Dtype::f32 ? 4 : 2; }

/// Length and JSON, padded with spaces so that the data starts at a multiple of 8.
std::string header_of(const std::vector<NamedArray>& arrays, Dtype dtype,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const NamedArray& array : arrays) {
    TERN_REQUIRE(!header.contains(array.name), "tensor '{}' twice", array.name);
    const std::size_t end = begin + element_count(array.shape) * width_of(dtype);
    header[array.name] = {{"dtype", dtype == Dtype::f32 ? "F32" : "BF16"},
                          {"shape", array.shape},
                          {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  return prefix + text;
}

std::size_t write_array(File& file, std::size_t offset, const NamedArray& array, Dtype dtype) {
  const std::size_t count = element_count(array.shape);
  if (dtype == Dtype::f32) {
    file.write(array.data, count * sizeof(float), offset);
  } else {
    constexpr std::size_t step = std::size_t{1} << 20;
    std::vector<bf16> rounded(std::min(count, step));
    for (std::size_t first = 0; first < count; first += step) {
      const std::size_t n = std::min(step, count - first);
      std::copy_n(array.data + first, n, rounded.begin());
      file.write(rounded.data(), n * sizeof(bf16), offset + first * sizeof(bf16));
    }
  }
  return offset + count * width_of(dtype);
}

}  // namespace

void write_safetensors(const fs::path& file, const std::vector<NamedArray>& arrays, Dtype dtype,
                       const std::map<std::string, std::string>& metadata) {
  const fs::path temporary = file.string() + ".tmp-" + unique_token();
  try {
    {
      File out(temporary, O_WRONLY | O_CREAT | O_EXCL);
      const std::string header = header_of(arrays, dtype, metadata);
      out.write(header.data(), header.size(), 0);
      std::size_t offset = header.size();
      for (const NamedArray& array : arrays) offset = write_array(out, offset, array, dtype);
      out.sync();
    }
    rename_path(temporary, file);
    sync_path(file.parent_path().empty() ? "." : file.parent_path());
  } catch (const FileError& error) {
    remove_quietly(temporary);
    user_error("{} was not written: {}; check the folder, its permissions and free space",
               file.string(), error.what());
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
}

}  // namespace tern::checkpoint
