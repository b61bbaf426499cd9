#include "ops/linear/cuda/detail/skinny_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "memory/narrow.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/linear/cuda/detail/skinny_gemm_kernel.hpp"

namespace tern::ops::cuda {
namespace {

using namespace skinny;

constexpr int max_groups = 4;  // 256 columns

/// Squares of rows that a launch takes. Four warpgroups have registers for one if there are codes.
template <Codes codes>
constexpr int max_squares(int groups) {
  return codes != Codes::none && groups == max_groups ? 1 : 2;
}

struct Launch {
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attributes[2];

  Launch(int tiles, int parts, int threads, int bytes, cudaStream_t stream, bool early) {
    config.gridDim = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(parts));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
    config.stream = stream;
    config.attrs = attributes;
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {1, static_cast<unsigned>(parts), 1};
    attributes[1] = detail::early_attribute();
    config.numAttrs = early ? 2 : 1;
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
};

/// Clusters of 1 to max_parts blocks that are resident on the device at once.
template <class T, class S>
const std::array<int, max_parts>& resident_clusters() {
  static const auto counts = [] {
    cudaFuncSetAttribute(&product<T, S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         S::shared_bytes);
    std::array<int, max_parts> result{};
    for (int parts = 1; parts <= max_parts; ++parts) {
      const Launch launch(1, parts, S::threads, S::shared_bytes, nullptr, false);
      int& count = result[static_cast<std::size_t>(parts - 1)];
      if (cudaOccupancyMaxActiveClusters(&count, &product<T, S>, &launch.config) != cudaSuccess)
        count = 0;
    }
    cudaGetLastError();
    return result;
  }();
  return counts;
}

/// How the columns and steps of a product are shared among blocks.
struct Division {
  int groups = 0, parts = 0, width = 0;  // groups 0: not served
};

/// Times in rows of w, of which a step of a block reads `width`. Fitted to all divisions of 17 maps
/// for 64 rows on an H200; the division chosen takes 2 to 4% longer than the fastest, on average.
struct Costs {
  int x;         // of a step: its tile of x, which comes from L2
  int exchange;  // of sums in parts, per column
  int large;     // of a cluster of more than four blocks
};
template <Codes codes>
constexpr Costs costs = codes == Codes::none   ? Costs{32, 3, 400}
                        : codes == Codes::of_w ? Costs{96, 4, 0}
                                               : Costs{32, 0, 400};

/// The least time of a block. The same for any number of rows, as are then a row's bits. `unit`
/// divides the columns of a block.
template <class T, Codes codes, int... groups>
Division divide(int columns, int steps, int unit, std::integer_sequence<int, groups...>) {
  constexpr Costs cost = costs<codes>;
  Division best;
  int least = std::numeric_limits<int>::max();
  const auto consider = [&](int count, const std::array<int, max_parts>& clusters) {
    if (max_squares<codes>(count) < 2 && best.groups > 0) return;  // more rows would read w twice
    for (int parts = 1; parts <= std::min(max_parts, steps); ++parts) {
      const int tiles = clusters[static_cast<std::size_t>(parts - 1)];
      if (tiles == 0) continue;
      const int width = unit * detail::divide_up(detail::divide_up(columns, tiles), unit);
      if (detail::divide_up(width, hopper::product_rows) != count) continue;
      const int time = detail::divide_up(steps, parts) * (width + cost.x) +
                       (parts > 1 ? cost.exchange * width : 0) + (parts > 4 ? cost.large : 0);
      if (time < least) least = time, best = {count, parts, width};
    }
  };
  (consider(groups + 1,
            resident_clusters<T, Shape<max_squares<codes>(groups + 1), groups + 1, codes>>()),
   ...);
  return best;
}

/// Empty for an activation that the kernel does not compute.
std::optional<Epilogue> epilogue_of(const std::optional<Activation>& activation) {
  if (!activation) return Epilogue::nothing;
  switch (*activation) {
    case Activation::swiglu:
      return Epilogue::swiglu;
    case Activation::gelu:
      return Epilogue::gelu;
    case Activation::relu2:
      return Epilogue::relu2;
  }
  return std::nullopt;
}

/// Copies do not interpret the numbers: it serves any type of 16 or 8 bits.
template <class T>
CUtensorMap make_map(Matrix<const T> m, int tile_rows, int tile_columns) {
  constexpr bool bytes = sizeof(T) == 1;
  const cuuint64_t extents[] = {m.extent(1), m.extent(0)}, pitch[] = {m.extent(1) * sizeof(T)};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(tile_columns),
                            static_cast<cuuint32_t>(tile_rows)};
  const cuuint32_t strides[] = {1, 1};
  CUtensorMap map;
  const CUresult result = cuTensorMapEncodeTiled(
      &map, bytes ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
      const_cast<T*>(m.data()), extents, pitch, box, strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      tile_columns * sizeof(T) == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  TERN_REQUIRE(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled of {} x {}: {}", m.extent(0),
               m.extent(1), static_cast<int>(result));
  return map;
}

}  // namespace

template <class T>
const CUtensorMap& SkinnyGemm::map_of(Matrix<const T> m, int tile_rows, int tile_columns) {
  const Key key{m.data(), m.extent(0), m.extent(1), tile_rows, tile_columns};
  auto at = maps_.find(key);
  if (at == maps_.end()) at = maps_.emplace(key, make_map<T>(m, tile_rows, tile_columns)).first;
  return at->second;
}

template <Codes codes, class T, class X, class W>
bool SkinnyGemm::launch(cudaStream_t stream, const SkinnyProduct<T>& product, Matrix<const X> x,
                        Matrix<const W> w) {
  constexpr int step = Step<codes>::numbers;
  const std::size_t N = x.extent(0), O = product.y.extent(1);
  const int steps = static_cast<int>(detail::divide_up<std::size_t>(x.extent(1), step));
  const bool paired = product.activation && gated(*product.activation);
  using Groups = std::make_integer_sequence<int, max_groups>;
  const Division by =
      divide<T, codes>(static_cast<int>(w.extent(0)), steps, paired ? 16 : 8, Groups());
  const std::size_t most = hopper::product_rows * max_squares<codes>(by.groups);
  if (N > most) {
    const auto part = [&](std::size_t first, std::size_t rows) {
      SkinnyProduct<T> some = product;
      some.y = rows_of(product.y, {first, rows});
      some.coded_x = product.coded_x.rows({first, rows});
      return launch<codes, T>(stream, some, rows_of(x, {first, rows}), w);
    };
    return part(0, most) && part(most, N - most);
  }
  const Result<T> result{product.y.data(),
                         static_cast<int>(N),
                         static_cast<int>(O),
                         8 * detail::divide_up(static_cast<int>(N), 8),
                         by.width,
                         steps,
                         product.added,
                         product.coded_w.undo.data(),
                         product.coded_x.undo.data(),
                         *epilogue_of(product.activation),
                         paired};
  const int columns = paired ? by.width / 2 : by.width;
  const auto started = [&]<class S>() {
    resident_clusters<T, S>();  // allows its shared memory
    const CUtensorMap &of_w = map_of<W>(w, columns, step),
                      &of_x = map_of<X>(x, result.x_rows, step);
    const Launch launch(detail::divide_up(static_cast<int>(O), columns), by.parts, S::threads,
                        S::shared_bytes, stream, product.early);
    cudaLaunchKernelEx(&launch.config, &skinny::product<T, S>, of_w, of_x, result);
    detail::check_launch("skinny GEMM");
    return true;
  };
  const auto with = [&]<int squares, int... g>(std::integer_sequence<int, g...>) {
    return ((by.groups == g + 1 &&
             started.template
             operator()<Shape<std::min(squares, max_squares<codes>(g + 1)), g + 1, codes>>()) ||
            ...);
  };
  return N <= hopper::product_rows ? with.template operator()<1>(Groups())
                                   : with.template operator()<2>(Groups());
}

template <class T>
bool SkinnyGemm::multiply(cudaStream_t stream, const SkinnyProduct<T>& p) {
  const std::size_t N = p.x.extent(0), I = p.x.extent(1), O = p.y.extent(1);
  using Bytes = Matrix<const std::uint8_t>;
  const Bytes x = p.coded_x.codes, w = p.coded_w.codes;
  if (!detail::runs_sm_90a() || N > max_rows || I == 0 || I % 8 != 0 || O % 8 != 0 ||
      !detail::all_aligned(p.x.data(), p.w.data(), x.data(), w.data(), p.coded_w.undo.data(),
                           p.y.data()) ||
      !epilogue_of(p.activation))
    return false;
  if (p.coded_x.wanted()) return launch<Codes::of_both, T>(stream, p, x, w);
  return p.coded_w.wanted() ? launch<Codes::of_w, T>(stream, p, p.x, w)
                            : launch<Codes::none, T>(stream, p, p.x, p.w);
}

template bool SkinnyGemm::multiply(cudaStream_t, const SkinnyProduct<bf16>&);
template bool SkinnyGemm::multiply(cudaStream_t, const SkinnyProduct<fp16>&);

}  // namespace tern::ops::cuda
