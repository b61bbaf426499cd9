/// Reading a sharded checkpoint straight from its shards. HDF5 reads a virtual dataset, too, but
/// element by element where source and target differ in shape: over ten times slower.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/detail/hdf5.hpp"

namespace tern::checkpoint::detail {

/// A flat range of a virtual dataset and the place of its first element in the shard's "data".
struct MappedRange {
  std::size_t first, count, offset;
  std::string file;
};

/// The ranges of a virtual dataset as write_virtual maps them; none if the dataset is not virtual.
std::vector<MappedRange> mapped_ranges(hid_t dataset, const Shape& shape);

/// Reads boxes of a flat range, [first, first + count), of a dataset that is not virtual.
void read_range(hid_t dataset, const Shape& shape, std::size_t first, std::size_t count, float* to);

/// The opened shards of one checkpoint.
class Shards {
 public:
  Shards(std::filesystem::path folder, hid_t access)
      : folder_(std::move(folder)), access_(access) {}
  /// Reads [first, first + count) of the dataset that `ranges` make up.
  void read(const std::vector<MappedRange>& ranges, std::size_t first, std::size_t count,
            float* to);

 private:
  struct Shard {
    Handle file, data;
    std::size_t size;
  };
  /// Elements wanted of one shard, and where they go.
  struct Piece {
    const std::string* file;
    std::size_t offset, count;
    float* to;
    bool follows(const std::vector<Piece>& before) const;
  };
  Shard& open(const std::string& name);
  void read(std::vector<Piece>& pieces);

  std::filesystem::path folder_;
  hid_t access_;
  std::map<std::string, Shard> shards_;
};

}  // namespace tern::checkpoint::detail
