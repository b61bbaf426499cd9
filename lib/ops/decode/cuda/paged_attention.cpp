/// Host side of paged attention: shapes served, and launches.
#include <map>

#include "ops/core/cuda/kernels.hpp"
#include "ops/decode/cuda/detail/paged_attention_decode.hpp"
#include "ops/decode/cuda/detail/paged_attention_prefill.hpp"
#include "ops/decode/paged_cache.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace paged;
using detail::stream_of;

int size_of(std::size_t n) { return static_cast<int>(n); }

template <class Body>
void with_head_size(std::size_t size, const Body& body) {
  if (size == 32)
    body(std::integral_constant<int, 32>());
  else if (size == 64)
    body(std::integral_constant<int, 64>());
  else
    body(std::integral_constant<int, 128>());
}

template <class Arguments>
void launch(const Context& context, const char* name, void (*kernel)(Arguments), dim3 grid,
            int bytes, const Arguments& arguments) {
  if (bytes > 0) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  detail::launch_early(name, kernel, grid, dim3(threads), static_cast<std::size_t>(bytes),
                       stream_of(context), arguments);
}

/// Blocks of a kernel that are resident on the device at once.
template <class Arguments>
unsigned resident_blocks(void (*kernel)(Arguments), int bytes) {
  static std::map<std::pair<void (*)(Arguments), int>, unsigned> known;
  unsigned& blocks = known[{kernel, bytes}];
  if (blocks > 0) return blocks;
  int per_processor = 0;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, threads,
                                                static_cast<std::size_t>(bytes));
  return blocks = static_cast<unsigned>(std::max(1, per_processor)) * detail::multiprocessors();
}

template <class T, int E>
void launch_combine(const Context& context, const Decode<T>& arguments, const Fp8Rows& codes) {
  constexpr const char* name = "paged_attention of single rows, combined";
  const auto rows = static_cast<unsigned>(arguments.rows);
  const auto heads = static_cast<unsigned>(arguments.problem.heads);
  if (codes.wanted())
    detail::launch_early(name, &combine_coded<T, E>, dim3(rows), dim3(coding_threads), 0,
                         stream_of(context), arguments, detail::RowCodes(codes));
  else
    launch(context, name, &combine<T, E>, dim3(rows, (heads + warps - 1) / warps), 0, arguments);
}

template <class T, int E, int rows, bool coded>
void launch_decode(const Context& context, const Decode<T>& arguments) {
  constexpr int bytes = DecodeShape<T, E, rows, coded>::bytes;
  const auto kernel = &decode<T, E, rows, coded>;
  launch(context, "paged_attention of single rows", kernel, dim3(resident_blocks(kernel, bytes)),
         bytes, arguments);
}

template <bool coded, class T>
void attend_singles(const Context& context, const paged::Problem<T>& problem, const PagedRows& rows,
                    std::size_t E, Vector<float> partial, T* out, const Fp8Rows& codes) {
  const auto heads = static_cast<std::size_t>(problem.heads);
  const std::size_t most = partial.extent(0) / paged_partials(1, heads, E);
  TERN_REQUIRE(rows.splits.extent(0) <= most, "{} numbers for {} splits", partial.extent(0),
               rows.splits.extent(0));
  const Decode<T> arguments{problem,
                            rows.splits.data(),
                            rows.first_splits.data(),
                            size_of(rows.singles),
                            size_of(most),
                            partial.data(),
                            out,
                            rows.settled,
                            size_of(E)};
  with_head_size(E, [&](auto size) {
    const int group = problem.heads / problem.kv_heads;
    if (group <= 4)
      launch_decode<T, size(), 4, coded>(context, arguments);
    else if (group <= 8)
      launch_decode<T, size(), 8, coded>(context, arguments);
    else
      launch_decode<T, size(), 16, coded>(context, arguments);
    launch_combine<T, size()>(context, arguments, codes);
  });
}

template <bool coded, class T>
void attend(const Context& context, const paged::Problem<T>& problem, const PagedRows& rows,
            std::size_t E, Vector<float> partial, Matrix<T> out, const Fp8Rows& codes) {
  const bool fused = rows.tiles.extent(0) == 0 && out.extent(1) <= std::size_t{most_coded} &&
                     detail::all_aligned(codes.codes.data());
  if (rows.singles > 0)
    attend_singles<coded>(context, problem, rows, E, partial, out.data(),
                          fused ? codes : Fp8Rows());
  if (const auto tiles = static_cast<unsigned>(rows.tiles.extent(0)); tiles > 0) {
    const Prefill<T> arguments{problem, rows.tiles.data(), out.data()};
    with_head_size(E, [&](auto size) {
      launch(context, "paged_attention of several rows", &prefill<T, size(), coded>,
             dim3(tiles, static_cast<unsigned>(problem.heads)), prefill_bytes<T, size(), coded>(),
             arguments);
    });
  }
  if (codes.wanted() && !fused) run(context, Fp8RoundRows<T>{.x = out, .to = codes});
}

}  // namespace

template <class T>
bool PagedAttention<T>::native(const Context& context, const PagedAttention& call) {
  if (call.out.size() == 0) return true;
  const std::size_t K = call.cache.heads(), P = call.cache.page_tokens;
  const std::size_t E = call.cache.head_size(), H = call.out.extent(1) / E;
  const PageMemory keys = call.cache.key_memory(), values = call.cache.value_memory();
  const bool served = serves(E) && P % chunk_rows == 0 && call.scale > 0 &&
                      H / K <= std::size_t{group_rows} && H <= 65535 &&
                      detail::all_aligned(call.qkv.data(), keys.data, values.data, call.out.data());
  if (!served) return false;
  int shift = 0;
  while ((std::size_t{1} << shift) < P) ++shift;
  const paged::Problem<T> problem{call.qkv.data(),
                                  size_of(call.qkv.extent(1)),
                                  keys,
                                  values,
                                  shift,
                                  size_of(H),
                                  size_of(K),
                                  static_cast<float>(call.scale),
                                  call.rows.segments.data(),
                                  call.rows.tables.data()};
  if (call.cache.coded())
    attend<true>(context, problem, call.rows, E, call.partial, call.out, call.coded);
  else
    attend<false>(context, problem, call.rows, E, call.partial, call.out, call.coded);
  return true;
}

TERN_INSTANTIATE_NATIVE(PagedAttention)

}  // namespace tern::ops
