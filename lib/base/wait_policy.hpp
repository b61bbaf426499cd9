/// How OpenMP's threads wait for each other at the end of a loop.
///
/// A runtime's default is to spin for milliseconds before a thread sleeps. On a machine that does
/// other work as well, the one that spins takes the core from the one that it waits for: two
/// threads beside two busy processes train several times slower. Sleeping at once costs a wake-up a
/// loop, tens of microseconds. Spinning for about as long as a wake-up takes loses little either
/// way.
#pragma once
#include <string>

namespace tern {

/// Chooses the policy. The first call of main(), before MPI and signal handlers: the runtimes read
/// their environment while they are loaded, so the program starts itself again, once, with the
/// environment extended. Does nothing where the user has chosen (OMP_WAIT_POLICY, GOMP_SPINCOUNT,
/// KMP_BLOCKTIME, KMP_LIBRARY), and where there is one thread, or no OpenMP.
void choose_wait_policy();

/// The policy in words: "spin 3000 times, then sleep", "OMP_WAIT_POLICY=passive"; empty where no
/// thread waits for another.
std::string wait_policy();

}  // namespace tern
