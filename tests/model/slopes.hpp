/// Gradients against finite differences of the loss.
#pragma once
#include <functional>

#include "model/harness.hpp"

namespace tern::test {

struct SlopeBounds {
  double step = 1e-4;         // h of the five-point difference, whose error is of fourth order
  double relative = 1e-7;     // of the root of the sum of (direction gradient)^2, and
  double absolute = 0;        // in addition: tolerance of a slope
  double least_gradient = 0;  // norm of each parameter's gradient
};

/// Compares the slope of the loss along a random direction of each parameter with the one from its
/// gradient, and returns the worst relative error.
///
/// master: the tree's span, which loss() reads; unchanged on return. gradient(name): at the values
/// now in master; called for all parameters before loss(), which may replace it.
inline double expect_slopes(const model::ParameterTree& tree, const Vector<double>& master,
                            const std::function<std::vector<double>(const std::string&)>& gradient,
                            const std::function<double()>& loss, const SlopeBounds& bounds = {}) {
  std::vector<std::vector<double>> gradients;
  for (const model::Parameter& p : tree.parameters()) gradients.push_back(gradient(p.name));
  std::mt19937 generator(4);
  std::normal_distribution<double> normal;
  double worst = 0;
  for (std::size_t n = 0; n < gradients.size(); ++n) {
    const model::Parameter& p = tree.parameters()[n];
    const Vector<double> values(master.data() + p.offset, p.count);
    const std::vector<double> start = download(values);
    EXPECT_GE(norm(gradients[n]), bounds.least_gradient) << p.name;
    std::vector<double> direction(p.count);
    double expected = 0, square = 0;
    for (std::size_t i = 0; i < p.count; ++i) {
      direction[i] = normal(generator);
      expected += direction[i] * gradients[n][i];
      square += std::pow(direction[i] * gradients[n][i], 2);
    }
    const auto loss_at = [&](double distance) {
      std::vector<double> moved = start;
      for (std::size_t i = 0; i < p.count; ++i) moved[i] += distance * direction[i];
      upload(moved, values);
      return loss();
    };
    const double h = bounds.step, near = loss_at(h) - loss_at(-h),
                 far = loss_at(2 * h) - loss_at(-2 * h), slope = (8 * near - far) / (12 * h);
    upload(start, values);
    EXPECT_NEAR(slope, expected, bounds.relative * std::sqrt(square) + bounds.absolute) << p.name;
    worst = std::max(worst, std::abs(slope - expected) / std::sqrt(square));
  }
  return worst;
}

}  // namespace tern::test
