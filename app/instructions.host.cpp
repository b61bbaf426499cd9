// Part of every program and compiled with its flags: ends it, before anything else of it is
// executed, on a processor that lacks their instructions.
#include "base/instructions.hpp"

namespace {

// A macro that is not defined is its own name.
#define TERN_TEXT(macro) #macro
#define TERN_ROW(name, macro, level) TERN_TEXT(macro)[0] == '1',
constexpr tern::Instructions needed = tern::instructions({TERN_INSTRUCTION_SETS(TERN_ROW)});

[[gnu::constructor(101)]] void check() { tern::require_instructions(needed, TERN_ARCH); }

}  // namespace
