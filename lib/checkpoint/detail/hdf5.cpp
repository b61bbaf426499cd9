#include "checkpoint/detail/hdf5.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/utf8.hpp"

namespace tern::checkpoint::detail {
namespace {

constexpr std::size_t largest_shape = std::size_t{1} << 48;  // elements
constexpr std::size_t largest_chunk = std::size_t{1} << 24;  // elements, in a smaller dataset

std::recursive_mutex& hdf5_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t keep_first(unsigned, const H5E_error2_t* error, void* to) {
  auto& text = *static_cast<std::string*>(to);
  if (text.empty() && error->desc) text = error->desc;
  return 0;
}

template <class Value>
void write_scalar(hid_t object, const std::string& name, hid_t stored, hid_t type, Value value) {
  const Hdf5Lock lock;
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "scalar dataspace");
  const Handle attribute(H5Acreate2(object, name.c_str(), stored, space, H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, "create attribute " + name);
  hdf5_check(H5Awrite(attribute, type, &value), "write attribute " + name);
}

Handle text_type() {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "string type");
  hdf5_check(H5Tset_size(type, H5T_VARIABLE), "string type");
  hdf5_check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : guard_(hdf5_mutex()) {
  // Per thread in thread-safe builds, hence set with each lock.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void hdf5_failed(const std::string& what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  throw Hdf5Error(what + " failed" + (reason.empty() ? "" : ": " + reason));
}

Handle::Handle(Handle&& other) noexcept
    : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}

Handle& Handle::operator=(Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

void Handle::reset() {
  if (id_ < 0) return;
  const Hdf5Lock lock;
  close_(std::exchange(id_, H5I_INVALID_HID));
}

Handle simple_space(const Shape& shape) {
  const Hdf5Lock lock;
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const hid_t space = dims.empty()
                          ? H5Screate(H5S_SCALAR)
                          : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
  return Handle(space, H5Sclose, "dataspace");
}

Handle box_space(const Box& box) { return simple_space(box.size); }

void select_box(hid_t space, const Box& box) {
  if (box.start.empty()) return;  // a scalar
  const Hdf5Lock lock;
  const std::vector<hsize_t> start(box.start.begin(), box.start.end());
  const std::vector<hsize_t> size(box.size.begin(), box.size.end());
  hdf5_check(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr),
      "select a range");
}

void write_attribute(hid_t object, const std::string& name, std::int64_t value) {
  write_scalar(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, value);
}

void write_attribute(hid_t object, const std::string& name, double value) {
  write_scalar(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, value);
}

void write_attribute(hid_t object, const std::string& name, const std::string& value) {
  const Hdf5Lock lock;
  const Handle type = text_type();
  write_scalar(object, name, type, type, value.c_str());
}

namespace {

std::string name_of(hid_t attribute) {
  char name[64] = {};
  hdf5_check(H5Aget_name(attribute, sizeof name, name), "name of an attribute");
  return on_one_line(name);
}

/// The stored type of an attribute of one value. H5Aread writes as many elements of this size as
/// the attribute has.
Handle type_of_one(hid_t attribute, std::initializer_list<H5T_class_t> classes, const char* what) {
  const Handle space(H5Aget_space(attribute), H5Sclose, "space of an attribute");
  const hssize_t values = hdf5_check(H5Sget_simple_extent_npoints(space), "size of an attribute");
  if (values != 1 || H5Sget_simple_extent_type(space) == H5S_NULL)
    throw Hdf5Error(fmt::format("the attribute '{}' holds {} values instead of one",
                                name_of(attribute), values));
  Handle type(H5Aget_type(attribute), H5Tclose, "type of an attribute");
  const H5T_class_t stored = H5Tget_class(type);
  if (std::find(classes.begin(), classes.end(), stored) == classes.end())
    throw Hdf5Error(fmt::format("the attribute '{}' is not {}", name_of(attribute), what));
  return type;
}

}  // namespace

std::int64_t read_integer(hid_t attribute) {
  const Hdf5Lock lock;
  const Handle stored = type_of_one(attribute, {H5T_INTEGER}, "an integer");
  std::int64_t value = 0;
  hdf5_check(H5Aread(attribute, H5T_NATIVE_INT64, &value), "read attribute");
  return value;
}

double read_number(hid_t attribute) {
  const Hdf5Lock lock;
  const Handle stored = type_of_one(attribute, {H5T_INTEGER, H5T_FLOAT}, "a number");
  double value = 0;
  hdf5_check(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value), "read attribute");
  return value;
}

std::string read_string(hid_t attribute) {
  const Hdf5Lock lock;
  const Handle stored = type_of_one(attribute, {H5T_STRING}, "a text");
  if (hdf5_check(H5Tis_variable_str(stored), "type of an attribute") > 0) {
    char* value = nullptr;
    hdf5_check(H5Aread(attribute, stored, &value), "read attribute");
    const std::string text = value ? value : "";
    H5free_memory(value);
    return text;
  }
  constexpr std::size_t longest = std::size_t{1} << 24;
  const std::size_t size = H5Tget_size(stored);
  if (size > longest)
    throw Hdf5Error(
        fmt::format("the attribute '{}' is a text of {} bytes", name_of(attribute), size));
  std::vector<char> text(size + 1, '\0');
  hdf5_check(H5Aread(attribute, stored, text.data()), "read attribute");
  return text.data();
}

Shape shape_of(hid_t space) {
  const Hdf5Lock lock;
  if (H5Sget_simple_extent_type(space) == H5S_NULL) throw Hdf5Error("it has no values");
  const int rank = hdf5_check(H5Sget_simple_extent_ndims(space), "shape");
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  hdf5_check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "shape");
  std::size_t elements = 1;
  for (const hsize_t extent : dims)
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > largest_shape)
      throw Hdf5Error(fmt::format("its shape ({}) is larger than memory", fmt::join(dims, ", ")));
  return {dims.begin(), dims.end()};
}

Handle open_dataset(hid_t parent, const std::string& name) {
  const Hdf5Lock lock;
  Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, "open " + name);
  const Handle create(H5Dget_create_plist(dataset), H5Pclose, "properties of " + name);
  if (hdf5_check(H5Pget_external_count(create), "storage of " + name) > 0)
    throw Hdf5Error("its values are in another file (external storage), which is not read");
  if (H5Pget_layout(create) != H5D_CHUNKED) return dataset;
  const Shape shape = shape_of(Handle(H5Dget_space(dataset), H5Sclose, "space of " + name));
  std::vector<hsize_t> chunk(shape.size());
  hdf5_check(H5Pget_chunk(create, static_cast<int>(chunk.size()), chunk.data()), "chunk size");
  std::size_t elements = 1;
  for (const hsize_t extent : chunk)
    if (__builtin_mul_overflow(elements, extent, &elements) ||
        elements > std::max(element_count(shape), largest_chunk))
      throw Hdf5Error(fmt::format("its chunks ({}) are larger than it", fmt::join(chunk, ", ")));
  return dataset;
}

bool is_virtual(hid_t dataset) {
  const Hdf5Lock lock;
  const Handle create(H5Dget_create_plist(dataset), H5Pclose, "dataset properties");
  return hdf5_check(H5Pget_layout(create), "layout") == H5D_VIRTUAL;
}

bool holds_floats(hid_t dataset) {
  const Hdf5Lock lock;
  const Handle type(H5Dget_type(dataset), H5Tclose, "type of a dataset");
  return H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) <= sizeof(long double);
}

}  // namespace tern::checkpoint::detail
