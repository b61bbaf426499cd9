/// HDF5 files of a checkpoint. Each function creates (truncates) its file and fsyncs it; on failure
/// it throws std::runtime_error (FileError with errno for I/O errors) and leaves the broken file to
/// the caller.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/detail/layout.hpp"

namespace tern::checkpoint::detail {

constexpr const char* checkpoint_file = "checkpoint.h5";
constexpr const char* format_name = "tern-checkpoint";
constexpr std::int64_t format_version = 1;

/// "shard_0003.h5"
std::string shard_file(int rank);
/// Whether `name` is one that shard_file() gives: a name in the folder, and no other path.
bool is_shard_file(const std::string& name);

/// `data`: all tensors, contiguous.
void write_plain(const std::filesystem::path& file, const Header& header,
                 const std::vector<Tensor>& tensors, const float* data);

/// One rank's shard: datasets "data" (total) and "extents" (n, 4): tensor, first, count, offset in
/// data.
void write_shard(const std::filesystem::path& file, const std::vector<Extent>& extents,
                 const float* data, std::size_t total);
/// Extents of the shard written by `rank`, checked against the tensors' sizes.
std::vector<Extent> read_extents(const std::filesystem::path& file, int rank,
                                 const std::vector<Tensor>& tensors);

/// Virtual datasets over the shards in the same folder, by relative names. `extents` cover all
/// tensors.
void write_virtual(const std::filesystem::path& file, const Header& header,
                   const std::vector<Tensor>& tensors, const std::vector<Extent>& extents,
                   const std::vector<std::size_t>& shard_sizes);

}  // namespace tern::checkpoint::detail
