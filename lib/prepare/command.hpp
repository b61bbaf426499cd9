/// The command line of ./prepare: a command and its options.
#pragma once
#include <string>

#include "prepare/arithmetic.hpp"
#include "prepare/gsm8k.hpp"
#include "prepare/languages.hpp"
#include "prepare/plans.hpp"
#include "prepare/prepare.hpp"
#include "prepare/sentences.hpp"

namespace tern::prepare {

struct PrepareCommand {
  std::string command;  // text, quickstart, ...; empty: only `shown`
  std::string shown;    // by --help or --version
  PrepareOptions text;
  ArithmeticOptions arithmetic;
  LanguagesOptions languages;
  Gsm8kOptions gsm8k;
  SentencesOptions sentences;
  PlansOptions plans;
};

/// Throws UserError for unknown commands and options, values out of range, and options of another
/// command.
PrepareCommand parse_prepare_command(int count, const char* const* words);

}  // namespace tern::prepare
