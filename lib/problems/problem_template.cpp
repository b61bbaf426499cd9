#include "problems/problem_template.hpp"

#include <algorithm>

namespace tern::problems {
namespace {

constexpr int tries = 200;
constexpr int decimals_allowed = 2;
constexpr std::int64_t growth = 10;  // of a result, at most

/// Number of like size: from half to twice as large, round if the original is; at least 2, so that
/// a plural stays one. Percentages stay below 100, years within a decade.
std::int64_t like(std::int64_t value, bool percent, Draw& draw) {
  if (value >= 1900 && value <= 2099) return value + draw.between(-10, 10);
  std::int64_t step = 1;
  for (const std::int64_t round : {1000, 500, 100, 50, 10, 5})
    if (step == 1 && value % round == 0 && value / round >= 2) step = round;
  const std::int64_t high = std::max<std::int64_t>(2 * value, 9);
  const std::int64_t low = std::max<std::int64_t>(value / 2, 2);
  const std::int64_t most = percent && value < 100 ? std::min<std::int64_t>(high, 95) : high;
  const auto first = static_cast<int>((low + step - 1) / step),
             last = static_cast<int>(most / step);
  return last < first ? value : step * draw.between(first, last);
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

/// Results of all calculations, if they are of the originals' kind.
std::optional<std::vector<Exact>> ProblemTemplate::results_of(
    const std::vector<Exact>& values) const {
  std::vector<Exact> results;
  for (std::size_t i = 0; i < expressions_.size(); ++i) {
    const Exact& original = results_[i];
    const Exact value = evaluate(expressions_[i], values, results);
    if (!value.valid() || value.sign() != original.sign()) return std::nullopt;
    const auto decimals = value.decimals();
    if (original.whole()
            ? !value.whole()
            : !decimals || *decimals > std::max(decimals_allowed, *original.decimals()))
      return std::nullopt;
    const Exact size = value.sign() < 0 ? Exact(0) - value : value;
    const Exact its = original.sign() < 0 ? Exact(0) - original : original;
    if (size > Exact(growth) * std::max(its, Exact(growth))) return std::nullopt;
    results.push_back(value);
  }
  return results;
}

std::optional<ProblemTemplate::Texts> ProblemTemplate::draw(Draw& draw) const {
  for (int i = 0; i < tries; ++i) {
    std::vector<Exact> values;
    for (const Variable& variable : values_) {
      Exact unit(1);
      for (int digit = 0; digit < variable.decimals; ++digit) unit = unit * Exact(10);
      const Exact scaled = variable.value * unit;
      values.push_back(variable.varies ? Exact(like(scaled.value(), variable.percent, draw)) / unit
                                       : variable.value);
    }
    if (const auto results = results_of(values))
      return Texts{render(question_, values, *results), render(answer_, values, *results)};
  }
  return std::nullopt;
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
