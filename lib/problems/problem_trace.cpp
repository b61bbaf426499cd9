// Tracing of a problem's numbers: ProblemTemplate::trace().
#include <algorithm>
#include <array>

#include "problems/detail/number_scan.hpp"
#include "problems/problem_template.hpp"

namespace tern::problems {

using detail::NumberInText, detail::NumbersIn, detail::numbers_in_words, detail::scan_numbers;
using detail::small_letters;

namespace {

/// Beginnings of the words without which a common constant is not meant; other constants may be
/// anywhere.
const std::vector<std::string_view>* words_of_constant(const Exact& value) {
  static const std::vector<std::pair<Exact, std::vector<std::string_view>>> all{
      {7, {"week", "day", "dail"}},
      {12, {"dozen", "month", "year", "annual", "inch", "foot", "feet", "hour", "clock", "noon"}},
      {24, {"hour", "day", "dail", "dozen"}},
      {30, {"month", "day", "dail", "hour", "minute", "april", "june", "september", "november"}},
      {52, {"week", "year", "annual", "card", "deck"}},
      {60, {"minute", "hour", "second"}},
      {100, {"percent", "%", "cent", "$", "dollar", "buck", "penn", "meter", "hundred"}},
      {365, {"day", "dail", "year", "annual"}}};
  for (const auto& [constant, words] : all)
    if (constant == value) return &words;
  return nullptr;
}

}  // namespace

class Tracer {
  using Symbol = ProblemTemplate::Symbol;
  using Kind = Symbol::Kind;
  using Text = ProblemTemplate::Text;

 public:
  Tracer(std::string_view question, std::string_view answer, ProblemTemplate& to)
      : question_(question),
        answer_(answer),
        small_letters_(small_letters(question) + '\n' + small_letters(answer)),
        written_(numbers_in_words(answer)),
        to_(to) {}

  Untraced run() {
    find_variables();
    read_notes();
    if (failure_ != Untraced::none) return failure_;
    if (notes_.empty() || calculates_without_note()) return Untraced::no_calculation;
    write_question();
    write_answer();
    if (failure_ != Untraced::none) return failure_;
    if (to_.variables() == 0) return Untraced::fixed;
    if (to_.has_variants()) return Untraced::none;
    return to_.bindings_.empty() ? Untraced::rigid : Untraced::ambiguous;
  }

 private:
  /// A calculator note: its place in the answer, its operands and its result.
  struct Note {
    std::size_t begin, end, equals;
    std::vector<NumberInText> operands;
    std::vector<Symbol> symbols;
    NumberInText result;
  };
  struct Known {
    Exact value;
    Symbol symbol;
  };

  void fail(Untraced reason) {
    if (failure_ == Untraced::none) failure_ = reason;
  }

  static bool common(const Exact& value) {
    static const std::array<Exact, 13> all{0,  1,  2,  7,   10,  12,         24,
                                           30, 52, 60, 100, 365, Exact(1, 2)};
    return std::find(all.begin(), all.end(), value) != all.end();
  }

  Symbol constant(const Exact& value) {
    const auto found = std::find(to_.constants_.begin(), to_.constants_.end(), value);
    const auto index = static_cast<std::size_t>(found - to_.constants_.begin());
    if (found == to_.constants_.end()) to_.constants_.push_back(value);
    return {Kind::constant, index};
  }

  void know(const Exact& value, const Symbol& symbol) {
    for (const Known& known : known_)
      if (known.symbol == symbol) return;
    known_.push_back({value, symbol});
  }

  /// Where a result is 100, say, a later 100 may be it or the constant.
  void know_result(std::size_t index, const Exact& value) {
    know(value, {Kind::result, index});
    if (common(value) && may_be_meant(value)) know(value, constant(value));
  }

  bool may_be_meant(const Exact& constant) const {
    const auto* words = words_of_constant(constant);
    return !words || std::any_of(words->begin(), words->end(), [&](std::string_view word) {
      return small_letters_.find(word) != std::string::npos;
    });
  }

