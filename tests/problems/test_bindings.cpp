// Numbers that could be one of several: every variant must be right whichever they are. Each trap
// has a reading by which a value that occurs twice is the wrong one of the two.
#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "problems/problem_template.hpp"

namespace tern::problems {
namespace {

using Numbers = std::vector<double>;

struct Problem {
  std::string question, answer;
  std::function<double(const Numbers&)> solution;  // of the question's numbers, as it is meant
};

Numbers numbers_of(const std::string& text) {
  static const std::regex number(R"(\d+(\.\d+)?)");
  Numbers found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), number);
       at != std::sregex_iterator(); ++at)
    found.push_back(std::stod(at->str()));
  return found;
}

Untraced trace(const Problem& problem, ProblemTemplate& result) {
  return ProblemTemplate::trace(problem.question, problem.answer, result);
}

/// Draws variants, each of which must have its own solution; returns their questions' numbers.
std::set<Numbers> expect_right_variants(const Problem& problem) {
  ProblemTemplate made;
  EXPECT_EQ(trace(problem, made), Untraced::none) << problem.question;
  EXPECT_EQ(made.original().question, problem.question);
  EXPECT_EQ(made.original().answer, problem.answer);
  std::set<Numbers> variants;
  for (std::uint32_t i = 0; i < 200; ++i) {
    Draw draw(1, 0, i);
    const auto texts = made.draw(draw);
    if (!texts) continue;
    const Numbers numbers = numbers_of(texts->question);
    variants.insert(numbers);
    EXPECT_DOUBLE_EQ(numbers_of(texts->answer).back(), problem.solution(numbers))
        << texts->question << '\n'
        << texts->answer;
  }
  variants.erase(numbers_of(problem.question));
  EXPECT_GE(variants.size(), 3u) << problem.question;
  return variants;
}

TEST(Bindings, NumberOfTheQuestionThatIsAlsoTheLastResult) {
  const auto variants = expect_right_variants(
      {"Ann has 3 pens and finds 5. Each of 4 friends gives her 8. How many has she?",
       "She had 3+5=<<3+5=8>>8.\nShe got 8*4=<<8*4=32>>32.\nShe has 8+32=<<8+32=40>>40.\n#### 40",
       [](const Numbers& n) { return n[0] + n[1] + n[2] * n[3]; }});
  for (const Numbers& n : variants) EXPECT_EQ(n[3], n[0] + n[1]);
}

TEST(Bindings, ResultThatIsAlsoANumberOfTheQuestion) {
  expect_right_variants(
      {"A family pass costs $140. What do single tickets cost for an adult, $35, and for 4 "
       "children, $35 each?",
       "The children's cost 4*35=$<<4*35=140>>140.\nAll cost 140+35=$<<140+35=175>>175.\n#### 175",
       [](const Numbers& n) { return n[1] + n[2] * n[3]; }});
}

TEST(Bindings, OneOfTwoEqualResults) {
  const auto variants = expect_right_variants(
      {"Bo has 4 packs of 9 stickers and 6 packs of 6 cards. He sells the stickers for $5 each. "
       "How "
       "many dollars and cards has he?",
       "He has 4*9=<<4*9=36>>36 stickers.\nHe has 6*6=<<6*6=36>>36 cards.\nHe gets "
       "36*5=$<<36*5=180>>180.\nIn all 36+180=<<36+180=216>>216.\n#### 216",
       [](const Numbers& n) { return n[0] * n[1] * n[4] + n[2] * n[3]; }});
  for (const Numbers& n : variants) EXPECT_EQ(n[0] * n[1], n[2] * n[3]);
}

TEST(Bindings, EqualResultsOfOneCalculationVaryFreely) {
  const auto variants = expect_right_variants(
      {"Tom has 9 bears and sells them for $2 each; Kim has 2 times as many bears and sells them "
       "for $4 each. How much do they get?",
       "Tom gets 9*2=$<<9*2=18>>18.\nKim has 9*2=<<9*2=18>>18.\nKim gets 18*4=$<<18*4=72>>72.\n"
       "They get 18+72=$<<18+72=90>>90.\n#### 90",
       [](const Numbers& n) { return n[0] * n[1] + n[0] * n[2] * n[3]; }});
  EXPECT_GE(variants.size(), 30u);
}

