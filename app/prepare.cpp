/// ./prepare: data to train on.
#include <iostream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/output.hpp"
#include "data/prepare_command.hpp"

namespace {

using namespace tern;

void make(data::PrepareCommand made) {
  Log log;
  const std::string& command = made.command;
  if (command == "quickstart") data::set_quickstart(made.arithmetic);
  if (command == "cpp-headers") data::set_cpp_headers(made.text);
  const bool shards = command == "text" || command == "cpp-headers";
  const auto& output = shards ? made.text.output : made.arithmetic.output;
  const bool once = command != "text" && command != "arithmetic";
  if (once && !made.text.force && data::is_made(output, log))
    return;  // scripts ask again and again
  if (shards)
    data::prepare_text(made.text, log);
  else if (command == "languages")
    data::prepare_languages(made.languages, log);
  else
    data::prepare_arithmetic(made.arithmetic, log);
}

}  // namespace

int main(int count, char** words) {
  hold_standard_streams();
  try {
    const data::PrepareCommand made = data::parse_prepare_command(count, words);
    if (!made.command.empty()) {
      make(made);
      return 0;
    }
    std::cout << made.help;
    return output_written() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "prepare: " << error.what() << '\n';
    return 1;
  }
}
