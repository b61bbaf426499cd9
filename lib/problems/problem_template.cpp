#include "problems/problem_template.hpp"

#include <algorithm>

namespace tern::problems {
namespace {

constexpr int tries = 200;
constexpr std::uint32_t most_trials = 100;  // for a first variant
constexpr int decimals_allowed = 2;
constexpr std::int64_t growth = 10;  // of a result, at most

/// Multiples of `step` from `low` to `high`.
struct Range {
  std::int64_t low, high, step;
};

/// Numbers of like size: from half to twice as large, round if the original is; at least 2, so that
/// a plural stays one. Percentages stay below 100, years within a decade.
Range like(std::int64_t value, bool percent) {
  if (value >= 1900 && value <= 2099) return {value - 10, value + 10, 1};
  std::int64_t step = 1;
  for (const std::int64_t round : {1000, 500, 100, 50, 10, 5})
    if (step == 1 && value % round == 0 && value / round >= 2) step = round;
  const std::int64_t high = std::max<std::int64_t>(2 * value, 9);
  const std::int64_t low = std::max<std::int64_t>(value / 2, 2);
  const std::int64_t most = percent && value < 100 ? std::min<std::int64_t>(high, 95) : high;
  return {(low + step - 1) / step * step, most / step * step, step};
}

Exact power_of_ten(int n) {
  Exact power(1);
  for (; n > 0; --n) power = power * Exact(10);
  return power;
}

}  // namespace

const char* name_of(Untraced reason) {
  switch (reason) {
    case Untraced::none:
      return "traced";
    case Untraced::no_calculation:
      return "with a calculation without a note";
    case Untraced::expression:
      return "with a note that is not exact";
    case Untraced::unknown:
      return "with a number from nowhere";
    case Untraced::ambiguous:
      return "with a number that could be one of several";
    case Untraced::fixed:
      return "with constants only";
    case Untraced::rigid:
      return "that no other numbers fit";
  }
  return "";
}

Exact ProblemTemplate::at(const Symbol& symbol, const std::vector<Exact>& values,
                          const std::vector<Exact>& results) const {
  switch (symbol.kind) {
    case Symbol::Kind::constant:
      return constants_[symbol.index];
    case Symbol::Kind::variable:
      return values[symbol.index];
    case Symbol::Kind::percent:
      return values[symbol.index] / Exact(100);
    case Symbol::Kind::result:
      return results[symbol.index];
  }
  return {};
}

Exact ProblemTemplate::evaluate(const Expression& expression, const std::vector<Exact>& values,
                                const std::vector<Exact>& results) const {
  const Exact invalid = Exact(1) / Exact(0);
  std::size_t next = 0;
  const auto sign = [&] { return next < expression.size() ? expression[next].sign : ')'; };
  // Recursive descent: a sum of products of factors.
  const auto sum = [&](const auto& self) -> Exact {
    const auto factor = [&](const auto& again) -> Exact {
      if (next >= expression.size()) return invalid;
      const Token& token = expression[next++];
      if (token.sign == 0) return at(token.symbol, values, results);
      if (token.sign == '-') return Exact(0) - again(again);
      if (token.sign != '(') return invalid;
      const Exact inner = self(self);
      return next < expression.size() && expression[next++].sign == ')' ? inner : invalid;
    };
    const auto product = [&] {
      Exact value = factor(factor);
      while (sign() == '*' || sign() == '/') {
        const bool times = expression[next++].sign == '*';
        const Exact right = factor(factor);
        value = times ? value * right : value / right;
      }
      return value;
    };
    Exact value = product();
    while (sign() == '+' || sign() == '-') {
      const bool plus = expression[next++].sign == '+';
      const Exact right = product();
      value = plus ? value + right : value - right;
    }
    return value;
  };
  const Exact value = sum(sum);
  return next == expression.size() ? value : invalid;
}

/// Results of all calculations; a division by zero makes invalid ones.
std::vector<Exact> ProblemTemplate::compute(const std::vector<Exact>& values) const {
  std::vector<Exact> results;
  for (const Expression& expression : expressions_)
    results.push_back(evaluate(expression, values, results));
  return results;
}

/// Whether results are of the originals' kind.
bool ProblemTemplate::like_originals(const std::vector<Exact>& results) const {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Exact &original = results_[i], &value = results[i];
    if (!value.valid() || value.sign() != original.sign()) return false;
    const auto decimals = value.decimals();
    if (original.whole()
            ? !value.whole()
            : !decimals || *decimals > std::max(decimals_allowed, *original.decimals()))
      return false;
    const Exact size = value.sign() < 0 ? Exact(0) - value : value;
    const Exact its = original.sign() < 0 ? Exact(0) - original : original;
    if (size > Exact(growth) * std::max(its, Exact(growth))) return false;
  }
  return true;
}

