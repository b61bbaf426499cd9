/// A plan made from a solution, for training data that have none.
#pragma once
#include <string>
#include <string_view>

namespace tern::data {

/// The skeleton of a training solution: its steps, one a line, without their numbers. At test time
/// a plan is never given: the model writes it from the question.
///
/// The rule, in this order:
///   1. calculator notes `<<...>>` are dropped, and so are lines that start with `####`;
///   2. each number (ASCII digits, with commas or points between digits) becomes `_`; signs around
///      it, as of a currency or percent, stay, and so do numbers in words;
///   3. runs of blanks become one space, those at the ends of lines and empty lines go.
/// So the plan is never longer than the solution, and tells which steps to take but no result.
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

/// The text without calculator notes `<<...>>`; an unclosed one stays.
std::string without_notes(std::string_view text);

}  // namespace tern::data
