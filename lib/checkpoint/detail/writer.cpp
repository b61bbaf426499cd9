#include "checkpoint/detail/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/files.hpp"
#include "base/version.hpp"
#include "checkpoint/detail/file_driver.hpp"
#include "checkpoint/detail/hdf5.hpp"

namespace tern::checkpoint::detail {
namespace {

std::vector<hsize_t> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// A file being written. HDF5 does not see I/O errors (file_driver.hpp); check() throws them.
class Output {
 public:
  explicit Output(const std::filesystem::path& path) : path_(path) {
    const Hdf5Lock lock;
    const Handle access = file_access(&status_);
    const hid_t id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (id < 0 && status_.open_error) throw FileError("create", path, status_.open_error);
    file_ = Handle(id, H5Fclose, "create " + path.string());
  }

  hid_t id() const { return file_; }

  void check() const {
    if (status_.error) throw FileError("write", path_, status_.error);
  }

  void finish() {
    file_.reset();
    check();
    sync_path(path_);
  }

 private:
  std::filesystem::path path_;
  WriteStatus status_;  // outlives file_
  Handle file_;
};

void write_header(hid_t file, const Header& header) {
  write_attribute(file, "format", std::string(format_name));
  write_attribute(file, "version", format_version);
  write_attribute(file, "step", header.step);
  write_attribute(file, "tokens", header.tokens);
  write_attribute(file, "deck", header.deck);
  if (!header.texts.contains("commit")) write_attribute(file, "commit", std::string(commit()));
  for (const auto& [name, value] : header.numbers) write_attribute(file, name, value);
  for (const auto& [name, value] : header.texts) write_attribute(file, name, value);
}

Handle make_groups() {
  Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "link properties");
  hdf5_check(H5Pset_create_intermediate_group(links, 1), "link properties");
  return links;
}

Handle creation_properties(const Shape& shape) {
  Handle create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset properties");
  // Every element is written; filling first would write everything twice.
  hdf5_check(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), "fill time");
  const Shape chunk = chunk_shape(shape);
  if (!chunk.empty()) {
    hdf5_check(H5Pset_chunk(create, static_cast<int>(chunk.size()), dims_of(chunk).data()),
               "chunk size");
    hdf5_check(H5Pset_fletcher32(create), "Fletcher32");
  }
  return create;
}

Handle create_dataset(hid_t file, const std::string& path, hid_t space, hid_t create) {
  return Handle(
      H5Dcreate2(file, path.c_str(), H5T_IEEE_F32LE, space, make_groups(), create, H5P_DEFAULT),
      H5Dclose, "create dataset " + path);
}

/// Writes in boxes of at most a chunk and releases the lock in between.
void write_dataset(const Output& output, const std::string& path, const Shape& shape,
                   const float* data) {
  Handle space, dataset;
  {
    const Hdf5Lock lock;
    space = simple_space(shape);
    dataset = create_dataset(output.id(), path, space, creation_properties(shape));
  }
  const std::size_t total = element_count(shape);
  const Shape chunk = chunk_shape(shape);
  const std::size_t step = chunk.empty() ? total : element_count(chunk);
  for (std::size_t first = 0; first < total; first += step) {
    for (const Box& box : boxes_of_range(shape, first, std::min(step, total - first))) {
      const Hdf5Lock lock;
      select_box(space, box);
      hdf5_check(H5Dwrite(dataset, H5T_NATIVE_FLOAT, box_space(box), space, H5P_DEFAULT, data),
                 "write " + path);
      data += box.count;
    }
    output.check();
  }
}

}  // namespace

std::string shard_file(int rank) { return fmt::format("shard_{:04d}.h5", rank); }

bool is_shard_file(const std::string& name) {
  int rank = 0;
  const std::size_t digits = std::string_view("shard_").size();
  if (name.size() <= digits) return false;
  std::from_chars(name.data() + digits, name.data() + name.size(), rank);
  return rank >= 0 && name == shard_file(rank);
}