/// How far apart two bound numbers are.
Exact ProblemTemplate::distance(const Binding& binding, const std::vector<Exact>& values) const {
  const std::vector<Exact> results = compute(values);
  return at(binding.one, values, results) - at(binding.other, values, results);
}

/// The value of a variable that makes two bound numbers equal, the other variables given: by a
/// secant, since their distance is linear in most variables or in their reciprocals.
std::optional<Exact> ProblemTemplate::solve(const Binding& binding, std::vector<Exact> values,
                                            std::size_t variable) const {
  const auto distance_at = [&](const Exact& value) {
    values[variable] = value;
    return distance(binding, values);
  };
  const Exact one = values[variable], two = one + Exact(1);
  const Exact at_one = distance_at(one), at_two = distance_at(two);
  const auto root = [&](const Exact& a, const Exact& b) {
    return a - at_one * (b - a) / (at_two - at_one);
  };
  const Exact inverse = root(Exact(1) / one, Exact(1) / two);
  for (const Exact& value : {root(one, two), Exact(1) / inverse})
    if (value.valid() && distance_at(value) == Exact(0)) return value;
  return std::nullopt;
}

/// Changes variables, each for one binding, until bound numbers are equal. False if that needs a
/// number of another size, or fails.
bool ProblemTemplate::bind(std::vector<Exact>& values, Draw& draw) const {
  std::vector<bool> used(values.size());
  const auto fits = [&](std::size_t variable, const Exact& value) {
    const Exact unit = power_of_ten(values_[variable].decimals), scaled = value * unit;
    const Range range = like((values_[variable].value * unit).value(), values_[variable].percent);
    return scaled.whole() && scaled.value() >= range.low && scaled.value() <= range.high;
  };
  const auto settle = [&](const Binding& binding) {
    const auto first = static_cast<std::size_t>(draw.below(static_cast<int>(values.size())));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t variable = (first + i) % values.size();
      if (used[variable] || !values_[variable].varies) continue;
      const auto value = solve(binding, values, variable);
      if (!value || !fits(variable, *value)) continue;
      values[variable] = *value;
      return used[variable] = true, true;
    }
    return false;
  };
  const auto holds = [&](const Binding& b) { return distance(b, values) == Exact(0); };
  for (const Binding& binding : bindings_)
    if (!holds(binding) && !settle(binding)) return false;
  return std::all_of(bindings_.begin(), bindings_.end(), holds);
}

std::optional<ProblemTemplate::Texts> ProblemTemplate::draw(Draw& draw) const {
  for (int i = 0; i < tries; ++i) {
    std::vector<Exact> values;
    for (const Variable& variable : values_) {
      values.push_back(variable.value);
      if (!variable.varies) continue;
      const Exact unit = power_of_ten(variable.decimals);
      const Range range = like((variable.value * unit).value(), variable.percent);
      const auto numbers = static_cast<int>((range.high - range.low) / range.step + 1);
      values.back() = Exact(range.low + range.step * draw.below(numbers)) / unit;
    }
    if (!bind(values, draw)) continue;
    const std::vector<Exact> results = compute(values);
    if (like_originals(results))
      return Texts{render(question_, values, results), render(answer_, values, results)};
  }
  return std::nullopt;
}

bool ProblemTemplate::has_variants() const {
  const std::string own = original().question;
  for (std::uint32_t i = 0; i < most_trials; ++i) {
    Draw draw(0, 0, i);
    const auto texts = this->draw(draw);
    if (!texts || texts->question != own) return texts.has_value();
  }
  return false;
}

ProblemTemplate::Texts ProblemTemplate::original() const {
  std::vector<Exact> values;
  for (const Variable& variable : values_) values.push_back(variable.value);
  return {render(question_, values, results_), render(answer_, values, results_)};
}

std::size_t ProblemTemplate::variables() const {
  return static_cast<std::size_t>(
      std::count_if(values_.begin(), values_.end(), [](const Variable& v) { return v.varies; }));
}

std::string ProblemTemplate::render(const Text& text, const std::vector<Exact>& values,
                                    const std::vector<Exact>& results) const {
  std::string all;
  for (const Piece& piece : text.pieces) {
    std::string number = at(piece.symbol, values, results).text(piece.commas, piece.decimals);
    if (piece.leading_point && number.starts_with("0.")) number.erase(0, 1);
    all += piece.before + number;
  }
  return all + text.end;
}

}  // namespace tern::problems
