/// ./prepare: makes training data.
#include <iostream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/output.hpp"
#include "base/utf8.hpp"
#include "prepare/command.hpp"

namespace {

using namespace tern;

void make(prepare::PrepareCommand made) {
  Log log;
  const std::string& command = made.command;
  if (command == "quickstart") prepare::set_quickstart(made.arithmetic);
  if (command == "cpp-headers") prepare::set_cpp_headers(made.text);
  const bool shards = command == "text" || command == "cpp-headers";
  const auto& output = shards ? made.text.output : made.arithmetic.output;
  const bool once = command == "quickstart" || command == "cpp-headers" || command == "languages";
  if (once && !made.text.force && prepare::is_made(output, log))
    return;  // up to date; scripts may call this repeatedly
  if (shards)
    prepare::prepare_text(made.text, log);
  else if (command == "gsm8k")
    prepare::prepare_gsm8k(made.gsm8k, log);
  else if (command == "sentences")
    prepare::prepare_sentences(made.sentences, log);
  else if (command == "plans")
    prepare::prepare_plans(made.plans, log);
  else if (command == "languages")
    prepare::prepare_languages(made.languages, log);
  else
    prepare::prepare_arithmetic(made.arithmetic, log);
}

}  // namespace

int main(int count, char** words) {
  hold_standard_streams();
  try {
    const prepare::PrepareCommand made = prepare::parse_prepare_command(count, words);
    if (!made.command.empty()) {
      make(made);
      return 0;
    }
    std::cout << made.shown;
    return output_written() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "prepare: " << printable(error.what()) << '\n';
    return 1;
  }
}
