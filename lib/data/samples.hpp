/// Problems with worked solutions: GSM8K (Cobbe et al., arXiv 2110.14168) and similar files.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deck/choices.hpp"

namespace tern::data {

struct Sample {
  std::string question;
  std::string plan;       // one step per line; may be empty
  std::string execution;  // one step per line; the last line is `#### ` and the answer
  std::string answer;     // normalized_number
  bool operator==(const Sample&) const = default;
};

using deck::PlanRule;

/// Whether executions keep calculator notes `<<48/2=24>>`.
enum class Notes { keep, drop };

/// Reads samples from files of JSON lines or of one JSON array, in the order of file names
/// (`patterns`: paths with wildcards). Each record is an object of one of these forms; other fields
/// are ignored:
///
///   {"question", "answer"}
///       GSM8K: the answer's last line is `#### 72`. Socratic if each step of the answer is
///       `sub-question ** step`: the sub-questions are the plan.
///   {"question", "plan", "execution", "answer"}
///       The answer is a number or a string; "plan" is optional, and so is one of "answer" and the
///       execution's last line `#### 72`.
///
/// Throws UserError with the file and the line or the record's index for missing files and fields,
/// invalid JSON, and answers that are no number or differ from the execution's.
std::vector<Sample> read_samples(const std::vector<std::string>& patterns,
                                 PlanRule rule = PlanRule::data, Notes notes = Notes::keep);

/// The number in its shortest decimal form, without commas, `$`, spaces, leading and trailing zeros
/// or a trailing period: "1,000" and "$1000.00" become "1000", "7.50" becomes "7.5", ".5" becomes
/// "0.5". Digits are exact, of any number. Empty if the text is not one number.
std::optional<std::string> normalized_number(std::string_view text);

/// The number after the last `####`, to the end of its line. Empty if there is none: the text is
/// then no well-formed solution.
std::optional<std::string> final_number(std::string_view text);

}  // namespace tern::data