  void mention(const Exact& value) {
    know(value, constant(value));
    mentioned_.push_back(value);
  }

  bool mentioned(const Exact& value) const {
    return std::find(mentioned_.begin(), mentioned_.end(), value) != mentioned_.end();
  }

  /// Whether an operand stands between + and -.
  static bool is_summand(std::string_view text, const NumberInText& number) {
    const auto sums = [](char c) { return c == '+' || c == '-'; };
    const std::size_t before = text.substr(0, number.begin).find_last_not_of(' ');
    const std::size_t after = text.find_first_not_of(' ', number.end);
    const bool left = before == std::string_view::npos || sums(text[before]);
    return left && (after == std::string_view::npos || sums(text[after]));
  }

  /// What a number may be. A summand is rather a result than a constant that no text mentions,
  /// other than 100 (percent).
  std::vector<Symbol> look_up(const Exact& value, bool summand = false) {
    std::vector<Symbol> found;
    for (const Known& known : known_)
      if (known.value == value) found.push_back(known.symbol);
    if (summand && found.size() > 1 && value != 100 && !mentioned(value))
      std::erase_if(found, [](const Symbol& s) { return s.kind == Kind::constant; });
    if (found.empty() && !common(value)) fail(Untraced::unknown);
    if (found.empty()) found.push_back(constant(value));
    return found;
  }

  /// One of several symbols that have a number's value: bound to the others, whichever it is.
  Symbol one_of(const std::vector<Symbol>& all) {
    for (const Symbol& other : all)
      if (other != all.front()) to_.bindings_.push_back({all.front(), other});
    return all.front();
  }

  void find_variables() {
    const auto numbers = scan_numbers(question_, NumbersIn::prose);
    std::vector<Exact> fixed = numbers_in_words(question_);
    fixed.insert(fixed.end(), written_.begin(), written_.end());
    for (const NumberInText& a : numbers) {
      if (!a.value.valid()) return fail(Untraced::unknown);
      bool stays = a.part || common(a.value);
      for (const NumberInText& b : numbers)  // two meanings
        stays = stays || (a.value == b.value && a.percent != b.percent);
      if (stays) fixed.push_back(a.value);
    }
    for (const Exact& value : fixed) mention(value);
    for (const NumberInText& a : numbers) {
      if (std::find(fixed.begin(), fixed.end(), a.value) != fixed.end()) {
        if (a.percent) mention(a.value / Exact(100));
        continue;
      }
      add_variable(a);
    }
  }

  void add_variable(const NumberInText& number) {
    for (auto& variable : to_.values_)
      if (variable.value == number.value) {
        variable.decimals = std::max(variable.decimals, *number.value.decimals());
        return;
      }
    if (!number.value.decimals()) return fail(Untraced::unknown);
    const std::size_t index = to_.values_.size();
    to_.values_.push_back({number.value, *number.value.decimals(), number.percent, false});
    know(number.value, {Kind::variable, index});
    if (number.percent) know(number.value / Exact(100), {Kind::percent, index});
  }

  // ---- calculator notes ----

  void read_notes() {
    for (std::size_t at = 0; (at = answer_.find("<<", at)) != std::string_view::npos;) {
      const std::size_t end = answer_.find(">>", at);
      if (end == std::string_view::npos) return fail(Untraced::expression);
      read_note(at + 2, end);
      if (failure_ != Untraced::none) return;
      at = end;
    }
  }

