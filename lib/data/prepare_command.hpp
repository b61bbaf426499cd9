/// The options of ./prepare.
#pragma once
#include <string>

#include "data/arithmetic.hpp"
#include "data/languages.hpp"
#include "data/prepare.hpp"

namespace tern::data {

struct PrepareCommand {
  std::string command;  // text, quickstart, ...; empty: only help is asked for
  std::string help;     // what --help prints
  PrepareOptions text;
  ArithmeticOptions arithmetic;
  LanguagesOptions languages;
};

/// Throws UserError for what is no option, is out of range, or is of another command.
PrepareCommand parse_prepare_command(int count, const char* const* words);

}  // namespace tern::data
