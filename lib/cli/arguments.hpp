/// The words of a command line, taken apart by Boost.Program_options; mistakes in plain words.
#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

namespace tern::cli {

namespace po = boost::program_options;

/// What a program, or a command of one, takes.
struct Syntax {
  std::string help;                        // what lists the options, e.g. "trainer --help"
  const po::options_description& options;  // shown by --help
  std::vector<std::string> words;          // names of the words that are not options, in this order
};

/// UserError if a word is no option (with the nearest one), has a wrong value or lacks one, or if
/// there are more words than names. `words`: without the program's name. Words are in the result
/// by their names. Calls the options' notifiers.
po::variables_map parse(const Syntax& syntax, const std::vector<std::string>& words);

/// A line for each option: what was given, or that it was not; for comparison between ranks.
/// `but`: options left out.
std::vector<std::string> given(const po::options_description& options, const po::variables_map& map,
                               const std::vector<std::string>& but = {});

/// Words of argv after the program's name.
std::vector<std::string> words_of(int count, const char* const* argv);

}  // namespace tern::cli