TEST(Bindings, ResultThatMayBeACommonConstant) {
  for (const Numbers& n : expect_right_variants(
           {"A mill makes 20 parts in a minute on each of 3 belts. How many does it make in an "
            "hour?",
            "It makes 20*3=<<20*3=60>>60 in a minute.\nIt makes 60*60=<<60*60=3600>>3600.\n#### "
            "3600",
            [](const Numbers& n) { return n[0] * n[1] * 60; }}))
    EXPECT_EQ(n[0] * n[1], 60);
  // Nothing is said of time: here 60 is the number of balls.
  std::set<double> sums;
  for (const Numbers& n : expect_right_variants(
           {"Vera has 27 red and 33 blue balls. What percentage of them is red?",
            "She has 27+33=<<27+33=60>>60.\nOf them 27/60*100=<<27/60*100=45>>45% are red.\n#### "
            "45",
            [](const Numbers& n) { return 100 * n[0] / (n[0] + n[1]); }}))
    sums.insert(n[0] + n[1]);
  EXPECT_GE(sums.size(), 3u);
}

TEST(Bindings, ResultThatMayBeAConstantOfTheQuestion) {
  for (const Numbers& n : expect_right_variants(
           {"Ann picks 16 figs and eats 6. Ben picks 10 figs and eats 3. How many are left?",
            "Ann has 16-6=<<16-6=10>>10.\nBen has 10-3=<<10-3=7>>7.\nThey have "
            "10+7=<<10+7=17>>17.\n#### 17",
            [](const Numbers& n) { return n[0] - n[1] + n[2] - n[3]; }}))
    EXPECT_EQ(n[0] - n[1], 10);
}

TEST(Bindings, ResultThatTheAnswerWritesAsAWord) {
  for (const Numbers& n : expect_right_variants(
           {"Ann has 3 pens and buys 6. She sells all for $4 each. How much does she get?",
            "Ann has nine: <<3+6=9>>9.\nShe gets 9*4=$<<9*4=36>>36.\n#### 36",
            [](const Numbers& n) { return (n[0] + n[1]) * n[2]; }}))
    EXPECT_EQ(n[0] + n[1], 9);
  ProblemTemplate none;  // no other square is sixteen
  EXPECT_EQ(trace({"A square has sides of 4 m. What is its area?",
                   "The area is sixteen, 4*4=<<4*4=16>>16.\n#### 16",
                   {}},
                  none),
            Untraced::ambiguous);
}

TEST(Bindings, OrdinalsComeAfterTheNumberBefore) {
  for (const Numbers& n : expect_right_variants(
           {"Carl saved $25 in each of 6 weeks, and $40 in the seventh week. How much is it?",
            "In 6 weeks he saved 25*6=$<<25*6=150>>150.\nHe has 150+40=$<<150+40=190>>190.\n#### "
            "190",
            [](const Numbers& n) { return n[0] * n[1] + n[2]; }}))
    EXPECT_EQ(n[1], 6);
}

TEST(Bindings, AnswerThatIsNotTheLastResult) {
  const auto variants = expect_right_variants(
      {"Ann has 9 pens and gives away 4. Ben has 5 pens fewer than 14. How many has Ann left?",
       "Ann has 9-4=<<9-4=5>>5.\nBen has 14-5=<<14-5=9>>9.\nAnn gave 9-5=<<9-5=4>>4.\n#### 5",
       [](const Numbers& n) { return n[0] - n[1]; }});
  for (const Numbers& n : variants) {
    EXPECT_EQ(n[2], n[0] - n[1]);
    EXPECT_EQ(n[3] - n[2], n[0]);
  }
}

}  // namespace
}  // namespace tern::problems