void write_plain(const std::filesystem::path& file, const Header& header,
                 const std::vector<Tensor>& tensors, const float* data) {
  Output output(file);
  write_header(output.id(), header);
  for (const Tensor& tensor : tensors) {
    write_dataset(output, tensor.path, tensor.shape, data);
    data += element_count(tensor.shape);
  }
  output.finish();
}

void write_shard(const std::filesystem::path& file, const std::vector<Extent>& extents,
                 const float* data, std::size_t total) {
  Output output(file);
  write_dataset(output, "data", {total}, data);
  {
    const Hdf5Lock lock;
    std::vector<std::uint64_t> table;
    for (const Extent& e : extents)
      table.insert(table.end(), {e.tensor, e.first, e.count, e.offset});
    const Handle space = simple_space({extents.size(), 4});
    const Handle dataset(H5Dcreate2(output.id(), "extents", H5T_STD_U64LE, space, H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT),
                         H5Dclose, "create extents");
    if (!extents.empty())
      hdf5_check(H5Dwrite(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, table.data()),
                 "write extents");
  }
  output.finish();
}

std::vector<Extent> read_extents(const std::filesystem::path& file, int rank,
                                 const std::vector<Tensor>& tensors) {
  const Hdf5Lock lock;
  const Handle access = file_access(nullptr);
  const Handle input = open_to_read(file, access);
  const Handle dataset = open_dataset(input, "extents");
  const Handle type(H5Dget_type(dataset), H5Tclose, "extents' type");
  const Shape shape = shape_of(Handle(H5Dget_space(dataset), H5Sclose, "extents' space"));
  if (H5Tget_class(type) != H5T_INTEGER || shape.size() != 2 || shape[1] != 4 ||
      shape[0] > std::filesystem::file_size(file))
    throw Hdf5Error(fmt::format("{}: extents are not a table", file.string()));
  std::vector<std::uint64_t> table(element_count(shape));
  if (!table.empty())
    hdf5_check(H5Dread(dataset, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, table.data()),
               "read extents");
  std::vector<Extent> extents;
  for (std::size_t i = 0; i + 3 < table.size(); i += 4) {
    const Extent e{table[i], table[i + 1], table[i + 2], table[i + 3], rank};
    const std::size_t size = e.tensor < tensors.size() ? element_count(tensors[e.tensor].shape) : 0;
    if (e.tensor >= tensors.size() || e.first > size || e.count > size - e.first)
      throw std::runtime_error(fmt::format("{} was written for other tensors", file.string()));
    extents.push_back(e);
  }
  return extents;
}

void write_virtual(const std::filesystem::path& file, const Header& header,
                   const std::vector<Tensor>& tensors, const std::vector<Extent>& extents,
                   const std::vector<std::size_t>& shard_sizes) {
  Output output(file);
  write_header(output.id(), header);
  auto next = extents.begin();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const Hdf5Lock lock;
    const Shape& shape = tensors[t].shape;
    const Handle space = simple_space(shape);
    const Handle create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset properties");
    const auto begin = next;
    next = std::find_if(begin, extents.end(), [&](const Extent& e) { return e.tensor != t; });
    for (const Band& band : bands(shape, {begin, next})) {
      const Extent& e = band.extent;
      std::size_t offset = e.offset;
      std::vector<Box> boxes = boxes_of_range(shape, e.first, e.count);
      if (band.rows > 1)
        boxes = {
            {{e.first / shape[1], e.first % shape[1]}, {band.rows, e.count}, band.rows * e.count}};
      for (const Box& box : boxes) {
        const std::size_t size = shard_sizes[static_cast<std::size_t>(e.rank)];
        const Handle source = simple_space({size});
        select_box(source, {{offset}, {box.count}, box.count});
        select_box(space, box);
        hdf5_check(H5Pset_virtual(create, space, shard_file(e.rank).c_str(), "/data", source),
                   "map " + tensors[t].path);
        offset += box.count;
      }
    }
    if (!shape.empty()) hdf5_check(H5Sselect_all(space), "select all");
    create_dataset(output.id(), tensors[t].path, space, create);
  }
  output.finish();
}

}  // namespace tern::checkpoint::detail