  void read_note(std::size_t begin, std::size_t end) {
    const std::string_view inside = answer_.substr(begin, end - begin);
    const std::size_t equals = inside.find('=');
    const auto results = equals == std::string_view::npos
                             ? std::vector<NumberInText>()
                             : scan_numbers(inside.substr(equals + 1), NumbersIn::calculation);
    if (results.size() != 1 || results[0].begin != 0 ||
        results[0].end != inside.size() - equals - 1 || !results[0].value.valid())
      return fail(Untraced::expression);
    Note note{begin, end, begin + equals, {}, {}, results[0]};
    note.result.begin += note.equals + 1;
    note.result.end += note.equals + 1;
    read_expression(inside.substr(0, equals), note);
    if (failure_ != Untraced::none) return;
    std::vector<Exact> values;
    for (const auto& variable : to_.values_) values.push_back(variable.value);
    if (to_.evaluate(to_.expressions_.back(), values, to_.results_) != note.result.value)
      return fail(Untraced::expression);
    if (note.result.value != 1 &&
        std::find(written_.begin(), written_.end(), note.result.value) != written_.end())
      // "the five friends" may be this result
      to_.bindings_.push_back({{Kind::result, to_.results_.size()}, constant(note.result.value)});
    know_result(to_.results_.size(), note.result.value);
    to_.results_.push_back(note.result.value);
    notes_.push_back(std::move(note));
  }

  void read_expression(std::string_view text, Note& note) {
    ProblemTemplate::Expression expression;
    std::size_t at = 0;
    const auto signs = [&](std::size_t end) {
      for (; at < end; ++at) {
        if (text[at] == ' ') continue;
        if (std::string_view("+-*/()").find(text[at]) == std::string_view::npos)
          return fail(Untraced::expression);
        expression.push_back({text[at], {}});
      }
    };
    for (NumberInText& number : scan_numbers(text, NumbersIn::calculation)) {
      if (number.part || !number.value.valid()) return fail(Untraced::expression);
      signs(number.begin);
      const std::vector<Symbol> candidates = look_up(number.value, is_summand(text, number));
      for (const Symbol& s : candidates)
        if (s.kind == Kind::variable || s.kind == Kind::percent) to_.values_[s.index].varies = true;
      const Symbol symbol = one_of(candidates);
      expression.push_back({0, symbol});
      at = number.end;
      number.begin += note.begin;
      number.end += note.begin;
      note.operands.push_back(number);
      note.symbols.push_back(symbol);
    }
    signs(text.size());
    to_.expressions_.push_back(std::move(expression));
  }

  /// Whether an equals sign outside of notes has a number behind it, rather than a note.
  bool calculates_without_note() const {
    std::size_t note = 0;
    for (std::size_t at = 0; (at = answer_.find('=', at)) != std::string_view::npos; ++at) {
      while (note < notes_.size() && notes_[note].end < at) ++note;
      if (note < notes_.size() && at >= notes_[note].begin) continue;
      const std::size_t next = answer_.find_first_not_of(" $=-", at);
      if (next != std::string_view::npos && answer_.substr(next, 2) != "<<") return true;
    }
    return false;
  }

  // ---- texts ----

  /// Appends the text up to a number, and the number, unless it is a constant.
  void append(Text& to, std::string_view text, std::size_t& at, const NumberInText& number,
              const Symbol& symbol) {
    if (symbol.kind == Kind::constant) return;
    const int needed = number.value.decimals().value_or(0);
    to.pieces.push_back({std::string(text.substr(at, number.begin - at)), symbol, number.commas,
                         number.leading_point, number.decimals > needed ? number.decimals : 0});
    at = number.end;
  }

  void write_question() {
    std::size_t at = 0;
    for (const NumberInText& number : scan_numbers(question_, NumbersIn::prose))
      for (std::size_t i = 0; i < to_.values_.size() && !number.part; ++i)
        if (to_.values_[i].value == number.value && to_.values_[i].varies)
          append(to_.question_, question_, at, number, {Kind::variable, i});
    to_.question_.end = question_.substr(at);
  }

