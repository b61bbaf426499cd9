/// The device that is planned for: this rank's, or another one that a dry run imagines.
#pragma once
#include <string>

#include "memory/arena.hpp"

namespace tern::plan {

/// From now on plans are for a GPU of this name ('h100', 'h200', 'a100', 'a100-40gb'), wherever
/// they are made; empty: for this rank's again. UserError for a name that is not known.
void imagine_device(const std::string& name);
/// Whether plans are for a GPU: an imagined one, or this rank's.
bool planned_on_gpu();
/// What is planned for, in a word or two: the name of a known GPU ('H200'), another's as its driver
/// has it, or the host's threads ('OpenMP, 2 threads').
std::string planned_device_name();
/// Of the device that is planned for. An imagined one has nothing on it but what the driver and the
/// libraries take.
DeviceCapacity planned_capacity();

}  // namespace tern::plan
