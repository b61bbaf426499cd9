/// The safetensors format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape,
/// data_offsets}}, then raw row-major data. Reading memory-maps; several files by
/// model.safetensors.index.json.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tern::checkpoint {

class SafetensorsReader {
 public:
  /// `directory` with model.safetensors or model.safetensors.index.json, or one file.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  std::vector<std::size_t> shape(const std::string& name) const;
  /// Reads a tensor as float32 (from F32, F16, BF16 or F64).
  std::vector<float> read(const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct NamedArray {
  std::string name;
  std::vector<std::size_t> shape;
  const float* data;
};
enum class Dtype { f32, bf16 };
/// Writes one file (temporary name, fsync, rename).
void write_safetensors(const std::filesystem::path& file, const std::vector<NamedArray>& arrays,
                       Dtype dtype, const std::map<std::string, std::string>& metadata = {});

}  // namespace tern::checkpoint
