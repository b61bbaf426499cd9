/// Text for tests: the same in every run.
#pragma once
#include <random>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace tern::test {

/// English with contractions, numbers, code and white space of many kinds.
inline std::string small_corpus() {
  std::string text;
  const std::string_view parts[] = {
      "The quick brown fox doesn't jump over the lazy dog.\n",
      "We'll see: they've 12 apples, 345 pears and 6,789 plums!\n\n",
      "for (int i = 0; i < n; ++i) {\n    sum += values[i];\n}\n",
      "Caf\xc3\xa9 na\xc3\xafve \xe2\x80\x94 \xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, "
      "\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c! \xf0\x9f\x98\x80\xf0\x9f\x98\x80\n",
      "the theme of the thesis is there; this, that and the other   \t\n"};
  for (int i = 0; i < 200; ++i) text += parts[(i * 3 + i / 7) % 5];
  return text;
}

/// Valid UTF-8, dense in what pre-tokenizers treat specially.
inline std::string random_unicode(std::mt19937_64& random, std::size_t characters) {
  static const std::string_view common[] = {" ",
                                            " ",
                                            "  ",
                                            "\n",
                                            "\r\n",
                                            "\t",
                                            "'",
                                            "'s",
                                            "'t",
                                            "'re",
                                            "'ll",
                                            "'D",
                                            "a",
                                            "b",
                                            "the",
                                            "Z",
                                            "0",
                                            "12",
                                            "345",
                                            ".",
                                            "!?",
                                            "(",
                                            "\xc2\xa0",
                                            "\xe3\x80\x80",
                                            "\xe1\xa0\x8e",
                                            "\xe2\x80\xa8",
                                            "\xc2\x85"};
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    const std::uint64_t kind = random() % 8;
    std::uint32_t c = 0;
    if (kind < 5) {
      text += common[random() % std::size(common)];
      continue;
    }
    do
      c = static_cast<std::uint32_t>(random() % (kind == 5   ? 0x300
                                                 : kind == 6 ? 0x3100
                                                             : 0x110000));
    while (c >= 0xd800 && c < 0xe000);
    append_utf8(c, text);
  }
  return text;
}

inline std::string random_bytes(std::mt19937_64& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(random());
  return text;
}

}  // namespace tern::test
