/// Problems with worked solutions: GSM8K (Cobbe et al., arXiv 2110.14168) and files like it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern::data {

struct Sample {
  std::string question;
  std::string plan;       // one step a line; may be empty
  std::string execution;  // one step a line; its last line is `#### ` and the answer
  std::string answer;     // normalised_number
  bool operator==(const Sample&) const = default;
};

/// Where plans come from. `data`: from the record, and by the skeleton rule where it has none.
/// `skeleton`: always by the rule (skeleton.hpp). `none`: plans are empty.
enum class PlanRule { data, skeleton, none };

/// Whether calculator notes `<<48/2=24>>` stay in executions.
enum class Notes { keep, drop };

/// Reads the samples of files of JSON lines, or of a JSON array, in the order of the files' names
/// (`patterns`: paths with wildcards). Each record is an object of one of these forms; other fields
/// are ignored:
///   {"question", "answer"}                  GSM8K; the answer's last line is `#### 72`
///   the same                                socratic, if each step of the answer is written
///                                           `sub-question ** step`: the sub-questions are the plan
///   {"question", "plan", "execution", "answer"}   the answer a number or a string; the execution
///                                           is given its last line if it has none; no "plan": none
/// Throws UserError with the file and the line or the record's index for a file or a field that is
/// missing, for JSON that cannot be read, and for an answer that is no number or not the one of the
/// execution.
std::vector<Sample> read_samples(const std::vector<std::string>& patterns,
                                 PlanRule rule = PlanRule::data, Notes notes = Notes::keep);

/// The number in its shortest decimal form: without commas, `$`, spaces, a period or zeros at its
/// end, zeros before it; "1,000" and "$1000.00" become "1000", "7.50" becomes "7.5", ".5" "0.5".
/// Nothing if the text is not one number. Digits are kept exactly, however many there are.
std::optional<std::string> normalised_number(std::string_view text);

/// The number after the last `####`, to the end of its line. Nothing if there is none: the text is
/// not a well-formed solution then.
std::optional<std::string> final_number(std::string_view text);

}  // namespace tern::data
