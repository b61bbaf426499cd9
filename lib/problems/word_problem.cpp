#include "problems/word_problem.hpp"

#include <optional>
#include <span>

#include "base/error.hpp"

namespace tern::problems {
namespace {

// Small ranges: a small model sees each sum often enough to learn it within minutes.
constexpr int smallest = 2, largest = 99;          // all numbers: each is one token
constexpr int first_low = 2, first_high = 15;      // initial number
constexpr int change_low = 2, change_high = 9;     // added or taken away
constexpr int groups_high = 5, in_group_high = 9;  // 2 to 5 bags with 2 to 9 each
constexpr int factor_high = 4, divisor_high = 5;   // "times as many", friends to share with
constexpr int together_low = 8, together_high = 12, together_change = 6;

struct Person {
  const char *name, *he, *him;
};
constexpr Person people[] = {
    {"Tom", "He", "him"},   {"Ben", "He", "him"},   {"Sam", "He", "him"},   {"Max", "He", "him"},
    {"Leo", "He", "him"},   {"Jack", "He", "him"},  {"Paul", "He", "him"},  {"Omar", "He", "him"},
    {"Ravi", "He", "him"},  {"Hugo", "He", "him"},  {"Ann", "She", "her"},  {"Eva", "She", "her"},
    {"Mia", "She", "her"},  {"Zoe", "She", "her"},  {"Lucy", "She", "her"}, {"Nora", "She", "her"},
    {"Emma", "She", "her"}, {"Rosa", "She", "her"}, {"Lin", "She", "her"},  {"Sara", "She", "her"}};
constexpr const char* things[] = {"apples", "books", "coins",   "cards", "stamps", "pens",
                                  "shells", "cakes", "pears",   "eggs",  "cups",   "hats",
                                  "toys",   "balls", "stones",  "keys",  "beads",  "plums",
                                  "dolls",  "kites", "marbles", "nuts",  "roses",  "lemons"};
constexpr const char* containers[] = {"bags", "boxes", "jars", "bowls"};

/// Operation of a step on its two numbers.
enum class Kind { add, take, times, share, price };

/// A sentence that changes the number, and the sub-question for the result. {b}: the second number;
/// other names are those of Story.
struct Change {
  Kind kind;
  const char *sentence, *question;
};

constexpr Change middles[] = {
    {Kind::add, "{He} buys {b} more.", "How many {things} after buying?"},
    {Kind::add, "{He} finds {b} more.", "How many {things} after finding more?"},
    {Kind::add, "{friend} gives {him} {b} more.", "How many {things} after the gift?"},
    {Kind::take, "{He} loses {b}.", "How many {things} after losing some?"},
    {Kind::take, "{He} sells {b}.", "How many {things} after selling?"},
    {Kind::take, "{He} gives {b} to {friend}.", "How many {things} after giving?"}};

constexpr Change ends[] = {
    {Kind::add, "{friend} has {b} more than {name}.", "How many {things} does {friend} have?"},
    {Kind::take, "{friend} has {b} fewer than {name}.", "How many {things} does {friend} have?"},
    {Kind::times, "{friend} has {b} times as many.", "How many {things} does {friend} have?"},
    {Kind::share, "{He} shares them among {b} friends.", "How many {things} does each friend get?"},
    {Kind::price, "{He} sells them for {b} dollars each.", "How many dollars does {name} get?"}};

constexpr const char* has = "{name} has {a} {things}.";
constexpr const char* has_groups = "{name} has {a} {bags} with {b} {things} each.";
constexpr const char* groups_question = "How many {things} in all {bags}?";
constexpr const char* last_question = "How many {things} does {name} have?";
constexpr const char* together_question = "How many {things} do they have together?";

template <class Item, std::size_t Count>
const Item& one_of(const Item (&items)[Count], Draw& draw) {
  return items[draw.below(static_cast<int>(Count))];
}

void replace(std::string& text, std::string_view name, const std::string& value) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
}

/// A problem under construction.
struct Story {
  const Person &person, &other;
  const char *things, *bags;
  int value = 0;  // result so far
  WordProblem problem = {};

  std::string filled(const char* pattern, int a = 0, int b = 0) const {
    std::string text = pattern;
    replace(text, "{name}", person.name);
    replace(text, "{He}", person.he);
    replace(text, "{him}", person.him);
    replace(text, "{friend}", other.name);
    replace(text, "{things}", things);
    replace(text, "{bags}", bags);
    replace(text, "{a}", std::to_string(a));
    replace(text, "{b}", std::to_string(b));
    return text;
  }

