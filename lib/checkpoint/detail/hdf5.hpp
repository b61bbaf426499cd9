/// RAII and exceptions over HDF5's C API. Serial builds of HDF5 (Debian's) are not thread-safe, so
/// all HDF5 calls of the process hold one recursive mutex: take an Hdf5Lock around each group of
/// calls. Long writes hold it for one chunk at a time.
#pragma once
#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "checkpoint/detail/layout.hpp"

namespace tern::checkpoint::detail {

/// Also turns off HDF5's printing of its error stack.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::lock_guard<std::recursive_mutex> guard_;
};

class Hdf5Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws Hdf5Error with `what` and the innermost message of HDF5's error stack.
[[noreturn]] void hdf5_failed(const std::string& what);
/// Returns a nonnegative result, throws otherwise.
template <class Result>
Result hdf5_check(Result result, const std::string& what) {
  if (result < 0) hdf5_failed(what);
  return result;
}

/// Owns one HDF5 identifier.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close, const std::string& what)
      : id_(hdf5_check(id, what)), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  operator hid_t() const { return id_; }  // NOLINT: implicit
  void reset();

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

Handle simple_space(const Shape& shape);
/// Memory space of exactly one box, in the box's own shape: if memory and file shapes differ, HDF5
/// copies element by element, many times slower.
Handle box_space(const Box& box);
void select_box(hid_t space, const Box& box);

void write_attribute(hid_t object, const std::string& name, std::int64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
/// Variable-length UTF-8, which h5py reads as str.
void write_attribute(hid_t object, const std::string& name, const std::string& value);
/// Each reads an attribute of one value, of the type class that the name says (a number: integer or
/// float). Throws Hdf5Error for all others: HDF5 would write them beyond the variable.
std::int64_t read_integer(hid_t attribute);
double read_number(hid_t attribute);
std::string read_string(hid_t attribute);

/// Shape of a dataspace; throws Hdf5Error if it has none, or one with more elements than memory.
Shape shape_of(hid_t space);
/// Opens a dataset and looks at where its values are: external storage, which HDF5 reads from any
/// file, is refused, and so are chunks far larger than the dataset.
Handle open_dataset(hid_t parent, const std::string& name);
bool is_virtual(hid_t dataset);
/// Whether the values are floats, of a size that processors have.
bool holds_floats(hid_t dataset);

}  // namespace tern::checkpoint::detail
