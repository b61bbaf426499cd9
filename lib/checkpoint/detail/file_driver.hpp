/// How HDF5 reaches the disk: a virtual file driver over pread and pwrite of our own, because
/// HDF5's default one (a) leaves the library with a file that it can neither flush nor close once
/// the disk is full, and (b) takes file locks, which some parallel file systems refuse. Ours
/// remembers the first failed write, drops the rest, and so lets the file be closed; the writer
/// then asks `WriteStatus`.
#pragma once
#include "checkpoint/detail/hdf5.hpp"

namespace tern::checkpoint::detail {

struct WriteStatus {
  int error = 0;       // errno of the first write that failed
  int open_error = 0;  // errno of the last open that failed; HDF5 probes before it creates
};

/// File access properties with this driver. `status` must outlive the file; null for reading.
Handle file_access(WriteStatus* status);

}  // namespace tern::checkpoint::detail
