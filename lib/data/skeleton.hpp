/// Plans made from solutions, for training data without plans.
#pragma once
#include <string>
#include <string_view>

namespace tern::data {

/// The skeleton of a training solution: its steps, one per line, without numbers. At test time no
/// plan is given: the model writes it from the question.
///
/// The rule, in this order:
///   1. drop calculator notes `<<...>>` and lines that start with `####`;
///   2. replace each number (ASCII digits, with commas or points between digits) by `_`; signs
///      around it (currency, percent) and numbers in words stay;
///   3. squeeze runs of blanks to one space, trim lines, drop empty ones.
/// The plan is never longer than the solution and names the steps but no result.
///
/// Two examples, solution and plan:
///
///   Natalia sold 48/2 = <<48/2=24>>24 clips in May.
///   Natalia sold 48+24 = <<48+24=72>>72 clips in all.
///   #### 72
///     Natalia sold _/_ = _ clips in May.
///     Natalia sold _+_ = _ clips in all.
///
///   The repairs cost 80,000*1.5=$<<80000*1.5=120000>>120,000
///   So 25%  are   $30,000.
///   #### 30000
///     The repairs cost _*_=$_
///     So _% are $_.
std::string skeleton(std::string_view solution);

/// The text without calculator notes `<<...>>`; unclosed ones stay.
std::string without_notes(std::string_view text);

}  // namespace tern::data
