/// Instructions of sm_90a (PTX ISA: "mbarrier", "cp.async.bulk.tensor", "wgmma", "setmaxnreg",
/// "mapa"): TMA copies of tiles to and from shared memory, warpgroup products from there or from
/// registers, reads across a cluster.
///
/// Tiles are rows of 64 16-bit numbers, 128 bytes each, with the 128-byte swizzle of TMA and wgmma; a
/// tile begins at a multiple of 1024 bytes.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "base/fp8.hpp"

namespace tern::ops::cuda::hopper {

constexpr int tile_width = 64;             // numbers per row of a tile
constexpr int row_bytes = 2 * tile_width;  // bytes per row of a tile
constexpr int product_rows = 64;           // rows of either operand of multiply()
constexpr int operand_bytes = product_rows * row_bytes;

// ---- barriers in shared memory ----

__device__ inline void init_barrier(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
               : "memory");
}
/// After the last init_barrier, before any use of the barriers.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n" ::: "memory");
}
__device__ inline void arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}
/// Arrives; the phase then also awaits `bytes` of copies.
__device__ inline void arrive_expecting(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Waits for the end of the phase of this parity: 0 for the first one, then 1, 0, ...
__device__ inline void await(std::uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred over;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// ---- copies ----

/// L2 cache hint of a copy.
enum class CacheHint : std::uint64_t {
  evict_first = 0x12F0000000000000,
  evict_last = 0x14F0000000000000
};

/// From one thread: copies the tile at (row, column) of the matrix, zeros beyond its edges;
/// `barrier` counts the bytes.
__device__ inline void copy_tile(std::uint32_t to, const CUtensorMap& matrix, int row, int column,
                                 std::uint32_t barrier, CacheHint hint) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;\n" ::"r"(to),
      "l"(&matrix), "r"(barrier), "r"(column), "r"(row), "l"(static_cast<std::uint64_t>(hint))
      : "memory");
}

/// Of a 64 x 64 tile in a (B, T, heads, E) tensor; the tile lies along T and E.
struct TilePlace {
  int sequence, row, head, column;
};
__device__ inline void copy_tile(std::uint32_t to, const CUtensorMap& tensor, const TilePlace& at,
                                 std::uint32_t barrier, CacheHint hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6}], [%2], %7;\n" ::"r"(to),
      "l"(&tensor), "r"(barrier), "r"(at.column), "r"(at.head), "r"(at.row), "r"(at.sequence),
      "l"(static_cast<std::uint64_t>(hint))
      : "memory");
}
/// From one thread: copies contiguous bytes, a multiple of 16, as are the addresses.
__device__ inline void copy_bytes(std::uint32_t to, const void* from, int bytes,
                                  std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
      "[%3];\n" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
/// From one thread: starts the copy of a tile to the tensor, without what lies beyond its edges.
/// Every thread that wrote to the tile calls publish_tile() before, then a barrier.
__device__ inline void store_tile(const CUtensorMap& tensor, const TilePlace& at,
                                  std::uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];\n" ::"l"(
          &tensor),
      "r"(at.column), "r"(at.head), "r"(at.row), "r"(at.sequence), "r"(from)
      : "memory");
}
__device__ inline void publish_tile() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
__device__ inline void end_stores() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }
/// Waits until this thread's stores have read shared memory.
__device__ inline void await_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
}

// ---- products by a warpgroup ----

/// 64 rows of a tile as an operand; 16 numbers of the row are 32 bytes of address.
__device__ inline std::uint64_t operand(std::uint32_t address) {
  constexpr std::uint64_t eight_rows = 8 * row_bytes >> 4, swizzle_128 = 1;
  return (address & 0x3FFFF) >> 4 | std::uint64_t{1} << 16 | eight_rows << 32 | swizzle_128 << 62;
}

/// The operand `bytes` further, a multiple of 16.
__device__ inline std::uint64_t advance(std::uint64_t operand, int bytes) {
  const auto low = static_cast<std::uint32_t>(operand) + static_cast<std::uint32_t>(bytes / 16);
  return operand >> 32 << 32 | low;
}
/// The same number of all lanes, for the compiler to keep in a uniform register: descriptors that
/// it computes per lane are moved there before each product.
__device__ inline std::uint32_t uniform(std::uint32_t x) { return __shfl_sync(0xffffffffu, x, 0); }

