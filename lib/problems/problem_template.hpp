/// A word problem with calculator notes, <<48/2=24>>, whose numbers are variables: other numbers
/// make another problem, with every result computed anew.
///
/// Numbers are traced by value. A number of the question is a variable if a calculation uses it;
/// 20% also stands for 0.2. Common constants (a week's days, an hour's minutes) and numbers in
/// words, dates, times, ordinals and fractions stay as they are.
///
/// A number that could be one of several (numbers of the question, results, constants) stays all of
/// them: they are bound to stay equal, so that a variant is right whichever it is. A 60
/// that may be a result or an hour's minutes stays 60, if the text says a word of time.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/draw.hpp"
#include "problems/exact_number.hpp"

namespace tern::problems {

/// Why a problem is no template.
enum class Untraced {
  none,            // it is one
  no_calculation,  // calculations, or the answer, without a calculator note
  expression,      // a note that is no arithmetic, or does not give its result exactly
  unknown,         // an operand, or a number in the text, that comes from nowhere
  ambiguous,       // a number that could be one of several, with no other numbers that fit all
  fixed,           // no number that may vary
  rigid            // no other numbers that fit
};
const char* name_of(Untraced reason);

class ProblemTemplate {
 public:
  /// The template of a problem, or the reason why there is none.
  static Untraced trace(std::string_view question, std::string_view answer,
                        ProblemTemplate& result);

  struct Texts {
    std::string question, answer;
  };
  std::size_t variables() const;  // that vary
  /// The problem with other numbers of like size. Whole results stay whole, positive ones positive;
  /// decimals do not get longer than two or than they were. Empty after many tries.
  std::optional<Texts> draw(Draw& draw) const;
  /// With its own numbers: the original texts.
  Texts original() const;

 private:
  friend class Tracer;

  /// What a number is, by an index into constants, variables, or results of calculations.
  struct Symbol {
    enum class Kind { constant, variable, percent, result } kind;
    std::size_t index;
    bool operator==(const Symbol&) const = default;
  };
  /// Text, then a number written in its style.
  struct Piece {
    std::string before;
    Symbol symbol;
    bool commas, leading_point;  // 1,000; .5
    int decimals;                // at least: 2 in 1.50
  };
  struct Text {
    std::vector<Piece> pieces;
    std::string end;
  };
  /// Expression in the order written: numbers, operators and parentheses.
  struct Token {
    char sign;  // 0: the number `symbol`
    Symbol symbol;
  };
  struct Variable {
    Exact value;
    int decimals;
    bool percent, varies;
  };
  using Expression = std::vector<Token>;
  /// Two numbers that are equal, and of which the text may mean either: they stay equal.
  struct Binding {
    Symbol one, other;
  };

  Exact at(const Symbol& symbol, const std::vector<Exact>& values,
           const std::vector<Exact>& results) const;
  Exact evaluate(const Expression& expression, const std::vector<Exact>& values,
                 const std::vector<Exact>& results) const;
  std::vector<Exact> compute(const std::vector<Exact>& values) const;
  bool like_originals(const std::vector<Exact>& results) const;
  Exact distance(const Binding& binding, const std::vector<Exact>& values) const;
  std::optional<Exact> solve(const Binding& binding, std::vector<Exact> values,
                             std::size_t variable) const;
  bool bind(std::vector<Exact>& values, Draw& draw) const;
  bool has_variants() const;
  std::string render(const Text& text, const std::vector<Exact>& values,
                     const std::vector<Exact>& results) const;

  std::vector<Exact> constants_;
  std::vector<Variable> values_;  // of the original
  std::vector<Expression> expressions_;
  std::vector<Exact> results_;
  std::vector<Binding> bindings_;
  Text question_, answer_;
};

}  // namespace tern::problems
