/// Reader of the HDF5 files that hold golden values, for tests: link HDF5::HDF5.
#pragma once
#include <hdf5.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tern::test {

class Golden {
 public:
  /// Throws std::runtime_error if the file cannot be opened.
  explicit Golden(const std::string& path) : path_(path) {
    file_ = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file_ < 0) fail("cannot be opened");
  }
  ~Golden() { H5Fclose(file_); }
  Golden(const Golden&) = delete;
  Golden& operator=(const Golden&) = delete;

  /// Whether the file has this dataset or group; every group on the way to it may be missing.
  bool has(const std::string& name) const {
    for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
      if (H5Lexists(file_, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
      if (end == std::string::npos) return true;
    }
  }
  /// Extents of a dataset; empty for a scalar.
  std::vector<std::size_t> shape(const std::string& name) const {
    const Dataset set(*this, name);
    std::vector<hsize_t> extents(static_cast<std::size_t>(H5Sget_simple_extent_ndims(set.space)));
    H5Sget_simple_extent_dims(set.space, extents.data(), nullptr);
    return {extents.begin(), extents.end()};
  }
  /// All numbers of a dataset of any integer or floating type, row-major.
  std::vector<double> numbers(const std::string& name) const {
    const Dataset set(*this, name);
    std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(set.space)));
    if (H5Dread(set.id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail("has unreadable numbers in '" + name + "'");
    return values;
  }
  /// The same for integers.
  std::vector<std::int32_t> integers(const std::string& name) const {
    const std::vector<double> values = numbers(name);
    return {values.begin(), values.end()};
  }
  /// The number of a scalar dataset.
  double number(const std::string& name) const {
    const std::vector<double> values = numbers(name);
    if (values.size() != 1) fail("has more than one number in '" + name + "'");
    return values[0];
  }

 private:
  struct Dataset {
    Dataset(const Golden& golden, const std::string& name) {
      if (!golden.has(name)) golden.fail("has no dataset '" + name + "'");
      id = H5Dopen2(golden.file_, name.c_str(), H5P_DEFAULT);
      if (id < 0) golden.fail("has no dataset '" + name + "'");
      space = H5Dget_space(id);
    }
    ~Dataset() {
      H5Sclose(space);
      H5Dclose(id);
    }
    Dataset(const Dataset&) = delete;
    Dataset& operator=(const Dataset&) = delete;

    hid_t id, space;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("golden file " + path_ + " " + what);
  }

  std::string path_;
  hid_t file_;
};

}  // namespace tern::test
