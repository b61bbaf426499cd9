/// Reads a sharded checkpoint directly from its shards. HDF5 can read the virtual datasets, but
/// element by element if source and target shapes differ: over ten times slower.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/detail/hdf5.hpp"

namespace tern::checkpoint::detail {

/// A flat range of a virtual dataset and the offset of its first element in the shard's "data".
struct MappedRange {
  std::size_t first, count, offset;
  std::string file;
};

/// Ranges of a virtual dataset as mapped by write_virtual; throws Hdf5Error if another program has
/// mapped other files, or in another way.
std::vector<MappedRange> mapped_ranges(hid_t dataset, const Shape& shape);

/// Reads the flat range [first, first + count) of a non-virtual dataset, box by box.
void read_range(hid_t dataset, const Shape& shape, std::size_t first, std::size_t count, float* to);

/// Open shards of one checkpoint.
class Shards {
 public:
  Shards(std::filesystem::path folder, hid_t access)
      : folder_(std::move(folder)), access_(access) {}
  /// Reads [first, first + count) of the dataset composed of `ranges`.
  void read(const std::vector<MappedRange>& ranges, std::size_t first, std::size_t count,
            float* to);

 private:
  struct Shard {
    Handle file, data;
    std::size_t size;
  };
  /// Elements to read from one shard, and their destination.
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
