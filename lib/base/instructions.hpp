/// Whether the processor has the instructions that a program was compiled with. Kernels are
/// compiled for one kind of processor (TERN_ARCH); on another they would end with SIGILL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>

// Sets of x86 instructions that compilers use by themselves: name of __builtin_cpu_supports, macro
// predefined where the set is enabled, first level x86-64-vN that has it (0: none).
#if defined(__clang__) && __clang_major__ < 19  // its __builtin_cpu_supports lacks these names
#define TERN_MORE_INSTRUCTION_SETS(SET)
#else
#define TERN_MORE_INSTRUCTION_SETS(SET) \
  SET("f16c", __F16C__, 3)              \
  SET("lzcnt", __LZCNT__, 3)            \
  SET("movbe", __MOVBE__, 3)            \
  SET("avxvnni", __AVXVNNI__, 0)        \
  SET("avx512fp16", __AVX512FP16__, 0)
#endif
#define TERN_INSTRUCTION_SETS(SET)               \
  SET("sse3", __SSE3__, 2)                       \
  SET("ssse3", __SSSE3__, 2)                     \
  SET("sse4.1", __SSE4_1__, 2)                   \
  SET("sse4.2", __SSE4_2__, 2)                   \
  SET("popcnt", __POPCNT__, 2)                   \
  SET("avx", __AVX__, 3)                         \
  SET("avx2", __AVX2__, 3)                       \
  SET("bmi", __BMI__, 3)                         \
  SET("bmi2", __BMI2__, 3)                       \
  SET("fma", __FMA__, 3)                         \
  SET("avx512f", __AVX512F__, 4)                 \
  SET("avx512bw", __AVX512BW__, 4)               \
  SET("avx512cd", __AVX512CD__, 4)               \
  SET("avx512dq", __AVX512DQ__, 4)               \
  SET("avx512vl", __AVX512VL__, 4)               \
  SET("avx512ifma", __AVX512IFMA__, 0)           \
  SET("avx512vbmi", __AVX512VBMI__, 0)           \
  SET("avx512vbmi2", __AVX512VBMI2__, 0)         \
  SET("avx512vnni", __AVX512VNNI__, 0)           \
  SET("avx512bitalg", __AVX512BITALG__, 0)       \
  SET("avx512vpopcntdq", __AVX512VPOPCNTDQ__, 0) \
  SET("avx512bf16", __AVX512BF16__, 0)           \
  SET("gfni", __GFNI__, 0)                       \
  SET("fma4", __FMA4__, 0)                       \
  SET("xop", __XOP__, 0)                         \
  TERN_MORE_INSTRUCTION_SETS(SET)

namespace tern {

/// Sets of instructions: bit i is row i of TERN_INSTRUCTION_SETS.
using Instructions = std::uint64_t;

consteval Instructions instructions(std::initializer_list<bool> rows) {
  Instructions sets = 0, bit = 1;
  for (const bool in : rows) {
    if (in) sets |= bit;
    bit <<= 1;
  }
  return sets;
}

/// Those of this processor that its operating system enables; all of them if it is not an x86.
Instructions instructions_available();

/// False, with one line in `message`, if `available` lacks one of `needed`. `arch`: TERN_ARCH of
/// the program. The remedy names the highest level x86-64-vN that `available` covers.
bool instructions_suffice(Instructions needed, Instructions available, const char* arch,
                          char* message, std::size_t size);

/// Ends the process with exit code 1 and that line if this processor lacks one of `needed`; among
/// the ranks of a node, local rank 0 writes it.
void require_instructions(Instructions needed, const char* arch);

}  // namespace tern
