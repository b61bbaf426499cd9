#include <fcntl.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/detail/best.hpp"
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
  void require_own(const std::string& path) const;

  std::filesystem::path file;
  Handle access, input;
  std::optional<Shards> shards;
  Header header;
  std::vector<Tensor> tensors;
  std::map<std::string, std::size_t> places;
  std::map<std::string, std::string> refused;  // paths, or groups of them, and why
};

namespace {

/// No exception may pass through HDF5's C code: iterations keep it.
struct Attributes {
  Header header;
  std::string error = {};
};

herr_t collect_attribute(hid_t file, const char* name, const H5A_info_t*, void* to) {
  auto& [header, error] = *static_cast<Attributes*>(to);
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
  } catch (const std::exception& failed) {
    error = failed.what();
    return -1;
  }
}

Header read_header(hid_t file) {
  for (const char* name : {"format", "version", "step", "tokens"})
    if (hdf5_check(H5Aexists(file, name), "look for attributes") == 0)
      throw Hdf5Error(fmt::format("it is not a checkpoint of Tern (no root attribute '{}')", name));
  const Handle format(H5Aopen(file, "format", H5P_DEFAULT), H5Aclose, "open attribute");
  const Handle version(H5Aopen(file, "version", H5P_DEFAULT), H5Aclose, "open attribute");
  if (read_string(format) != format_name)
    throw Hdf5Error(fmt::format("root attribute 'format' is not '{}'", format_name));
  if (read_integer(version) != format_version)
    throw Hdf5Error(fmt::format("its format version is {}, and this program reads version {}",
                                read_integer(version), format_version));
  Attributes all;
  const herr_t read =
      H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_attribute, &all);
  if (!all.error.empty()) throw Hdf5Error(all.error);
  hdf5_check(read, "read the root attributes");
  if (all.header.step < 0 || all.header.tokens < 0)
    throw Hdf5Error(fmt::format("step {}, tokens {}", all.header.step, all.header.tokens));
  return all.header;
}

/// The datasets of floats below a group. Only what hangs in this file is looked at: links may lead
/// to any other, and what a link hides is refused once a model needs it.
class Listing {
 public:
  Listing(std::vector<Tensor>& tensors, std::map<std::string, std::string>& refused)
      : tensors_(tensors), refused_(refused) {}

  void add_group(hid_t group, const std::string& path, int depth) {
    constexpr int deepest = 32;  // a parameter of an optimizer is 10 levels deep
    if (depth > deepest)
      throw Hdf5Error(fmt::format("its groups are nested more than {} levels deep", deepest));
    Links links;
    const herr_t listed = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &links);
    hdf5_check(listed, "list the group " + path);
    for (const auto& [name, type] : links)
      add_link(group, path + "/" + on_one_line(name), name, type, depth);
  }

 private:
  using Links = std::vector<std::pair<std::string, H5L_type_t>>;

  static herr_t collect(hid_t, const char* name, const H5L_info_t* info, void* to) {
    try {
      static_cast<Links*>(to)->emplace_back(name, info->type);
      return 0;
    } catch (...) {
      return -1;
    }
  }

  void add_link(hid_t group, const std::string& path, const std::string& name, H5L_type_t type,
                int depth) {
    constexpr std::size_t most = 1'000'000;
    if (++seen_ > most) throw Hdf5Error(fmt::format("it has more than {} objects", most));
    if (type != H5L_TYPE_HARD) {
      refused_[path] = type == H5L_TYPE_SOFT ? "is a soft link" : "is a link to another file";
      return;
    }
    const Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose, "open " + path);
    const H5I_type_t kind = H5Iget_type(object);
    if (kind == H5I_GROUP) add_group(object, path, depth + 1);
    if (kind != H5I_DATASET) return;
    try {
      const Handle dataset = open_dataset(group, name);
      if (!holds_floats(dataset)) return;
      const Handle space(H5Dget_space(dataset), H5Sclose, "space of " + path);
      tensors_.push_back({path, shape_of(space)});
    } catch (const Hdf5Error& error) {
      refused_[path] = fmt::format("cannot be read: {}", error.what());
    }
  }

  std::vector<Tensor>& tensors_;
  std::map<std::string, std::string>& refused_;
  std::size_t seen_ = 0;
};

}  // namespace