  void tell(const std::string& sentence) {
    problem.question += (problem.question.empty() ? "" : " ") + sentence;
  }

  /// 12+7=<<12+7=19>>19 apples.
  void step(const std::string& question, int a, char sign, int b, int result, const char* unit) {
    const std::string sum = fmt::format("{}{}{}=", a, sign, b);
    problem.sub_questions.push_back(question);
    problem.steps.push_back(fmt::format("{}<<{}{}>>{} {}.", sum, sum, result, result, unit));
    value = result;
  }
};

char sign_of(Kind kind) {
  switch (kind) {
    case Kind::add:
      return '+';
    case Kind::take:
      return '-';
    case Kind::share:
      return '/';
    default:
      return '*';
  }
}

int result_of(Kind kind, int a, int b) {
  switch (kind) {
    case Kind::add:
      return a + b;
    case Kind::take:
      return a - b;
    case Kind::share:
      return a / b;
    default:
      return a * b;
  }
}

/// Second number for which the result is an integer in range, if any.
std::optional<int> second_number(Kind kind, int value, Draw& draw) {
  int high = change_high;
  if (kind == Kind::add) high = std::min(change_high, largest - value);
  if (kind == Kind::take) high = std::min(change_high, value - smallest);
  if (kind == Kind::times || kind == Kind::price) high = std::min(factor_high, largest / value);
  if (kind == Kind::share) high = std::min(divisor_high, value / smallest);
  if (high < change_low) return std::nullopt;
  const int number = draw.between(change_low, high);
  if (kind == Kind::share && value % number != 0) return std::nullopt;
  return number;
}

/// Appends a change; false if it does not fit the value.
bool change(Story& story, const Change& what, Draw& draw) {
  const auto b = second_number(what.kind, story.value, draw);
  if (!b) return false;
  const int a = story.value;
  story.tell(story.filled(what.sentence, a, *b));
  story.step(story.filled(what.question), a, sign_of(what.kind), *b, result_of(what.kind, a, *b),
             what.kind == Kind::price ? "dollars" : story.things);
  return true;
}

void begin(Story& story, bool groups, Draw& draw) {
  if (!groups) {
    story.value = draw.between(first_low, first_high);
    story.tell(story.filled(has, story.value));
    return;
  }
  const int a = draw.between(2, groups_high), b = draw.between(2, in_group_high);
  story.tell(story.filled(has_groups, a, b));
  story.step(story.filled(groups_question), a, '*', b, a * b, story.things);
}

/// Two steps: a friend's number, and the sum of both.
bool end_together(Story& story, Draw& draw) {
  const int a = story.value;
  if (a < together_low || a > together_high) return false;
  const Change& what = ends[draw.below(2)];
  const int b = draw.between(change_low, together_change);
  story.tell(story.filled(what.sentence, a, b));
  story.step(story.filled(what.question), a, sign_of(what.kind), b, result_of(what.kind, a, b),
             story.things);
  story.step(story.filled(together_question), a, '+', story.value, a + story.value, story.things);
  story.tell(story.filled(together_question));
  return true;
}

/// One problem, or nullopt if a drawn change does not fit.
std::optional<WordProblem> try_problem(std::size_t steps, Draw& draw) {
  const Person& person = one_of(people, draw);
  const Person& other = one_of(people, draw);
  if (&person == &other) return std::nullopt;
  Story story{person, other, one_of(things, draw), one_of(containers, draw)};
  begin(story, draw.below(4) == 0, draw);
  const std::size_t left = steps - story.problem.steps.size();
  const int ending = draw.below(8);  // 0: together; 1 to 3: one more kind of step; else none
  const std::size_t last = left == 0 ? 0 : ending == 0 ? 2 : ending < 4 ? 1 : 0;
  if (last > left) return std::nullopt;
  for (std::size_t i = last; i < left; ++i)
    if (!change(story, one_of(middles, draw), draw)) return std::nullopt;
  if (last == 2) {
    if (!end_together(story, draw)) return std::nullopt;
  } else if (last == 1) {
    if (!change(story, one_of(ends, draw), draw)) return std::nullopt;
    story.tell(story.problem.sub_questions.back());
  } else {
    story.tell(story.filled(last_question));
  }
  story.problem.answer = story.value;
  return story.problem;
}

}  // namespace

WordProblem draw_problem(std::size_t steps, Draw& draw) {
  TERN_REQUIRE(steps > 0);
  while (true)
    if (auto problem = try_problem(steps, draw)) return *std::move(problem);
}

}  // namespace tern::problems
