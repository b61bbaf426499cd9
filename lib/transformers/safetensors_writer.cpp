#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/shape.hpp"
#include "base/types.hpp"
#include "transformers/safetensors.hpp"

namespace tern::transformers {

using namespace detail;
namespace fs = std::filesystem;

namespace {

std::size_t bytes_of(const StreamedArray& array) {
  return element_count(array.shape) * width_of(array.dtype);
}

/// Length and JSON, padded with spaces so that the data is aligned to 8 bytes.
std::string header_of(const std::vector<StreamedArray>& arrays,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const StreamedArray& array : arrays) {
    TERN_REQUIRE(!header.contains(array.name), "tensor '{}' twice", array.name);
    const std::size_t end = begin + bytes_of(array);
    header[array.name] = {{"dtype", array.dtype == Dtype::f32 ? "F32" : "BF16"},
                          {"shape", array.shape},
                          {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = json_text(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  return prefix + text;
}

void write_array(File& file, std::size_t offset, const StreamedArray& array) {
  const std::size_t count = element_count(array.shape);
  constexpr std::size_t step = std::size_t{1} << 20;
  std::vector<float> values(std::min(count, step));
  std::vector<bf16> rounded(array.dtype == Dtype::bf16 ? values.size() : 0);
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t n = std::min(step, count - first);
    array.read(first, n, values.data());
    if (array.dtype == Dtype::bf16) {
      std::copy_n(values.begin(), n, rounded.begin());
      file.write(rounded.data(), n * sizeof(bf16), offset + first * sizeof(bf16));
    } else {
      file.write(values.data(), n * sizeof(float), offset + first * sizeof(float));
    }
  }
}

/// Whether the name is that of a weight file or its index.
bool is_weights(const std::string& name) {
  return name == "model.safetensors" || name == "model.safetensors.index.json" ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

void remove_others(const fs::path& directory, const std::set<std::string>& keep) {
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const std::string name = entry.path().filename().string();
        is_weights(name) && !keep.contains(name))
      stale.push_back(entry.path());
  for (const fs::path& path : stale) fs::remove(path);
}

/// File number of each array.
std::vector<std::size_t> divide(const std::vector<StreamedArray>& arrays, std::size_t shard_bytes) {
  std::vector<std::size_t> shard_of;
  std::size_t shard = 0, filled = 0;
  for (const StreamedArray& array : arrays) {
    const std::size_t bytes = bytes_of(array);
    if (filled > 0 && filled + bytes > shard_bytes) ++shard, filled = 0;
    filled += bytes;
    shard_of.push_back(shard);
  }
  return shard_of;
}

}  // namespace

std::size_t width_of(Dtype dtype) { return dtype == Dtype::f32 ? 4 : 2; }

void write_safetensors(const fs::path& file, const std::vector<StreamedArray>& arrays,
                       const std::map<std::string, std::string>& metadata) {
  const fs::path temporary = file.string() + ".tmp-" + unique_token();
  try {
    {
      File out(temporary, O_WRONLY | O_CREAT | O_EXCL);
      const std::string header = header_of(arrays, metadata);
      out.write(header.data(), header.size(), 0);
      std::size_t offset = header.size();
      for (const StreamedArray& array : arrays) {
        write_array(out, offset, array);
        offset += bytes_of(array);
      }
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

void write_safetensors(const fs::path& file, const std::vector<NamedArray>& arrays, Dtype dtype,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<StreamedArray> streamed;
  for (const NamedArray& array : arrays)
    streamed.push_back({array.name, array.shape, dtype,
                        [data = array.data](std::size_t first, std::size_t count, float* to) {
                          std::copy_n(data + first, count, to);
                        }});
  write_safetensors(file, streamed, metadata);
}

void write_model(const fs::path& directory, const std::vector<StreamedArray>& arrays,
                 std::size_t shard_bytes) {
  const std::vector<std::size_t> shard_of = divide(arrays, shard_bytes);
  const std::size_t shards = arrays.empty() ? 1 : shard_of.back() + 1;
  std::set<std::string> written;
  std::size_t total = 0;
  nlohmann::ordered_json weight_map = nlohmann::ordered_json::object();
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const std::string name =
        shards == 1 ? "model.safetensors"
                    : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
    std::vector<StreamedArray> here;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (shard_of[i] != shard) continue;
      here.push_back(arrays[i]);
      weight_map[arrays[i].name] = name;
      total += bytes_of(arrays[i]);
    }
    write_safetensors(directory / name, here, {{"format", "pt"}});
    written.insert(name);
  }
  const std::string index = "model.safetensors.index.json";
  if (shards > 1) {
    const nlohmann::ordered_json root = {{"metadata", {{"total_size", total}}},
                                         {"weight_map", weight_map}};
    write_durably(directory / index, json_text(root, 2) + "\n");
    written.insert(index);
  }
  remove_others(directory, written);
}

}  // namespace tern::transformers