  /// Results are known from their line on: "He has 32 since 2 x 16 = <<2*16=32>>32".
  void write_answer() {
    std::erase_if(known_, [](const Known& k) { return k.symbol.kind == Kind::result; });
    std::size_t at = 0, note = 0, line = 0;
    for (const NumberInText& number : scan_numbers(answer_, NumbersIn::calculation)) {
      if (number.begin >= line) {
        line = std::min(answer_.find('\n', number.begin), answer_.size());
        know_results(line);
      }
      while (note < notes_.size() && number.begin >= notes_[note].end + 2 + follows(note)) ++note;
      append(to_.answer_, answer_, at, number, symbol_of(number, note));
      if (failure_ != Untraced::none) return;
    }
    to_.answer_.end = answer_.substr(at);
  }

  void know_results(std::size_t until) {
    for (std::size_t i = 0; i < notes_.size(); ++i)
      if (notes_[i].begin < until) know_result(i, to_.results_[i]);
  }

  /// Length of the result repeated right behind a note.
  std::size_t follows(std::size_t note) const {
    const std::string_view rest = answer_.substr(notes_[note].end + 2);
    for (const NumberInText& number : scan_numbers(rest.substr(0, 32), NumbersIn::calculation))
      if (number.begin == 0 && number.value == notes_[note].result.value) return number.end;
    return 0;
  }

  Symbol symbol_of(const NumberInText& number, std::size_t next) {
    if (next < notes_.size() && number.begin >= notes_[next].begin) {
      const Note& note = notes_[next];
      if (number.begin > note.equals) return {Kind::result, next};
      for (std::size_t i = 0; i < note.operands.size(); ++i)
        if (note.operands[i].begin == number.begin) return note.symbols[i];
    }
    const std::size_t marks = answer_.rfind("####");
    if (marks != std::string_view::npos && number.begin > marks) return final_answer(number);
    const Symbol symbol = symbol_in_text(number);
    if (number.part && symbol.kind != Kind::constant) fail(Untraced::unknown);
    return symbol;
  }

  /// The last result if it has the answer's value, else any that has.
  Symbol final_answer(const NumberInText& number) {
    std::vector<Symbol> found;
    for (std::size_t i = to_.results_.size(); i-- > 0;)
      if (to_.results_[i] == number.value) found.push_back({Kind::result, i});
    if (found.empty()) return fail(Untraced::no_calculation), constant(number.value);
    return found.front().index + 1 == to_.results_.size() ? found.front() : one_of(found);
  }

  /// A number beside a note is what it is in the note, if it is one thing there.
  std::optional<Symbol> in_line(const NumberInText& number) const {
    const std::size_t before = answer_.rfind('\n', number.begin);
    const std::size_t begin = before == std::string_view::npos ? 0 : before;
    const std::size_t end = answer_.find('\n', number.begin);
    std::optional<Symbol> found;
    const auto take = [&](const Exact& value, const Symbol& symbol) {
      if (value != number.value) return true;
      if (found && *found != symbol) return false;
      found = symbol;
      return true;
    };
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      if (notes_[i].begin < begin || notes_[i].begin > end) continue;
      for (std::size_t j = 0; j < notes_[i].operands.size(); ++j)
        if (!take(notes_[i].operands[j].value, notes_[i].symbols[j])) return std::nullopt;
      if (!take(to_.results_[i], {Kind::result, i})) return std::nullopt;
    }
    return found;
  }

  Symbol symbol_in_text(const NumberInText& number) {
    const auto found = in_line(number);
    return found ? *found : one_of(look_up(number.value));
  }

  std::string_view question_, answer_;
  std::string small_letters_;   // of both texts
  std::vector<Exact> written_;  // numbers that the answer writes as words
  ProblemTemplate& to_;
  std::vector<Known> known_;
  std::vector<Exact> mentioned_;  // constants that the texts mention
  std::vector<Note> notes_;
  Untraced failure_ = Untraced::none;
};

Untraced ProblemTemplate::trace(std::string_view question, std::string_view answer,
                                ProblemTemplate& result) {
  result = {};
  return Tracer(question, answer, result).run();
}

}  // namespace tern::problems
