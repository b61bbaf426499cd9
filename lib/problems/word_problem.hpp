/// Arithmetic word problem drawn from templates.
#pragma once
#include <string>
#include <vector>

#include "base/draw.hpp"

namespace tern::problems {

struct WordProblem {
  std::string question;
  std::vector<std::string> sub_questions, steps;  // equal in number; steps with calculator notes
  int answer = 0;
};

/// Problem of `steps` >= 1 steps: a person's number of things and changes of it. All quantities and
/// results are from 2 to 99.
WordProblem draw_problem(std::size_t steps, Draw& draw);

}  // namespace tern::problems
