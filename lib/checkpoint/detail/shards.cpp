#include "checkpoint/detail/shards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.hpp"
#include "base/utf8.hpp"
#include "checkpoint/detail/file_driver.hpp"
#include "checkpoint/detail/writer.hpp"

namespace tern::checkpoint::detail {
namespace {

/// Bounding box of a selection as `rows` flat ranges of `count` elements, `stride` apart: one
/// range, or a part of each row of a matrix.
struct Region {
  std::size_t first = 0, count = 1, rows = 1, stride = 0;
};

Region region(hid_t space, const Shape& shape) {
  Region r;
  const int rank = hdf5_check(H5Sget_simple_extent_ndims(space), "rank of a mapping");
  if (static_cast<std::size_t>(rank) != shape.size())
    throw Hdf5Error(fmt::format("it is mapped in {} dimensions instead of {}", rank, shape.size()));
  if (shape.empty()) return r;
  // Both HDF5's function and its result suit only bounded selections.
  const hssize_t points = H5Sget_select_npoints(space);
  if (points <= 0) throw Hdf5Error("a mapping selects nothing or has no bounds");
  std::vector<hsize_t> low(shape.size()), high(shape.size());
  hdf5_check(H5Sget_select_bounds(space, low.data(), high.data()), "bounds of a mapping");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (high[i] < low[i] || high[i] >= shape[i])
      throw Hdf5Error(fmt::format("a mapping ends at {} of {}", high[i], shape[i]));
    r.first = r.first * shape[i] + low[i];
    r.count *= high[i] - low[i] + 1;
  }
  if (r.count != static_cast<std::size_t>(points)) throw Hdf5Error("a mapping has gaps");
  if (shape.size() == 2 && high[1] - low[1] + 1 < shape[1]) {
    r.rows = high[0] - low[0] + 1;
    r.count /= r.rows;
    r.stride = shape[1];
  }
  return r;
}

/// Where `count` mapped values begin in a shard.
std::size_t offset_of(hid_t source, std::size_t count) {
  if (H5Sget_select_type(source) == H5S_SEL_ALL) return 0;  // stored without an extent
  const Shape extent = shape_of(source);
  if (extent.size() != 1)
    throw Hdf5Error(fmt::format("it is mapped to {} dimensions of a shard", extent.size()));
  const Region from = region(source, extent);
  if (from.count != count)
    throw Hdf5Error(fmt::format("{} values are mapped to {}", count, from.count));
  return from.first;
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
  std::size_t mappings = 0, mapped = 0;
  hdf5_check(H5Pget_virtual_count(create, &mappings), "number of mappings");
  std::vector<MappedRange> ranges;
  for (std::size_t i = 0; i < mappings; ++i) {
    const Handle target(H5Pget_virtual_vspace(create, i), H5Sclose, "target of a mapping");
    const Handle source(H5Pget_virtual_srcspace(create, i), H5Sclose, "source of a mapping");
    const Region r = region(target, shape);
    mapped += r.count * r.rows;
    if (mapped > element_count(shape)) throw Hdf5Error("some values are mapped twice");
    const std::size_t offset = offset_of(source, r.count * r.rows);
    const std::string file = source_file(create, i);
    if (!is_shard_file(file))
      throw Hdf5Error(
          fmt::format("it is mapped to the file '{}', and only shard_NNNN.h5 next to it is read",
                      excerpt(file)));
    for (std::size_t row = 0; row < r.rows; ++row)
      ranges.push_back({r.first + row * r.stride, r.count, offset + row * r.count, file});
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
  std::vector<Piece> pieces;  // consecutive in one shard
  std::size_t found = 0;
  for (const MappedRange& range : ranges) {
    const std::size_t begin = std::max(first, range.first);
    const std::size_t end = std::min(first + count, range.first + range.count);
    if (begin >= end) continue;
    const Piece piece{&range.file, range.offset + (begin - range.first), end - begin,
                      to + (begin - first)};
    if (!pieces.empty() && !piece.follows(pieces)) read(pieces);
    pieces.push_back(piece);
    found += end - begin;
  }
  read(pieces);
  if (found != count) throw Hdf5Error("the shards do not cover all of it");
}

bool Shards::Piece::follows(const std::vector<Piece>& before) const {
  constexpr std::size_t most = std::size_t{1} << 24;  // elements read at once
  const Piece& last = before.back();
  return *last.file == *file && last.offset + last.count == offset &&
         offset + count - before.front().offset <= most;
}

/// In one read: for each row of a divided matrix HDF5 would read and check a whole chunk.
void Shards::read(std::vector<Piece>& pieces) {
  if (pieces.empty()) return;
  const Piece first = pieces.front(), last = pieces.back();
  const Shard& shard = open(*first.file);
  for (const Piece& piece : pieces)
    if (piece.offset > shard.size || piece.count > shard.size - piece.offset)
      throw Hdf5Error(fmt::format("{} has {} values, and those from {} to {} are mapped",
                                  *piece.file, shard.size, piece.offset,
                                  piece.offset + piece.count));
  if (pieces.size() == 1) {
    read_range(shard.data, {shard.size}, first.offset, first.count, first.to);
  } else {
    std::vector<float> all(last.offset + last.count - first.offset);
    read_range(shard.data, {shard.size}, first.offset, all.size(), all.data());
    for (const Piece& piece : pieces)
      std::copy_n(all.data() + (piece.offset - first.offset), piece.count, piece.to);
  }
  pieces.clear();
}

Shards::Shard& Shards::open(const std::string& name) {
  const auto known = shards_.find(name);
  if (known != shards_.end()) return known->second;
  const std::filesystem::path path = folder_ / name;
  if (leads_out(folder_, name))
    throw Hdf5Error(path.string() +
                    " is a link out of its folder; replace it with a copy of the file");
  Handle file = open_to_read(path, access_);
  Handle data = open_dataset(file, "data");
  const Shape shape = shape_of(Handle(H5Dget_space(data), H5Sclose, "size of " + path.string()));
  if (shape.size() != 1 || !holds_floats(data) || is_virtual(data))
    throw Hdf5Error(path.string() + " contains no row of floats");
  return shards_.emplace(name, Shard{std::move(file), std::move(data), shape[0]}).first->second;
}

}  // namespace tern::checkpoint::detail
