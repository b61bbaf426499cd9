/// Ends of a rank that does not return to its caller.
#pragma once

namespace tern::comm::detail {

/// Ends this rank, and with it all others, with code 70.
[[noreturn]] void leave();

/// From now on abort() ends all ranks with code 70 and says so: Kokkos calls it when a device has
/// failed, the C++ runtime on an exception that nobody catches. After the start of MPI.
void catch_aborts(int rank, int size);

}  // namespace tern::comm::detail
