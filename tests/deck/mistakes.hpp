#pragma once
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "deck/deck.hpp"

namespace tern::test {

using Lines = std::vector<std::string>;

/// The mistakes found in a deck called "d", one per line; empty if it is accepted.
inline Lines mistakes(const std::string& text, const Lines& overrides = {}) {
  Lines lines;
  try {
    deck::parse(text, "d", overrides);
  } catch (const UserError& error) {
    std::istringstream stream(error.what());
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    if (lines.size() > 1) {  // counted on a line before them
      EXPECT_EQ(lines.front(), std::to_string(lines.size() - 1) + " mistakes");
      lines.erase(lines.begin());
    }
  }
  return lines;
}

/// The deck has this mistake only.
inline void one(const std::string& text, const std::string& mistake) {
  EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
}
/// The deck is accepted.
inline void none(const std::string& text) { EXPECT_EQ(mistakes(text), Lines{}) << text; }

}  // namespace tern::test
