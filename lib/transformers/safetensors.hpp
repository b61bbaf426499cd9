/// The safetensors format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape,
/// data_offsets}}, then raw row-major data. Several files by model.safetensors.index.json. Reading
/// and writing stream: neither holds a tensor.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tern::transformers {

/// A part of a tensor seen as a matrix: the last dimension are its columns, all others its rows. A
/// vector is one row.
struct Part {
  std::size_t row = 0, rows = 0, column = 0, columns = 0;
};

class SafetensorsReader {
 public:
  /// `directory` with model.safetensors or model.safetensors.index.json, or one file. Reads the
  /// headers only.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;

  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  std::vector<std::size_t> shape(const std::string& name) const;
  /// "F32", "BF16", ...
  const std::string& dtype(const std::string& name) const;
  /// Number of the file and byte within it: the order in which reading is fastest.
  std::pair<std::size_t, std::size_t> position(const std::string& name) const;

  /// Reads a part, row after row (from F32, F16, BF16 or F64; V: float, or bf16, to which wider
  /// ones are rounded). What is stored as V is read straight into `to`, anything else through at
  /// most a few MiB. Several threads may read at once.
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

/// A tensor to be written. `read` gives the values of a flat range and is called in order of
/// increasing ranges that cover the tensor.
struct StreamedArray {
  std::string name;
  std::vector<std::size_t> shape;
  Dtype dtype;
  std::function<void(std::size_t first, std::size_t count, float* to)> read;
};
/// Writes one file (temporary name, fsync, rename).
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

/// Writes model.safetensors or, if that would take more than `shard_bytes`, the files
/// model-00001-of-0000N.safetensors and model.safetensors.index.json, into `directory`, each tensor
/// in one file. Removes files of these names that an earlier export left there.
void write_model(const std::filesystem::path& directory, const std::vector<StreamedArray>& arrays,
                 std::size_t shard_bytes);

}  // namespace tern::transformers
