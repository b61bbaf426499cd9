/// The commands of ./prepare: what they take and what their help says.
#pragma once
#include <span>

#include "cli/arguments.hpp"
#include "prepare/command.hpp"

namespace tern::prepare::detail {

/// What --help says of a command.
struct CommandText {
  const char* name;
  const char* arguments;  // after the name, in the usage
  const char* summary;    // a line for the list of commands
  const char* text;       // sentences
  const char* examples;   // lines; may be empty
};

/// In the order of the list.
std::span<const CommandText> command_texts();

/// The parsed command, and raw values converted after parsing.
struct Words {
  PrepareCommand made;
  std::string format = "auto", pattern = "gpt2";
  double shard_tokens = 100e6, train_bytes = 500e6;
};

/// The options of a command, bound to `words`, which must outlive them.
cli::po::options_description options_of(const std::string& command, Words& words);

}  // namespace tern::prepare::detail
