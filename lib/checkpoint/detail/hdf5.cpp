#include "checkpoint/detail/hdf5.hpp"

#include <utility>
#include <vector>

namespace tern::checkpoint::detail {
namespace {

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

std::int64_t read_integer(hid_t attribute) {
  const Hdf5Lock lock;
  std::int64_t value = 0;
  hdf5_check(H5Aread(attribute, H5T_NATIVE_INT64, &value), "read attribute");
  return value;
}

double read_number(hid_t attribute) {
  const Hdf5Lock lock;
  double value = 0;
  hdf5_check(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value), "read attribute");
  return value;
}

std::string read_string(hid_t attribute) {
  const Hdf5Lock lock;
  const Handle stored(H5Aget_type(attribute), H5Tclose, "attribute type");
  if (H5Tget_class(stored) != H5T_STRING) throw Hdf5Error("attribute is not a string");
  if (H5Tis_variable_str(stored) > 0) {
    char* value = nullptr;
    hdf5_check(H5Aread(attribute, text_type(), &value), "read attribute");
    const std::string text = value ? value : "";
    H5free_memory(value);
    return text;
  }
  std::vector<char> text(H5Tget_size(stored) + 1, '\0');
  hdf5_check(H5Aread(attribute, stored, text.data()), "read attribute");
  return text.data();
}

}  // namespace tern::checkpoint::detail
