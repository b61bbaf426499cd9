/// All gradients of a model compared with those of a golden file.
#pragma once
#include <cmath>
#include <string>

#include "golden/golden.hpp"
#include "model/harness.hpp"

namespace tern::test {

struct GradientErrors {
  double all = 0, worst = 0;  // relative: of all parameters together, and of the worst one
  std::string name;           // name of the worst
};

/// scale_of(parameter's name): the norm to which its error is relative.
template <class T, class ScaleOf>
GradientErrors gradient_errors(const Harness<T>& model, const Golden& golden,
                               const ScaleOf& scale_of) {
  GradientErrors errors;
  double difference = 0, size = 0;
  for (const model::Parameter& p : model.tree.parameters()) {
    const std::vector<double> expected = golden.numbers("gradients/" + p.name);
    const double distance = test::distance(model.gradient(p.name), expected);
    difference += distance * distance;
    size += std::pow(norm(expected), 2);
    const double error = distance / scale_of(p.name);
    if (error > errors.worst) errors.worst = error, errors.name = p.name;
  }
  errors.all = std::sqrt(difference / size);
  return errors;
}

}  // namespace tern::test
