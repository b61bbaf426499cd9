#include "checkpoint/detail/shards.hpp"

#include <algorithm>

namespace tern::checkpoint::detail {
namespace {

/// First place and number of the elements between two corners, which are contiguous in the flat
/// order.
std::pair<std::size_t, std::size_t> flat_range(hid_t space, const Shape& shape) {
  if (shape.empty()) return {0, 1};
  std::vector<hsize_t> low(shape.size()), high(shape.size());
  hdf5_check(H5Sget_select_bounds(space, low.data(), high.data()), "bounds of a mapping");
  std::size_t first = 0, count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    first = first * shape[i] + low[i];
    count *= high[i] - low[i] + 1;
  }
  return {first, count};
}

std::string source_file(hid_t create, std::size_t index) {
  const ssize_t length =
      hdf5_check(H5Pget_virtual_filename(create, index, nullptr, 0), "a mapping");
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  hdf5_check(H5Pget_virtual_filename(create, index, name.data(), name.size()), "a mapping");
  name.pop_back();
  return name;
}

}  // namespace

std::vector<MappedRange> mapped_ranges(hid_t dataset, const Shape& shape) {
  const Hdf5Lock lock;
  const Handle create(H5Dget_create_plist(dataset), H5Pclose, "dataset properties");
  std::size_t mappings = 0;
  if (hdf5_check(H5Pget_layout(create), "layout") == H5D_VIRTUAL)
    hdf5_check(H5Pget_virtual_count(create, &mappings), "number of mappings");
  std::vector<MappedRange> ranges;
  for (std::size_t i = 0; i < mappings; ++i) {
    const Handle target(H5Pget_virtual_vspace(create, i), H5Sclose, "target of a mapping");
    const Handle source(H5Pget_virtual_srcspace(create, i), H5Sclose, "source of a mapping");
    const auto [first, count] = flat_range(target, shape);
    ranges.push_back({first, count, flat_range(source, {0}).first, source_file(create, i)});
  }
  return ranges;
}

void read_range(hid_t dataset, const Shape& shape, std::size_t first, std::size_t count,
                float* to) {
  const Hdf5Lock lock;
  const Handle space = simple_space(shape);
  for (const Box& box : boxes_of_range(shape, first, count)) {
    select_box(space, box);
    hdf5_check(H5Dread(dataset, H5T_NATIVE_FLOAT, box_space(box), space, H5P_DEFAULT, to), "read");
    to += box.count;
  }
}

void Shards::read(const std::vector<MappedRange>& ranges, std::size_t first, std::size_t count,
                  float* to) {
  const Hdf5Lock lock;
  std::size_t found = 0;
  for (const MappedRange& range : ranges) {
    const std::size_t begin = std::max(first, range.first);
    const std::size_t end = std::min(first + count, range.first + range.count);
    if (begin >= end) continue;
    const Shard& shard = open(range.file);
    read_range(shard.data, {shard.size}, range.offset + (begin - range.first), end - begin,
               to + (begin - first));
    found += end - begin;
  }
  if (found != count) throw Hdf5Error("the shards do not hold all of it");
}

Shards::Shard& Shards::open(const std::string& name) {
  const auto known = shards_.find(name);
  if (known != shards_.end()) return known->second;
  const std::string path = (folder_ / name).string();
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access_), H5Fclose, "open " + path);
  Handle data(H5Dopen2(file, "data", H5P_DEFAULT), H5Dclose, "open data of " + path);
  const Handle space(H5Dget_space(data), H5Sclose, "size of " + path);
  const auto size = hdf5_check(H5Sget_simple_extent_npoints(space), "size of " + path);
  return shards_
      .emplace(name, Shard{std::move(file), std::move(data), static_cast<std::size_t>(size)})
      .first->second;
}

}  // namespace tern::checkpoint::detail
