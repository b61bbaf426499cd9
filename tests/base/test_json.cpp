// One limit of nesting for every parser, and reasons that fit a message.
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace tern {
namespace {

std::string nested(int levels, const std::string& open, const std::string& inner,
                   const std::string& close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += inner;
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

const std::vector<std::function<nlohmann::json(std::string_view)>>& parsers() {
  static const std::vector<std::function<nlohmann::json(std::string_view)>> all = {
      parse_json, [](std::string_view text) { return nlohmann::json(parse_ordered_json(text)); },
      parse_json_of_distinct_keys};
  return all;
}

TEST(Json, IsTakenToAHundredLevelsAndRefusedBeyond) {
  for (const auto& [open, close] :
       {std::pair{"[", "]"}, {"{\"a\":", "}"}, {"[{\"[\\\"{\":", "}]"}}) {
    const int each = std::string(open).starts_with("[{") ? 2 : 1;
    const std::string most = nested(deepest_json / each, open, "\"\\\\[[[[{{\\\"\"", close);
    for (const auto& parse : parsers()) EXPECT_NO_THROW(parse(most)) << most;
    EXPECT_FALSE(try_json(most).is_discarded());
    EXPECT_FALSE(try_ordered_json(most).is_discarded());
    for (const int levels : {deepest_json + 1, 100'000, 1'000'000}) {
      const std::string text = nested(levels, open, "1", close);
      for (const auto& parse : parsers()) {
        try {
          parse(text);
          ADD_FAILURE() << levels << " levels of " << open;
        } catch (const nlohmann::json::exception& error) {
          EXPECT_EQ(reason(error), "nested more than 100 levels deep");
        }
      }
      EXPECT_TRUE(try_json(text).is_discarded());
      EXPECT_TRUE(try_ordered_json(text).is_discarded());
    }
  }
}

TEST(Json, ManyValuesSideBySideAreNotDeep) {
  std::string text = "[";
  for (int i = 0; i < 1000; ++i) text += "[{\"a\": []}, \"]\"],";
  EXPECT_EQ(parse_json(text + "[]]").size(), 1001u);
}

TEST(Json, AKeyTwiceIsRefusedWhereAsked) {
  const std::string text = R"({"a": 1, "b": {"a": 1, "c": 2, "a": 3}})";
  EXPECT_NO_THROW(parse_json(text));
  try {
    parse_json_of_distinct_keys(text);
    FAIL();
  } catch (const nlohmann::json::exception& error) {
    EXPECT_EQ(reason(error), "the key 'a' occurs twice");
  }
  EXPECT_NO_THROW(parse_json_of_distinct_keys(R"({"a": {"a": 1}, "b": {"a": 1}})"));
}

TEST(Json, ReasonsAreShortAndPrintable) {
  try {
    parse_json("{\"a\": \x1b[31m" + std::string(1000, 'x') + "}");
    FAIL();
  } catch (const nlohmann::json::exception& error) {
    EXPECT_LT(reason(error).size(), 300u);
    EXPECT_EQ(reason(error).find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace tern
