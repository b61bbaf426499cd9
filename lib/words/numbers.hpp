/// Numbers in sentences and tables.
#pragma once
#include <cstdint>
#include <string>

namespace tern {

/// Thousands separated: 1,319.
std::string grouped(std::int64_t number);

/// Rounded to significant digits: 472,700, 13.11, 0.5.
std::string rounded(double value, int digits = 4);

/// "4.2 s", "95 s", "26.5 min", "3.1 h".
std::string duration(double seconds);

/// "1 sample", "1,319 samples".
std::string counted(std::int64_t number, const std::string& what);

/// Tokens of data or of a run: "4,756 tokens", "9.6 M tokens".
std::string token_count(std::int64_t tokens);

}  // namespace tern
