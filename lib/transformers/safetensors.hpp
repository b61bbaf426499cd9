/// The safetensors format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape,
/// data_offsets}}, then raw row-major data. Models in several files have
/// model.safetensors.index.json. Reads and writes are streamed, without buffering whole tensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tern::transformers {

/// Part of a tensor viewed as a matrix: columns are the last dimension, rows all others. A vector
/// is one row.
struct Part {
  std::size_t row = 0, rows = 0, column = 0, columns = 0;
};

class SafetensorsReader {
 public:
  /// `path`: a directory with model.safetensors or model.safetensors.index.json, or one file. Reads
  /// headers only. Throws UserError for missing or invalid files.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;

  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  std::vector<std::size_t> shape(const std::string& name) const;
  /// "F32", "BF16", ...
  const std::string& dtype(const std::string& name) const;
  /// File number and byte offset: the fastest order of reading.
  std::pair<std::size_t, std::size_t> position(const std::string& name) const;

  /// Reads a part, row-major, from F32, F16, BF16 or F64. V: float, bf16 or fp16 (rounded from
  /// wider types). Data stored as V is read directly into `to`, other types through a buffer of a few
  /// MiB. Thread-safe. Throws UserError.
  template <class V>
  void read(const std::string& name, const Part& part, V* to) const;
  /// The whole tensor as float32.
  std::vector<float> read(const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

enum class Dtype { f32, bf16 };
std::size_t width_of(Dtype dtype);

/// A tensor to write. `read` fills flat ranges and is called in increasing order until the tensor
/// is covered.
struct StreamedArray {
  std::string name;
  std::vector<std::size_t> shape;
  Dtype dtype;
  std::function<void(std::size_t first, std::size_t count, float* to)> read;
};
/// Writes one file: temporary name, fsync, rename. Throws UserError.
void write_safetensors(const std::filesystem::path& file, const std::vector<StreamedArray>& arrays,
                       const std::map<std::string, std::string>& metadata = {});

/// A tensor in memory.
struct NamedArray {
  std::string name;
  std::vector<std::size_t> shape;
  const float* data;
};
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedArray>& arrays,
                       Dtype dtype, const std::map<std::string, std::string>& metadata = {});

/// Writes model.safetensors or, beyond `shard_bytes`, model-00001-of-0000N.safetensors and
/// model.safetensors.index.json into `directory`; no tensor spans two files. Removes such files of
/// an earlier export.
void write_model(const std::filesystem::path& directory, const std::vector<StreamedArray>& arrays,
                 std::size_t shard_bytes);

}  // namespace tern::transformers
