/// A campaign from deck to exit code: called by main() once MPI and Kokkos run.
#pragma once
#include "comm/comm.hpp"
#include "deck/deck.hpp"
#include "job/options.hpp"

namespace tern::campaign {

/// Whether the task writes its result to files, so that standard output may be lost.
bool leaves_files(const deck::Deck& deck, const job::Options& options);

/// Runs the deck's task on all ranks. Collective; returns the same exit code (job/exit_code.hpp, 0
/// or 1) on every rank.
int run(const deck::Deck& deck, const job::Options& options, const comm::Session& session);

}  // namespace tern::campaign
