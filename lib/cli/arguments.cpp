#include "cli/arguments.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "words/suggestion.hpp"

namespace tern::cli {
namespace {

std::vector<std::string> names_of(const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& option : options.options()) names.push_back(option->long_name());
  return names;
}

/// "; did you mean --dry-run?", or nothing.
std::string suggestion(const std::string& word, const po::options_description& options) {
  const std::string name = word.substr(std::min(word.size(), word.find_first_not_of('-')));
  const std::string near = nearest(name.substr(0, name.find('=')), names_of(options));
  return near.empty() ? "" : fmt::format("; did you mean --{}?", near);
}

/// A value on one line.
std::string text_of(const po::variable_value& value) {
  if (const auto* text = boost::any_cast<std::string>(&value.value())) return on_one_line(*text);
  if (const auto* number = boost::any_cast<int>(&value.value())) return fmt::format("{}", *number);
  if (const auto* number = boost::any_cast<std::int64_t>(&value.value()))
    return fmt::format("{}", *number);
  if (const auto* number = boost::any_cast<double>(&value.value()))
    return fmt::format("{}", *number);
  TERN_REQUIRE(false, "an option of an unexpected type");
  return {};
}

po::variables_map parsed(const Syntax& syntax, const std::vector<std::string>& words) {
  po::options_description all;
  all.add(syntax.options);
  po::positional_options_description positional;
  for (const std::string& name : syntax.words) {
    all.add_options()(name.c_str(), po::value<std::string>());
    positional.add(name.c_str(), 1);
  }
  all.add_options()("further words", po::value<std::vector<std::string>>());
  positional.add("further words", -1);
  po::variables_map map;
  po::store(po::command_line_parser(words).options(all).positional(positional).run(), map);
  if (map.count("further words") > 0)
    user_error("'{}' is one word too many; {} takes {}; {} lists the options",
               on_one_line(map["further words"].as<std::vector<std::string>>().front()),
               syntax.help.substr(0, syntax.help.rfind(' ')),
               syntax.words.empty() ? "options only"
                                    : fmt::format("{} and options", fmt::join(syntax.words, ", ")),
               syntax.help);
  po::notify(map);
  return map;
}

}  // namespace

po::variables_map parse(const Syntax& syntax, const std::vector<std::string>& words) {
  const std::string& help = syntax.help;
  try {
    return parsed(syntax, words);
  } catch (const po::unknown_option& e) {
    user_error("{} is not an option{}; {} lists them", e.get_option_name(),
               suggestion(e.get_option_name(), syntax.options), help);
  } catch (const po::ambiguous_option& e) {
    user_error("{} may be more than one option: --{}; write it in full", e.get_option_name(),
               fmt::join(e.alternatives(), ", --"));
  } catch (const po::error& e) {
    user_error("{}; {} lists the options", e.what(), help);
  }
}

std::vector<std::string> given(const po::options_description& options, const po::variables_map& map,
                               const std::vector<std::string>& but) {
  std::vector<std::string> lines;
  for (const std::string& name : names_of(options)) {
    if (std::find(but.begin(), but.end(), name) != but.end()) continue;
    const auto found = map.find(name);
    const bool is = found != map.end() && !found->second.defaulted();
    const auto* flag = is ? boost::any_cast<bool>(&found->second.value()) : nullptr;
    lines.push_back(!is    ? fmt::format("no option --{}", name)
                    : flag ? fmt::format("the option --{}", name)
                           : fmt::format("--{} {}", name, text_of(found->second)));
  }
  return lines;
}

std::vector<std::string> words_of(int count, const char* const* argv) {
  return {argv + std::min(count, 1), argv + count};
}

}  // namespace tern::cli
