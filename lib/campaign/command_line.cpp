#include "campaign/command_line.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/version.hpp"
#include "campaign/deck_list.hpp"
#include "cli/arguments.hpp"
#include "deck/loaded_model.hpp"
#include "deck/rules.hpp"
#include "job/options.hpp"
#include "report/comparison.hpp"
#include "weights/weights.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* usage =
    "usage: trainer DECK [options]            DECK: a file, or a name that --list shows\n"
    "       mpirun -n 4 trainer DECK          four ranks\n"
    "       srun trainer DECK --resume        in a Slurm job\n"
    "       trainer --list [FOLDER]           list the decks found, or a folder's decks and runs\n"
    "       trainer --compare RUN RUN...      compare the decks and curves of runs\n"
    "\n"
    "Train, evaluate or sample the language model described by DECK (a Fortran namelist).\n"
    "Results go to runs/NAME: log.txt, metrics.jsonl, report.html, checkpoints/.\n\n";

constexpr const char* exit_codes =
    "\nexit codes: 0 done; 1 a mistake in deck, data or options, or output that could not be\n"
    "written; 70 an internal error, or a rank that waited too long for the others;\n"
    "74 ended, but a checkpoint, an evaluation or metrics could not be written;\n"
    "75 stopped by a signal or the job's time limit, checkpoint written: run again with --resume;\n"
    "76 diverged: no finite validation loss, or too many steps in a row without a finite loss or\n"
    "gradient;\n"
    "77 the run finished but failed its verdict; do not start the next phase.\n";

po::options_description describe(CommandLine& line) {
  po::options_description all("options", 100, 60);
  job::Options& o = line.options;
  // clang-format off
  all.add_options()
    ("help,h", po::bool_switch(&line.help), "show this text and end")
    ("version", po::bool_switch(&line.version), "show version and commit and end")
    ("list", po::bool_switch(&line.list), "list the decks of input/, or decks and runs of the folder named in place of the deck, and end")
    ("compare", po::value(&line.compare)->multitoken()->value_name("RUN RUN..."), "compare runs, named by their directories: print their results and the deck values that differ, write their curves to compare.html in the first one's directory, and end")
    ("set,s", po::value(&line.set)->composing()->value_name("GROUP.NAME=VALUE"), "override a deck value, e.g. --set batch.per_rank=16; repeatable")
    ("quick", po::value(&line.quick)->value_name("N"), "run N steps, scaling schedule, warmup and intervals to match")
    ("print-deck", po::bool_switch(&line.print_deck), "print the whole deck, with defaults, units, ranges and help, and end")
    ("dry-run", po::bool_switch(&o.dry_run), "print the plan (parameters, memory term by term, time, cost) and end; exit code 1 if data, tokenizer or weights that the run reads are missing or malformed")
    ("without-data", po::bool_switch(&o.without_data), "dry run: plan without them")
    ("device", po::value(&o.device)->value_name("GPU"), "dry run: plan for h200, h100, a100 or a100-40gb instead of this machine's device")
    ("ranks", po::value(&o.ranks)->value_name("N"), "dry run: plan for N ranks instead of those started")
    ("ranks-per-node", po::value(&o.ranks_per_node)->value_name("N"), "dry run: plan for nodes of N ranks; without it, for one node")
    ("network", po::value(&o.network)->value_name("GBITS"), "dry run: rate of the network between nodes, Gbit/s per rank; without it, 400 for h200 and h100, 200 for a100")
    ("show-batch", po::bool_switch(&o.show_batch), "supervised: print the first rows' tokens with role and mask and end")
    ("resume", po::bool_switch(&o.resume), "resume from the newest good checkpoint; start from scratch if there is none")
    ("fresh", po::bool_switch(&o.fresh), "move an earlier run of the same name aside and start from scratch")
    ("prompt", po::value<std::string>()->value_name("TEXT"), "continue TEXT, or the text of a file (@FILE), with the run's best checkpoint (task = 'generate'; generation.checkpoint names another)")
    ("refine", po::value<int>()->value_name("N"), "refinement: refine the first answer N times; the same as --set generation.refine=N")
    ("export", po::value(&o.export_to)->value_name("DIR"), "write the best checkpoint's weights, with the tokenizer, as a new Hugging Face Transformers directory")
    ("quiet,q", po::bool_switch(), "show warnings and results only; log.txt has all")
    ("verbose,v", po::bool_switch(), "also log checkpoints as they are written, all parts of the loss and all metrics of evaluations");
  // clang-format on
  return all;
}

/// A namelist string: quoted, inner quotes doubled.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

/// The text itself, or for `@FILE` the file's contents without the final newline.
std::string prompt_text(const std::string& given) {
  if (!given.starts_with('@')) return given;
  const fs::path file = given.substr(1);
  std::string text;
  try {
    text = read_text(file);
  } catch (const FileError&) {
    user_error(
        "--prompt {}: no file {} can be read; for a text that begins with '@' use "
        "--set campaign.task=generate --set generation.prompt=TEXT",
        given, file.string());
  }
  std::string plain;  // \r\n becomes \n
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text.compare(i, 2, "\r\n") != 0) plain += text[i];
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

