/// Which checkpoint is the best, by the attributes of checkpoints.
#pragma once
#include <filesystem>
#include <optional>

#include "checkpoint/checkpoint.hpp"

namespace tern::checkpoint::detail {

/// Attributes of the checkpoint in `folder`, with those of its evaluation, read without verifying
/// its data. Empty if they cannot be read.
std::optional<Header> peek(const std::filesystem::path& folder);

}  // namespace tern::checkpoint::detail