/// 64 x 64 result of four warps. With g = t % 32 / 4 and p = t % 4, thread t holds columns
/// 8 q + 2 p and 8 q + 2 p + 1 of row 16 (t / 32) + g as numbers 4 q, 4 q + 1, and of the row 8
/// below it as 4 q + 2, 4 q + 3.
using Acc64x64 = float[32];

/// c += a b^T over 32 bytes of each row, or c = a b^T unless onto. Between begin_products() and
/// end_products(). T: bf16, fp16, or E4M3 (base/fp8.hpp).
template <class T, bool onto = true>
__device__ void multiply(Acc64x64& c, std::uint64_t a, std::uint64_t b) {
#define MULTIPLY(numbers, type, layouts)                                                           \
  asm volatile(                                                                                    \
      "{\n.reg .pred sum;\nsetp.ne.b32 sum, %34, 0;\n"                                             \
      "wgmma.mma_async.sync.aligned.m64n64k" numbers ".f32." type "." type                         \
      " "                                                                                          \
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "          \
      "%32, %33, sum, 1, 1" layouts ";\n}\n"                                                       \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),        \
        "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),    \
        "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), \
        "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), \
        "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])                                         \
      : "l"(a), "l"(b), "n"(onto ? 1 : 0))
  if constexpr (std::is_same_v<T, E4M3>)
    MULTIPLY("32", "e4m3", "");
  else if constexpr (std::is_same_v<T, fp16>)
    MULTIPLY("16", "f16", ", 0, 0");
  else
    MULTIPLY("16", "bf16", ", 0, 0");
#undef MULTIPLY
}
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
/// Waits for the products.
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" ::: "memory");
}

/// 64 x 16 in registers: thread t holds columns 2 p, 2 p + 1 of rows 16 (t / 32) + g and 8 below as
/// numbers 0 and 1, columns 8 further as 2 and 3. So numbers 8 i to 8 i + 7 of a Acc64x64, rounded in
/// pairs, are the strip of its columns from 16 i on.
using AFragment = std::uint32_t[4];

/// Of the right operand in shared memory: along the summed index, or along the result's columns.
enum class Rows { along_sum, along_result };
/// 64 columns of 16 rows of a tile with Rows::along_result; descriptor as of operand().
constexpr int strip_bytes = 16 * row_bytes;

/// c = a b, or c += a b if onto.
template <class T, Rows rows, bool onto>
__device__ void multiply(Acc64x64& c, const AFragment& a, std::uint64_t b) {
#define MULTIPLY(type)                                                                             \
  asm volatile(                                                                                    \
      "{\n.reg .pred sum;\nsetp.ne.b32 sum, %37, 0;\n"                                             \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                  \
      " "                                                                                          \
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                    \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "          \
      "{%32, %33, %34, %35}, %36, sum, 1, 1, %38;\n}\n"                                            \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),        \
        "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]),    \
        "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), \
        "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), \
        "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])                                         \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(onto ? 1 : 0),                     \
        "n"(rows == Rows::along_result ? 1 : 0))
  if constexpr (std::is_same_v<T, fp16>)
    MULTIPLY("f16");
  else
    MULTIPLY("bf16");
#undef MULTIPLY
}
/// Ends a group of products without waiting.
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
/// Waits for all groups but the latest `pending`.
template <int pending>
__device__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(pending) : "memory");
}
/// Between a wait and the first use of a result, and between the last change of an operand and its
/// product: keeps the compiler from moving accesses across this point.
__device__ inline void fence_operand(Acc64x64& c) {
  asm volatile(""
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]),
                 "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]),
                 "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]),
                 "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), "+f"(c[24]),
                 "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]),
                 "+f"(c[31])::"memory");
}
__device__ inline void fence_operand(AFragment& a) {
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3])::"memory");
}

// ---- registers and barriers of a warpgroup ----

/// By all warps of a warpgroup: changes the registers per thread, a multiple of 8.
template <int registers>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(registers));
}
template <int registers>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(registers));
}
/// Barrier of 128 threads; number 0 is __syncthreads().
__device__ inline void group_barrier(int number) {
  asm volatile("bar.sync %0, 128;\n" ::"r"(number) : "memory");
}

// ---- clusters ----

/// Barrier of all threads of the cluster; writes before it are visible after it.
__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n" ::
                   : "memory");
}
/// Loads from the same address in the shared memory of the cluster's block `rank`.
__device__ inline float4 load_from(int rank, std::uint32_t address) {
  std::uint32_t there;
  float4 value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(there)
               : "memory");
  return value;
}

}  // namespace tern::ops::cuda::hopper
