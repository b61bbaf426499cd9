#include <fcntl.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/files.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/detail/evaluation.hpp"
#include "checkpoint/detail/file_driver.hpp"
#include "checkpoint/detail/folder.hpp"
#include "checkpoint/detail/hdf5.hpp"
#include "checkpoint/detail/layout.hpp"
#include "checkpoint/detail/shards.hpp"
#include "checkpoint/detail/sums.hpp"
#include "checkpoint/detail/writer.hpp"

namespace tern::checkpoint {

using namespace detail;

struct Reader::Impl {
  explicit Impl(const std::filesystem::path& path);

  const Tensor& tensor(const std::string& path) const;
  void read(const Tensor& tensor, std::size_t first, std::size_t count, float* to);
  void verify_data();

  std::filesystem::path file;
  Handle access, input;
  std::optional<Shards> shards;
  Header header;
  std::vector<Tensor> tensors;
  std::map<std::string, std::size_t> places;
};

namespace {

herr_t collect_attribute(hid_t file, const char* name, const H5A_info_t*, void* to) {
  auto& header = *static_cast<Header*>(to);
  try {
    const Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose, "open attribute");
    const Handle type(H5Aget_type(attribute), H5Tclose, "attribute type");
    const std::string key = name;
    if (key == "step")
      header.step = read_integer(attribute);
    else if (key == "tokens")
      header.tokens = read_integer(attribute);
    else if (key == "deck")
      header.deck = read_string(attribute);
    else if (key == "format" || key == "version")
      return 0;
    else if (H5Tget_class(type) == H5T_STRING)
      header.texts[key] = read_string(attribute);
    else
      header.numbers[key] = read_number(attribute);
    return 0;
  } catch (...) {  // no exception may pass through HDF5's C code
    return -1;
  }
}

herr_t collect_name(hid_t, const char* name, const H5L_info_t*, void* to) {
  try {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;
  }
}

Header read_header(hid_t file) {
  for (const char* name : {"format", "version", "step", "tokens"})
    if (hdf5_check(H5Aexists(file, name), "look for attributes") == 0)
      throw Hdf5Error(fmt::format("it is no checkpoint of ours (no root attribute '{}')", name));
  const Handle format(H5Aopen(file, "format", H5P_DEFAULT), H5Aclose, "open attribute");
  const Handle version(H5Aopen(file, "version", H5P_DEFAULT), H5Aclose, "open attribute");
  if (read_string(format) != format_name)
    throw Hdf5Error(fmt::format("root attribute 'format' is not '{}'", format_name));
  if (read_integer(version) != format_version)
    throw Hdf5Error(fmt::format("format version {} is not the one this program reads ({})",
                                read_integer(version), format_version));
  Header header;
  hdf5_check(H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_attribute, &header),
             "read the root attributes");
  return header;
}

/// The tensor stored in a dataset of floats; empty for groups and other objects.
std::optional<Tensor> describe(hid_t file, const std::string& name) {
  const Handle object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose, "open " + name);
  if (H5Iget_type(object) != H5I_DATASET) return std::nullopt;
  const Handle type(H5Dget_type(object), H5Tclose, "type of " + name);
  if (H5Tget_class(type) != H5T_FLOAT) return std::nullopt;
  const Handle space(H5Dget_space(object), H5Sclose, "space of " + name);
  const int rank = hdf5_check(H5Sget_simple_extent_ndims(space), "shape of " + name);
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  hdf5_check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "shape of " + name);
  return Tensor{"/" + name, {dims.begin(), dims.end()}};
}

std::vector<Tensor> list_tensors(hid_t file) {
  std::vector<std::string> names;
  hdf5_check(H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, collect_name, &names), "list datasets");
  std::vector<Tensor> tensors;
  for (const std::string& name : names)
    if (auto tensor = describe(file, name)) tensors.push_back(std::move(*tensor));
  return tensors;
}

}  // namespace