Reader::Impl::Impl(const std::filesystem::path& path)
    : file(std::filesystem::is_directory(path) ? path / checkpoint_file : path) {
  if (!std::filesystem::exists(path))
    user_error("{}: no such checkpoint; set the path of a checkpoint.h5 or of its step_ folder",
               path.string());
  const bool summed = std::filesystem::is_directory(path) ||
                      (file.filename() == checkpoint_file &&
                       std::filesystem::exists(file.parent_path() / sum_file));
  if (summed) verify_folder(file.parent_path());
  try {
    const Hdf5Lock lock;
    access = file_access(nullptr);
    input = open_to_read(file, access);
    shards.emplace(file.parent_path().empty() ? "." : file.parent_path(), access);
    header = read_header(input);
    Listing(tensors, refused).add_group(input, "", 0);
  } catch (const std::runtime_error& error) {
    user_error("{}: cannot be read as a checkpoint: {}", file.string(), error.what());
  }
  for (const auto& [name, value] : read_evaluation(file.parent_path(), header.step))
    header.numbers[name] = value;
  for (std::size_t i = 0; i < tensors.size(); ++i) places[tensors[i].path] = i;
}

/// The path itself, or a group above it, may have been refused.
void Reader::Impl::require_own(const std::string& path) const {
  for (std::size_t end = path.size(); end > 0; end = path.rfind('/', end - 1)) {
    const auto found = refused.find(path.substr(0, end));
    if (found != refused.end())
      user_error("{}: {} {}; a checkpoint must contain its own values", file.string(), found->first,
                 found->second);
  }
}

const Tensor& Reader::Impl::tensor(const std::string& path) const {
  const auto found = places.find(path);
  if (found == places.end()) require_own(path);
  if (found == places.end())
    user_error("{}: has no dataset {}; is it a checkpoint of another model?", file.string(), path);
  return tensors[found->second];
}

void Reader::Impl::read(const Tensor& tensor, std::size_t first, std::size_t count, float* to) {
  const Hdf5Lock lock;
  const Handle dataset = open_dataset(input, tensor.path);
  if (is_virtual(dataset))
    shards->read(mapped_ranges(dataset, tensor.shape), first, count, to);
  else
    read_range(dataset, tensor.shape, first, count, to);
}

Reader::Reader(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const Header& Reader::header() const { return impl_->header; }
const std::vector<Tensor>& Reader::tensors() const { return impl_->tensors; }
bool Reader::has(const std::string& path) const { return impl_->places.contains(path); }
void Reader::require_own(const std::string& path) const { impl_->require_own(path); }
const std::filesystem::path& Reader::path() const { return impl_->file; }

void Reader::read(const std::string& path, std::size_t first, std::size_t count, float* to) const {
  const Tensor& tensor = impl_->tensor(path);
  const std::size_t total = element_count(tensor.shape);
  if (first > total || count > total - first)
    user_error(
        "{}: {} has {} elements, not the {} wanted from {} on; is it a checkpoint of another "
        "model?",
        impl_->file.string(), path, total, count, first);
  try {
    if (count > 0) impl_->read(tensor, first, count, to);
  } catch (const Hdf5Error& error) {
    user_error("{}: {} cannot be read: {}", impl_->file.string(), path, error.what());
  }
}

std::optional<Header> detail::peek(const std::filesystem::path& folder) {
  try {
    Header header;
    {
      const Hdf5Lock lock;
      const std::filesystem::path file = folder / checkpoint_file;
      const Handle access = file_access(nullptr);
      const Handle input = open_to_read(file, access);
      header = read_header(input);
    }
    for (const auto& [name, value] : read_evaluation(folder, header.step))
      header.numbers[name] = value;
    return header;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

std::optional<Reader> open_newest(const std::filesystem::path& directory, Log& log) {
  std::vector<Candidate> all;
  try {
    all = candidates(directory);
  } catch (const FileError& error) {
    user_error(
        "{}; it is unknown whether it contains checkpoints; check its permissions and its file "
        "system, then try again",
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
        "none of the {} checkpoints in {} can be read:{}\nWait until the copy is complete or the "
        "file system is back, restore a checkpoint, or start from scratch with --fresh, which "
        "moves the run aside",
        all.size(), directory.string(), failures);
  return std::nullopt;
}

}  // namespace tern::checkpoint
