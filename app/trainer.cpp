// trainer DECK: runs a campaign. The numbered steps are the whole program.
#include <Kokkos_Core.hpp>
#include <boost/program_options.hpp>
#include <iostream>

#include "base/error.hpp"
#include "base/version.hpp"
#include "base/wait_policy.hpp"
#include "campaign/campaign.hpp"
#include "campaign/interrupt.hpp"
#include "campaign/weights.hpp"
#include "deck/loaded_model.hpp"

namespace {

namespace po = boost::program_options;

constexpr const char* usage =
    "usage: trainer DECK [options]\n"
    "       mpirun -n 4 trainer DECK          four ranks\n"
    "       srun trainer DECK --resume        in a Slurm job\n"
    "\n"
    "Trains, evaluates or samples the language model that DECK, a Fortran namelist, describes.\n"
    "Results go to runs/NAME: log.txt, metrics.jsonl, report.html, checkpoints/.\n\n";

constexpr const char* exit_codes =
    "\nexit codes: 0 done; 1 a mistake in deck, data or options; 70 an internal error;\n"
    "74 ended, but the last checkpoint could not be written;\n"
    "75 stopped by a signal or the job's time limit, checkpoint written: run again with --resume;\n"
    "76 too many steps in a row without a finite loss or gradient;\n"
    "77 the run ended, but its verdict is not good: do not start the next phase.\n";

struct CommandLine {
  std::string deck;
  std::vector<std::string> set;
  bool help = false, version = false, print_deck = false;
  tern::campaign::Options options;
};

po::options_description describe(CommandLine& line) {
  po::options_description all("options");
  all.add_options()("help,h", po::bool_switch(&line.help), "show this text and end")(
      "version", po::bool_switch(&line.version), "show version and commit and end")(
      "set,s", po::value(&line.set)->composing()->value_name("GROUP.NAME=VALUE"),
      "override a value of the deck, as --set batch.per_rank=16; may be repeated")(
      "print-deck", po::bool_switch(&line.print_deck),
      "print the whole deck, with defaults, units, ranges and help, and end")(
      "dry-run", po::bool_switch(&line.options.dry_run),
      "print the plan (parameters, memory term by term, time, cost) and end")(
      "device", po::value(&line.options.device)->value_name("GPU"),
      "dry run: plan for h100 or h200 instead of the device that is here")(
      "show-batch", po::bool_switch(&line.options.show_batch),
      "supervised: print the first rows' tokens with role and mask and end")(
      "resume", po::bool_switch(&line.options.resume),
      "go on from the newest good checkpoint; start anew if there is none")(
      "fresh", po::bool_switch(&line.options.fresh),
      "move an earlier run of the same name aside and start anew")(
      "prompt", po::value<std::string>()->value_name("TEXT"),
      "continue TEXT with the run's newest checkpoint (task = 'generate')")(
      "refine", po::value<int>()->value_name("N"),
      "refinement: refine the first answer N times, as --set generation.refine=N")(
      "export", po::value(&line.options.export_to)->value_name("DIR"),
      "write the newest checkpoint's weights as a Hugging Face Transformers directory");
  return all;
}

/// A namelist string: in quotes, with quotes in it doubled.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

/// Parses the options; Kokkos takes its own (--kokkos-...) out of argv before.
CommandLine parse(int argc, char** argv, bool speaks) {
  CommandLine line;
  const po::options_description visible = describe(line);
  po::options_description all;
  all.add(visible).add_options()("deck", po::value(&line.deck), "");
  po::positional_options_description positional;
  positional.add("deck", 1);
  po::variables_map map;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(), map);
    po::notify(map);
  } catch (const po::error& e) {
    tern::user_error("{}; trainer --help lists the options", e.what());
  }
  if (line.help && speaks) std::cout << usage << visible << exit_codes;
  if (line.version && speaks)
    std::cout << "tern " << tern::version() << " (" << tern::commit() << ")\n";
  if (map.count("prompt")) {
    line.set.push_back("campaign.task='generate'");
    line.set.push_back("generation.prompt=" + quoted(map["prompt"].as<std::string>()));
  }
  if (map.count("refine"))
    line.set.push_back("generation.refine=" + std::to_string(map["refine"].as<int>()));
  if (line.deck.empty() && !line.help && !line.version)
    tern::user_error("no deck given; try: trainer input/quickstart.in, or trainer --help");
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  tern::choose_wait_policy();  // may start the program again: before anything else
  const tern::Timer clock;
  tern::campaign::watch_signals();
  // 1. MPI starts, and from here on all ranks end together.
  const tern::comm::Session session(&argc, &argv);
  tern::campaign::release_signals();
  return tern::comm::run_ranks([&]() -> int {
    // 2. Options and deck.
    CommandLine line = parse(argc, argv, session.rank() == 0);
    if (line.help || line.version) return 0;
    const tern::deck::Deck deck = tern::deck::read(line.deck, line.set, tern::campaign::model_at);
    if (line.print_deck) {
      if (session.rank() == 0) std::cout << tern::deck::print(deck, true);
      return 0;
    }
    // 3. Kokkos takes this rank's device.
    const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings()
                                        .set_device_id(session.device())
                                        .set_disable_warnings(true));
    // 4. The campaign.
    line.options.clock = clock;
    return tern::campaign::run(deck, line.options, session);
  });
}
