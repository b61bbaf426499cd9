/// Warp-wide instructions of NVIDIA GPUs from sm_80 on, and their fragments: asynchronous copies
/// from device to shared memory, loads of 8 x 8 matrices from shared memory, products of 16 x 16
/// with 16 x 8, in TF32 of 16 x 8 with 8 x 8 (PTX ISA, "Matrix fragments for mma.m16n8k16", "...
/// mma.m16n8k8").
///
/// Lane l of a warp has row g = l / 4 and column pair t = l % 4: of a 16 x 8 result, c0, c1 at (g,
/// 2t and 2t + 1), c2, c3 at (g + 8, same). Two neighboring results, rounded, are the left operand
/// (16 x 16) of the next product. In TF32 a word is a number, and a matrix that is loaded has 8 x 4.
#pragma once
#include <cstdint>

#include "ops/core/cuda/halves.hpp"

namespace tern::ops::cuda::tensor_core {

using Left = std::uint32_t[4];
using Result = float[4];

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies 16 bytes; unless `valid`, writes zeros and reads nothing.
__device__ inline void copy_16(std::uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0));
}
__device__ inline void copy_4(std::uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from),
               "r"(valid ? 4 : 0));
}
/// Waits for all copies of this thread; others see them after a barrier.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;\n" ::: "memory"); }

/// Ends a group of this thread's copies.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits for all of this thread's groups but the latest `pending`.
template <int pending>
__device__ void wait_for_copies_but() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

/// Four 8 x 8 matrices; lanes 8i to 8i + 7 give the addresses of the rows of matrix i.
__device__ inline void load_matrices(Left& m, std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_transposed(Left& m, std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(address)
               : "memory");
}

__device__ inline std::uint32_t load_word(std::uint32_t address) {
  std::uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(word) : "r"(address) : "memory");
  return word;
}

__device__ inline uint4 load_words(std::uint32_t address) {
  uint4 words;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(address)
               : "memory");
  return words;
}
__device__ inline void store_words(std::uint32_t address, const uint4& words) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(address), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

/// The transposed 8 x 8 matrix, of which each lane holds row g, columns 2t and 2t + 1.
__device__ inline std::uint32_t transposed(std::uint32_t pair) {
  std::uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(result) : "r"(pair));
  return result;
}

/// c += a b. T: bf16, fp16, or float in TF32: the lower 13 bits of operands do not count.
template <class T>
__device__ void multiply(Result& c, const Left& a, std::uint32_t b0, std::uint32_t b1) {
  if constexpr (std::is_same_v<T, float>)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else if constexpr (std::is_same_v<T, fp16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two 16 x 8 results as left operands in TF32, whose columns t and t + 4 are the results' 2t and
/// 2t + 1.
__device__ inline void round_results(Left (&a)[2], const Result (&c)[2]) {
  const auto rounded = [](float x) {
    std::uint32_t result;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(result) : "f"(x));
    return result;
  };
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 4; ++i) a[n][i] = rounded(c[n][i % 2 * 2 + i / 2]);
}
/// Two neighboring 16 x 8 results as a left operand.
template <class T>
__device__ void round_results(Left& a, const Result (&c)[2]) {
  for (int n = 0; n < 2; ++n)
    for (int half = 0; half < 2; ++half)
      a[2 * n + half] = round_pair<T>(c[n][2 * half], c[n][2 * half + 1]);
}
__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(x));
  return result;
}

/// Reductions over the four lanes that share a row.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

}  // namespace tern::ops::cuda::tensor_core