Reader::Impl::Impl(const std::filesystem::path& path)
    : file(std::filesystem::is_directory(path) ? path / checkpoint_file : path) {
  if (!std::filesystem::exists(path))
    user_error("{}: no such checkpoint; name a checkpoint.h5 or its step_ folder", path.string());
  const bool summed = std::filesystem::is_directory(path) ||
                      (file.filename() == checkpoint_file &&
                       std::filesystem::exists(file.parent_path() / sum_file));
  if (summed) verify_folder(file.parent_path());
  try {
    const Hdf5Lock lock;
    access = file_access(nullptr);
    input = Handle(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access), H5Fclose, "open");
    shards.emplace(file.parent_path(), access);
    header = read_header(input);
    tensors = list_tensors(input);
  } catch (const std::runtime_error& error) {
    user_error("{}: cannot be read as a checkpoint: {}", file.string(), error.what());
  }
  for (const auto& [name, value] : read_evaluation(file.parent_path(), header.step))
    header.numbers[name] = value;
  for (std::size_t i = 0; i < tensors.size(); ++i) places[tensors[i].path] = i;
  if (!summed) verify_data();
}

const Tensor& Reader::Impl::tensor(const std::string& path) const {
  const auto found = places.find(path);
  if (found == places.end())
    user_error("{}: has no dataset {}; was it written for another model?", file.string(), path);
  return tensors[found->second];
}

void Reader::Impl::read(const Tensor& tensor, std::size_t first, std::size_t count, float* to) {
  const Hdf5Lock lock;
  const Handle dataset(H5Dopen2(input, tensor.path.c_str(), H5P_DEFAULT), H5Dclose, "open dataset");
  const auto ranges = mapped_ranges(dataset, tensor.shape);
  if (ranges.empty())
    read_range(dataset, tensor.shape, first, count, to);
  else
    shards->read(ranges, first, count, to);
}

/// For a file without checkpoint.sum: reads everything once, so that HDF5 checks Fletcher32.
void Reader::Impl::verify_data() {
  constexpr std::size_t step = std::size_t{1} << 22;
  std::vector<float> buffer;
  for (const Tensor& tensor : tensors) {
    const std::size_t total = element_count(tensor.shape);
    buffer.resize(std::min(total, step));
    try {
      for (std::size_t first = 0; first < total; first += step)
        read(tensor, first, std::min(step, total - first), buffer.data());
    } catch (const Hdf5Error& error) {
      user_error("{}: {} is damaged: {}", file.string(), tensor.path, error.what());
    }
  }
}

Reader::Reader(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const Header& Reader::header() const { return impl_->header; }
const std::vector<Tensor>& Reader::tensors() const { return impl_->tensors; }
bool Reader::has(const std::string& path) const { return impl_->places.contains(path); }
const std::filesystem::path& Reader::path() const { return impl_->file; }

void Reader::read(const std::string& path, std::size_t first, std::size_t count, float* to) const {
  const Tensor& tensor = impl_->tensor(path);
  const std::size_t total = element_count(tensor.shape);
  if (first > total || count > total - first)
    user_error(
        "{}: {} has {} elements, not the {} wanted from {} on; was it written for another "
        "model?",
        impl_->file.string(), path, total, count, first);
  try {
    if (count > 0) impl_->read(tensor, first, count, to);
  } catch (const Hdf5Error& error) {
    user_error("{}: {} cannot be read: {}", impl_->file.string(), path, error.what());
  }
}

std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& directory) {
  const auto step = detail::best_step(directory);
  if (!step) return std::nullopt;
  for (const auto& candidate : detail::candidates(directory))
    if (candidate.step == *step) return candidate.path;
  return std::nullopt;
}

std::optional<Reader> open_newest(const std::filesystem::path& directory, Log& log) {
  std::vector<Candidate> all;
  try {
    all = candidates(directory);
  } catch (const FileError& error) {
    user_error(
        "{}; whether it holds checkpoints is not known: check its permissions and its file system, "
        "then try again",
        error.what());
  }
  std::string failures;
  for (const Candidate& candidate : all) {
    try {
      return Reader(candidate.path);
    } catch (const std::runtime_error& error) {  // includes errors of the file system
      failures += fmt::format("\n  {}", error.what());
      if (&candidate != &all.back())
        log.warning("checkpoint of step {} is not usable, trying the one before: {}",
                    candidate.step, error.what());
    }
  }
  if (!all.empty())
    user_error(
        "none of the {} checkpoints in {} can be read:{}\nWait until a copy or a file system is "
        "whole again, restore one, or start from scratch with --fresh, which moves the run aside",
        all.size(), directory.string(), failures);
  return std::nullopt;
}

}  // namespace tern::checkpoint
