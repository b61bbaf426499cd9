// diagnose: describes this machine, measures its rates, and checks the operations on it.
#include <Kokkos_Core.hpp>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/output.hpp"
#include "base/version.hpp"
#include "base/wait_policy.hpp"
#include "checks/diagnose.hpp"
#include "cli/arguments.hpp"
#include "comm/prologue.hpp"

namespace {

namespace po = tern::cli::po;

constexpr const char* usage =
    "usage: diagnose [options]\n"
    "       mpirun -n 4 diagnose       four ranks, with the rates between them\n"
    "\n"
    "Prints devices, connections and versions; rates of copies, matrix products, attention and\n"
    "exchanges between ranks, compared with what the device should give; deck lines that suit it.\n"
    "Checks every operation against a reference in double precision.\n\n";
constexpr const char* exit_codes =
    "\nexit codes: 0 all operations pass; 1 one fails, or a wrong option; 70 an internal error.\n";

struct CommandLine {
  std::string shown;  // by --help or --version
  bool no_rates = false, no_checks = false;
  tern::checks::DiagnoseOptions options;
};

CommandLine parse(int argc, char** argv) {
  CommandLine line;
  bool help = false, version = false;
  po::options_description all("options");
  // clang-format off
  all.add_options()
    ("help,h", po::bool_switch(&help), "show this text and end")
    ("version", po::bool_switch(&version), "show version and commit and end")
    ("no-rates", po::bool_switch(&line.no_rates), "skip the rate measurements")
    ("no-checks", po::bool_switch(&line.no_checks), "skip the checks")
    ("verbose", po::bool_switch(&line.options.verbose), "list all cases of the checks, not only those that fail")
    ("json", po::bool_switch(&line.options.json), "print one JSON object, with all cases")
    ("seed", po::value(&line.options.seed)->value_name("N"), "of the checks' inputs (1)");
  // clang-format on
  tern::cli::parse({"diagnose --help", all, {}}, tern::cli::words_of(argc, argv));
  if (version) line.shown = fmt::format("tern {} ({})\n", tern::version(), tern::commit());
  if (help) line.shown = (std::ostringstream() << usage << all << exit_codes).str();
  line.options.rates = !line.no_rates;
  line.options.checks = !line.no_checks;
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  tern::hold_standard_streams();
  tern::choose_wait_policy();  // may re-execute the program: before anything slow
  CommandLine line;
  const tern::comm::Prologue prologue([&] {
    line = parse(argc, argv);
    if (tern::comm::launched_rank().value_or(0) == 0) std::cout << line.shown;
    return !line.shown.empty();
  });
  if (const auto code = prologue.exit_code()) return tern::output_written() ? *code : 1;
  const tern::comm::Session session(&argc, &argv);
  const int code = tern::comm::run_ranks([&]() -> int {
    prologue.rethrow();
    const Kokkos::ScopeGuard kokkos(Kokkos::InitializationSettings()
                                        .set_device_id(session.device())
                                        .set_disable_warnings(true));
    const auto group = tern::comm::world();
    tern::Log log(session.rank() == 0);
    return tern::checks::diagnose(line.options, session, *group, log);
  });
  return tern::output_written() || code != 0 ? code : 1;
}
