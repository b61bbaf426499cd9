/// HDF5 virtual file driver over pread and pwrite. HDF5's default driver (a) can neither flush nor
/// close a file once the disk is full, and (b) takes file locks, which some parallel file systems
/// refuse. This one records the first failed write in `WriteStatus` and drops all later ones, so
/// that the file can be closed; the writer then checks the status.
#pragma once
#include <filesystem>

#include "checkpoint/detail/hdf5.hpp"

namespace tern::checkpoint::detail {

struct WriteStatus {
  int error = 0;       // errno of the first write that failed
  int open_error = 0;  // errno of the last failed open; HDF5 probes before it creates
};

/// File access properties with this driver. `status` must outlive the file; null: read-only.
Handle file_access(WriteStatus* status);

/// Opens a file for reading, with access properties of file_access(nullptr). The only way to: HDF5
/// itself opens files that another one names (external links, sources of virtual datasets), and the
/// driver refuses these. Throws Hdf5Error, for a pipe or device as well.
Handle open_to_read(const std::filesystem::path& file, hid_t access);

}  // namespace tern::checkpoint::detail
