/// How OpenMP threads wait at the barrier that ends a loop.
///
/// By default runtimes spin for milliseconds before a thread sleeps. On a machine shared with other
/// work the spinning thread takes the core from the one it waits for: two threads next to two busy
/// processes train several times slower. Sleeping at once costs a wake-up per loop, tens of
/// microseconds. Spinning for about the time of a wake-up loses little either way.
#pragma once
#include <string>

namespace tern {

/// Chooses the policy. First call in main(), before MPI and signal handlers: runtimes read their
/// environment when they are loaded, so the program re-executes itself once with the environment
/// extended. No-op if the user has chosen (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME,
/// KMP_LIBRARY), with one thread, or without OpenMP.
void choose_wait_policy();

/// The policy in words: "spin 3000 times, then sleep", "OMP_WAIT_POLICY=passive"; empty with fewer
/// than two threads.
std::string wait_policy();

}  // namespace tern
