#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "deck/corpus.hpp"
#include "deck/detail/table.hpp"
#include "deck/mistakes.hpp"
#include "namelist/parser.hpp"

namespace tern::test {
namespace {

using deck::Deck;

void round_trips(const Deck& deck) {
  for (const bool help : {false, true}) {
    const std::string text = deck::print(deck, help);
    EXPECT_EQ(deck::parse(text, "printed"), deck) << text;
  }
}

TEST(DeckPrint, RoundTrips) {
  round_trips(deck::parse("", "d"));
  round_trips(deck::parse(every_construct, "d"));
  for (const auto& path : input_decks()) round_trips(deck::read(path.string()));
}

TEST(DeckPrint, RoundTripsEveryReal) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    Deck deck = deck::parse("", "d");
    const std::uint64_t bits = random() >> 1;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    deck.cost.peak_tflops = value;
    deck.optimizer.weight_decay = static_cast<double>(random() % 1000000) / 1e6;
    EXPECT_EQ(deck::parse(deck::print(deck, false), "printed"), deck);
  }
  for (const double value :
       {0.0, 5e-324, 1e16, 1e22, 123456789.0, std::numeric_limits<double>::max()}) {
    Deck deck = deck::parse("", "d");
    deck.cost.peak_tflops = value;
    round_trips(deck);
  }
}

TEST(DeckPrint, RoundTripsEveryString) {
  for (const char* text : {"", "'", "''", "\"", "it's \"x\"", " ! & / = ", "\t", "äλ", "\\n",
                           "3*'a'", "a\nb", "\n", "a  \n  b\n", "&end\n/\n"}) {
    Deck deck = deck::parse("", "d");
    deck.generation.prompt = text;
    if (!std::strchr(text, '\n')) deck.model.load = text;
    if (*text && !std::strchr(text, '\n')) deck.data.train = {text, "b", text};
    round_trips(deck);
  }
}

TEST(DeckPrint, ExtremeIntegers) {
  Deck deck = deck::parse("", "d");
  deck.campaign.seed = std::numeric_limits<std::int64_t>::max();
  round_trips(deck);
}

TEST(DeckPrint, HelpHasUnitRangeMeaningAndDefault) {
  const std::string text = deck::print(Deck{}, true);
  EXPECT_NE(
      text.find("  context = 1024                     ! sequence length [tokens]; 1 to 16777216; "
                "default 1024\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("! Architecture and initialization of the model.\n&model\n"),
            std::string::npos);
  EXPECT_EQ(deck::print(Deck{}, false).find(" ! "), std::string::npos);
}

/// The names that one declaration declares: "double eps = 1e-8, lr = 0" has eps and lr.
Lines declared_names(const std::string& declaration) {
  Lines names;
  std::string name;
  bool is_name = false;  // between the type or a comma and what ends the name
  int depth = 0;         // of braces
  for (const char c : declaration) {
    depth += (c == '{') - (c == '}');
    const bool part = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (is_name && part) name += c;
    if (!part && !name.empty()) {
      names.push_back(std::exchange(name, {}));
      is_name = false;
    }
    if (depth == 0 && (c == ',' || (c == ' ' && names.empty()))) is_name = true;
  }
  if (!name.empty()) names.push_back(name);
  return names;
}

/// The members that deck.hpp declares, "group.name".
Lines declared_members() {
  std::istringstream header(file_text(TERN_SOURCE_DIR "/lib/deck/deck.hpp"));
  Lines members;
  std::string group, statement;
  for (std::string line; std::getline(header, line);) {
    line.resize(std::min(line.find("//"), line.size()));
    if (line.starts_with("struct ")) {
      group = namelist::lower(line.substr(7, line.find(' ', 7) - 7));
      continue;
    }
    if (line.find("operator==") != std::string::npos) group.clear();
    if (group.empty() || group == "deck") continue;
    for (const char c : line) {
      if (c != ';') {
        if (c != ' ' || !statement.empty()) statement += c;
        continue;
      }
      for (const std::string& name : declared_names(std::exchange(statement, {})))
        members.push_back(group + "." + name);
    }
  }
  return members;
}

TEST(DeckSchema, DescribesEveryMemberOfDeckHpp) {
  Deck deck;
  Lines described;
  for (const auto& group : deck::detail::describe(deck).groups)
    for (const auto& field : group.fields) described.push_back(group.name + "." + field.name);
  EXPECT_EQ(described, declared_members());
}

TEST(DeckSchema, EveryFieldHasHelpAndFitsALine) {
  Deck deck;
  for (const auto& group : deck::detail::describe(deck).groups)
    for (const auto& field : group.fields) {
      EXPECT_FALSE(field.help.empty()) << group.name << "." << field.name;
      EXPECT_LT(field.help.size(), 110u) << group.name << "." << field.name;
      EXPECT_EQ(field.name, namelist::lower(field.name));
    }
}

TEST(DeckReference, PageIsUpToDate) {
  EXPECT_EQ(file_text(TERN_SOURCE_DIR "/docs/deck.md"), deck::reference())
      << "remake it: deck_dump --reference > docs/deck.md";
}

/// Below a group's table, by the names of its fields.
TEST(DeckReference, NotesNameFieldsOfTheirGroup) {
  const std::string page = deck::reference();
  Deck deck;
  std::size_t notes = 0, named = 0;
  for (std::size_t at = 0; (at = page.find("\n- `", at)) != std::string::npos; ++at)
    if (at > page.find("\n## &")) ++notes;
  for (const auto& group : deck::detail::describe(deck).groups) {
    const std::size_t from = page.find("## &" + group.name + "\n");
    const std::string section = page.substr(from, page.find("\n## &", from) - from);
    for (const auto& field : group.fields)
      named += section.find("\n- `" + field.name + "`: ") != std::string::npos;
  }
  EXPECT_GT(notes, 0u);
  EXPECT_EQ(named, notes);
}

TEST(DeckReference, NamesEveryField) {
  const std::string page = deck::reference();
  Deck deck;
  for (const auto& group : deck::detail::describe(deck).groups) {
    EXPECT_NE(page.find("## &" + group.name + "\n"), std::string::npos);
    for (const auto& field : group.fields)
      EXPECT_NE(page.find("| `" + field.name + "` |"), std::string::npos) << field.name;
  }
}

}  // namespace
}  // namespace tern::test