/// --prompt replaces the deck's task and its requests.
void set_prompt(CommandLine& line, const std::string& given) {
  const std::vector<std::string> instead{"generation.input=''", "generation.prompt_template=''",
                                         "generation.output=''", "generation.pattern=''",
                                         "generation.stop="};
  line.set.insert(line.set.begin(), instead.begin(), instead.end());
  line.set.push_back("campaign.task='generate'");
  line.set.push_back("generation.prompt=" + quoted(prompt_text(given)));
}

void require_sense(const CommandLine& line, const po::variables_map& map) {
  const auto together = [&](const char* a, bool has_a, const char* b, bool has_b, const char* why) {
    if (has_a && has_b)
      user_error("--{} and --{} are mutually exclusive ({}); drop one", a, b, why);
  };
  const bool prompt = map.count("prompt") > 0, exports = map.count("export") > 0;
  together("resume", line.options.resume, "fresh", line.options.fresh,
           "one resumes an earlier run, the other moves it aside");
  together("quiet", map["quiet"].as<bool>(), "verbose", map["verbose"].as<bool>(),
           "one shows less, the other more");
  together("prompt", prompt, "export", exports, "each is a task of its own");
  for (const char* name : {"export", "device"})
    if (map.count(name) && map[name].as<std::string>().empty())
      user_error("--{}: an empty name; {}", name,
                 name == std::string("export") ? "name the directory to make" : "set e.g. h100");
  if (map.count("quick") && line.quick < 1)
    user_error("--quick {}: a run has at least one step; set 1 or more", line.quick);
  if (line.deck.empty() && !line.help && !line.version && !line.list && line.compare.empty())
    user_error("no deck given; try: trainer quickstart, trainer --list, or trainer --help");
}

/// Replaces the name of a deck by its path; what was taken goes to the log.
void find(CommandLine& line) {
  if (line.deck.empty() || line.list || line.help || line.version) return;
  const std::string path = find_deck(line.deck).string();
  if (path != line.deck) line.taken = "deck: " + path;
  line.deck = path;
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  const po::options_description options = describe(line);
  const po::variables_map map =
      cli::parse({"trainer --help", options, {"deck"}}, cli::words_of(argc, argv));
  if (map.count("deck")) line.deck = map["deck"].as<std::string>();
  line.usage = (std::ostringstream() << usage << options << exit_codes).str();
  require_sense(line, map);
  if (map["quiet"].as<bool>()) line.options.verbosity = Verbosity::quiet;
  if (map["verbose"].as<bool>()) line.options.verbosity = Verbosity::verbose;
  // What --set and --quick change is compared between ranks in the deck.
  line.options.given = cli::given(options, map, {"set", "quick", "compare"});
  if (map.count("prompt")) set_prompt(line, map["prompt"].as<std::string>());
  if (map.count("refine"))
    line.set.push_back("generation.refine=" + std::to_string(map["refine"].as<int>()));
  find(line);
  return line;
}

std::vector<std::string> quick_overrides(const deck::Deck& deck, std::int64_t steps) {
  // The steps of epochs, or of hours, are unknown: intervals then scale with the longest one.
  const auto& c = deck.campaign;
  const std::int64_t from = c.epochs == 0 && !deck::timed(c)
                                ? c.max_steps
                                : std::max({steps, deck.evaluation.every, deck.checkpoint.every,
                                            deck.optimizer.warmup_steps});
  std::vector<std::string> set;
  const auto shrink = [&](const char* name, std::int64_t value, std::int64_t least) {
    if (value == 0 || from <= steps) return;
    const double length =
        static_cast<double>(value) * static_cast<double>(steps) / static_cast<double>(from);
    set.push_back(fmt::format("{}={}", name, std::max(least, static_cast<std::int64_t>(length))));
  };
  shrink("optimizer.warmup_steps", deck.optimizer.warmup_steps, 0);
  shrink("evaluation.every", deck.evaluation.every, (steps + 3) / 4);
  shrink("checkpoint.every", deck.checkpoint.every, (steps + 3) / 4);
  shrink("output.log_every", deck.output.log_every, 1);
  return set;
}

deck::Deck read_deck(const CommandLine& line, std::vector<std::string>* notes) {
  std::vector<std::string> set = line.set;
  if (line.quick > 0) {
    set = quick_overrides(deck::read(line.deck, line.set, weights::model_at), line.quick);
    set.insert(set.end(), line.set.begin(), line.set.end());  // explicit overrides are not scaled
    set.push_back("campaign.epochs=0");
    set.push_back(fmt::format("campaign.max_steps={}", line.quick));
  }
  deck::Deck deck = deck::read(line.deck, set, weights::model_at, notes);
  if (notes && !line.taken.empty()) notes->insert(notes->begin(), line.taken);
  return deck;
}

bool shows_without_deck(const CommandLine& line, std::ostream& out) {
  if (line.help)
    out << line.usage;
  else if (line.version)
    out << "tern " << version() << " (" << commit() << ")\n";
  else if (line.list)
    list(line.deck, out);
  else if (!line.compare.empty())
    out << report::compare(line.compare);
  return line.help || line.version || line.list || !line.compare.empty();
}

}  // namespace tern::campaign
