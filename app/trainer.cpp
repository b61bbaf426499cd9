// trainer DECK: runs a campaign. The numbered steps are the whole program.
#include <Kokkos_Core.hpp>
#include <iostream>
#include <sstream>

#include "base/output.hpp"
#include "base/wait_policy.hpp"
#include "campaign/campaign.hpp"
#include "campaign/command_line.hpp"
#include "comm/agreement.hpp"
#include "comm/prologue.hpp"
#include "job/interrupt.hpp"

using namespace tern;

int main(int argc, char** argv) {
  hold_standard_streams();
  choose_wait_policy();  // may re-execute the program: before anything slow
  const Timer clock;
  job::watch_signals();
  // 1. Options and deck; on rank 0, output that needs no MPI.
  campaign::CommandLine line;
  deck::Deck deck;
  const comm::Prologue prologue([&] {
    std::ostringstream shown;
    line = campaign::parse_command_line(argc, argv);
    bool done = campaign::shows_without_deck(line, shown);
    if (!done) {
      deck = campaign::read_deck(line, &line.options.notes);
      if ((done = line.print_deck)) {
        for (const std::string& note : line.options.notes) shown << "! " << note << '\n';
        shown << deck::print(deck, true);
      }
    }
    if (comm::launched_rank().value_or(0) == 0) std::cout << shown.str();
    return done;
  });
  if (const auto code = prologue.exit_code()) return output_written() ? *code : 1;
  // 2. MPI starts; from here on all ranks end together.
  job::hold_signals();
  const comm::Session session(&argc, &argv);
  job::release_signals(session.size());
  const int code = comm::run_ranks([&]() -> int {
    comm::together([&] { prologue.rethrow(); });
    // 3. Kokkos takes this rank's device.
    const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings()
                                        .set_device_id(session.device())
                                        .set_disable_warnings(true));
    // 4. The campaign.
    line.options.clock = clock;
    return campaign::run(deck, line.options, session);
  });
  // 5. Failed standard output is an error only if the task leaves no files.
  const bool said = output_written();
  return said || code != 0 || campaign::leaves_files(deck, line.options) ? code : 1;
}
