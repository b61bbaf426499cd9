#include "checkpoint/detail/file_driver.hpp"

#if __has_include(<H5FDdevelop.h>)  // HDF5 >= 1.12; 1.10 has all in hdf5.h
#include <H5FDdevelop.h>
#endif
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

#include "base/files.hpp"

namespace tern::checkpoint::detail {
namespace {

// HDF5 casts H5FD_t* to the driver's type: the public part comes first.
struct OpenFile {
  H5FD_t base;
  std::unique_ptr<File> file;
  WriteStatus* status;
  haddr_t allocated = 0;  // the end HDF5 has allocated
  haddr_t end = 0;        // the end on disk
  dev_t device;
  ino_t inode;
};

struct Info {
  WriteStatus* status;
};

OpenFile* of(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* of(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

int open_flags(unsigned flags) {
  int result = flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY;
  if (flags & H5F_ACC_TRUNC) result |= O_TRUNC;
  if (flags & H5F_ACC_CREAT) result |= O_CREAT;
  if (flags & H5F_ACC_EXCL) result |= O_EXCL;
  return result;
}

const char* asked_for = nullptr;  // the file that open_to_read() opens; under the lock

H5FD_t* open_named(const char* name, unsigned flags, hid_t access, haddr_t) {
  const bool writes = flags & H5F_ACC_RDWR;
  if (!writes && (!asked_for || std::strcmp(name, asked_for) != 0)) return nullptr;
  const auto* info = static_cast<const Info*>(H5Pget_driver_info(access));
  auto result = std::make_unique<OpenFile>();
  result->status = info ? info->status : nullptr;
  try {
    result->file = std::make_unique<File>(name, open_flags(flags));
    result->end = result->file->size();
  } catch (const FileError& error) {
    if (result->status) result->status->open_error = error.code;
    return nullptr;
  }
  struct stat status;
  if (::fstat(result->file->descriptor(), &status) != 0) return nullptr;
  result->device = status.st_dev;
  result->inode = status.st_ino;
  return &result.release()->base;
}

herr_t close_file(H5FD_t* file) {
  delete of(file);
  return 0;
}

// HDF5 uses this to detect that a file is already open.
int compare(const H5FD_t* first, const H5FD_t* second) {
  const auto *a = of(first), *b = of(second);
  if (a->device != b->device) return a->device < b->device ? -1 : 1;
  return a->inode == b->inode ? 0 : a->inode < b->inode ? -1 : 1;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t allocated_end(const H5FD_t* file, H5FD_mem_t) { return of(file)->allocated; }

herr_t set_allocated_end(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  of(file)->allocated = address;
  return 0;
}

haddr_t file_end(const H5FD_t* file, H5FD_mem_t) { return of(file)->end; }

// Bytes beyond the end of the file read as zeros, as in HDF5's own driver.
herr_t read_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t count, void* to) {
  try {
    const std::size_t done = of(file)->file->read(to, count, address);
    std::memset(static_cast<char*>(to) + done, 0, count - done);
    return 0;
  } catch (const FileError&) {
    return -1;
  }
}

herr_t write_file(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t count,
                  const void* from) {
  OpenFile& open = *of(file);
  if (!open.status) return -1;
  if (open.status->error == 0) {
    try {
      open.file->write(from, count, address);
    } catch (const FileError& error) {
      open.status->error = error.code;
    }
  }
  open.end = std::max<haddr_t>(open.end, address + count);
  return 0;
}

herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  OpenFile& open = *of(file);
  if (open.end == open.allocated || !open.status) return 0;
  if (open.status->error == 0 &&
      ::ftruncate(open.file->descriptor(), static_cast<off_t>(open.allocated)) != 0)
    open.status->error = errno;
  open.end = open.allocated;
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(1009);  // not used by HDF5 itself
#endif
  driver.name = "tern";
  driver.maxaddr = static_cast<haddr_t>(std::numeric_limits<off_t>::max());
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Info);
  driver.open = open_named;
  driver.close = close_file;
  driver.cmp = compare;
  driver.query = query;
  driver.get_eoa = allocated_end;
  driver.set_eoa = set_allocated_end;
  driver.get_eof = file_end;
  driver.read = read_file;
  driver.write = write_file;
  driver.truncate = truncate_file;
  constexpr H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), std::begin(driver.fl_map));
  return driver;
}

hid_t driver() {
  static const H5FD_class_t description = driver_class();
  static const hid_t id = hdf5_check(H5FDregister(&description), "register the file driver");
  return id;
}

}  // namespace

Handle file_access(WriteStatus* status) {
  const Hdf5Lock lock;
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file access properties");
  const Info info{status};
  hdf5_check(H5Pset_driver(access, driver(), &info), "set the file driver");
  hdf5_check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "set the close degree");
  // Chunk cache of 8 MiB, so that ranges in the same chunk read it once.
  hdf5_check(H5Pset_cache(access, 0, 521, std::size_t{8} << 20, 1.0), "set the chunk cache");
  return access;
}

Handle open_to_read(const std::filesystem::path& file, hid_t access) {
  const Hdf5Lock lock;
  try {
    const File regular(file, O_RDONLY);  // for the reason, which HDF5 does not pass on
  } catch (const FileError& error) {
    throw Hdf5Error(error.what());
  }
  asked_for = file.c_str();
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDONLY, access);
  asked_for = nullptr;
  return Handle(id, H5Fclose, "open " + file.string());
}

}  // namespace tern::checkpoint::detail
