/// The options of ./prepare.
#pragma once
#include <string>

#include "prepare/arithmetic.hpp"
#include "prepare/languages.hpp"
#include "prepare/prepare.hpp"

namespace tern::prepare {

struct PrepareCommand {
  std::string command;  // text, quickstart, ...; empty: only help is asked for
  std::string help;     // what --help prints
  PrepareOptions text;
  ArithmeticOptions arithmetic;
  LanguagesOptions languages;
};

/// Throws UserError for what is no option, is out of range, or is of another command.
PrepareCommand parse_prepare_command(int count, const char* const* words);

}  // namespace tern::prepare
