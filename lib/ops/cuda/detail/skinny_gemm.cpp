#include "ops/cuda/detail/skinny_gemm.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/detail/skinny_gemm_kernel.hpp"

namespace tern::ops::cuda {
namespace {

using namespace skinny;

constexpr int max_groups = 4;  // 256 columns

/// Squares of rows that a launch takes. Four warpgroups that convert E4M3 have registers for one.
template <class W>
constexpr int max_squares(int groups) {
  return sizeof(W) == 1 && groups == max_groups ? 1 : 2;
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

/// The least time of a block, in numbers of w of two bytes, of which a step reads `width`; the rows
/// of x count as half their number, since they come from L2. The same for any number of rows, as
/// are then a row's bits. W: type of w; `unit` divides the columns of a block.
template <class T, class W, int... groups>
Division divide(int columns, int steps, int unit, std::integer_sequence<int, groups...>) {
  constexpr int bytes = sizeof(W), x_columns = 64 / bytes, exchange = 600 / bytes;
  Division best;
  int least = std::numeric_limits<int>::max();
  const auto consider = [&](int count, const std::array<int, max_parts>& clusters) {
    if (max_squares<W>(count) < 2 && best.groups > 0) return;  // more rows would read w twice
    for (int parts = 1; parts <= std::min(max_parts, steps); ++parts) {
      const int tiles = clusters[static_cast<std::size_t>(parts - 1)];
      if (tiles == 0) continue;
      const int width = unit * detail::divide_up(detail::divide_up(columns, tiles), unit);
      if (detail::divide_up(width, hopper::product_rows) != count) continue;
      const int time =
          detail::divide_up(steps, parts) * (width + x_columns) + (parts > 1 ? exchange : 0);
      if (time < least) least = time, best = {count, parts, width};
    }
  };
  (consider(groups + 1,
            resident_clusters<T, Shape<max_squares<W>(groups + 1), groups + 1, bytes>>()),
   ...);
  return best;
}

After after(const std::optional<Activation>& activation) {
  if (!activation) return After::nothing;
  return *activation == Activation::swiglu ? After::swiglu
         : *activation == Activation::gelu ? After::gelu
                                           : After::relu2;
}

/// Copies do not interpret the numbers: it serves any type of 16 or 8 bits.
template <class T>
CUtensorMap make_map(Matrix<const T> m, int tile_rows) {
  constexpr bool bytes = sizeof(T) == 1;
  const cuuint64_t extents[] = {m.extent(1), m.extent(0)}, pitch[] = {m.extent(1) * sizeof(T)};
  const cuuint32_t box[] = {hopper::tile_width, static_cast<cuuint32_t>(tile_rows)};
  const cuuint32_t strides[] = {1, 1};
  CUtensorMap map;
  const CUresult result = cuTensorMapEncodeTiled(
      &map, bytes ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
      const_cast<T*>(m.data()), extents, pitch, box, strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      bytes ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  TERN_REQUIRE(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled of {} x {}: {}", m.extent(0),
               m.extent(1), static_cast<int>(result));
  return map;
}

}  // namespace

template <class T>
const CUtensorMap& SkinnyGemm::map_of(Matrix<const T> m, int tile_rows) {
  const Key key{m.data(), m.extent(0), m.extent(1), tile_rows};
  auto at = maps_.find(key);
  if (at == maps_.end()) at = maps_.emplace(key, make_map<T>(m, tile_rows)).first;
  return at->second;
}

template <class T, class W>
bool SkinnyGemm::launch(cudaStream_t stream, const SkinnyProduct<T>& product, Matrix<const W> w) {
  const std::size_t N = product.x.extent(0), I = product.x.extent(1), O = product.y.extent(1);
  const int steps = static_cast<int>(detail::divide_up<std::size_t>(I, hopper::tile_width));
  const bool paired = product.activation && gated(*product.activation);
  using Groups = std::make_integer_sequence<int, max_groups>;
  const Division by = divide<T, W>(static_cast<int>(w.extent(0)), steps, paired ? 16 : 8, Groups());
  const std::size_t most = hopper::product_rows * max_squares<W>(by.groups);
  if (N > most) {
    const auto part = [&](std::size_t first, std::size_t rows) {
      SkinnyProduct<T> some = product;
      some.x = as_matrix(product.x.data() + first * I, rows, I);
      some.y = as_matrix(product.y.data() + first * O, rows, O);
      return launch<T, W>(stream, some, w);
    };
    return part(0, most) && part(most, N - most);
  }
  const Result<T> result{
      product.y.data(), static_cast<int>(N),       static_cast<int>(O),      by.width, steps,
      product.added,    product.coded.undo.data(), after(product.activation)};
  const int columns = paired ? by.width / 2 : by.width;
  const auto started = [&]<class S>() {
    resident_clusters<T, S>();  // allows its shared memory
    const CUtensorMap &of_w = map_of<W>(w, columns), &of_x = map_of<T>(product.x, S::rows);
    const Launch launch(detail::divide_up(static_cast<int>(O), columns), by.parts, S::threads,
                        S::shared_bytes, stream, product.early);
    cudaLaunchKernelEx(&launch.config, &skinny::product<T, S>, of_w, of_x, result);
    detail::check_launch("product of few rows");
    return true;
  };
  const auto with = [&]<int squares, int... g>(std::integer_sequence<int, g...>) {
    return ((by.groups == g + 1 &&
             started.template
             operator()<Shape<std::min(squares, max_squares<W>(g + 1)), g + 1, sizeof(W)>>()) ||
            ...);
  };
  return N <= hopper::product_rows ? with.template operator()<1>(Groups())
                                   : with.template operator()<2>(Groups());
}

template <class T>
bool SkinnyGemm::multiply(cudaStream_t stream, const SkinnyProduct<T>& p) {
  const std::size_t N = p.x.extent(0), I = p.x.extent(1), O = p.y.extent(1);
  const void* const w = p.coded.wanted() ? static_cast<const void*>(p.coded.codes.data())
                                         : static_cast<const void*>(p.w.data());
  if (!detail::runs_sm_90a() || N > max_rows || I == 0 || I % 8 != 0 || O % 8 != 0 ||
      !detail::all_aligned(p.x.data(), w, p.coded.undo.data(), p.y.data()))
    return false;
  return p.coded.wanted() ? launch<T, std::uint8_t>(stream, p, p.coded.codes)
                          : launch<T, T>(stream, p, p.w);
}

template bool SkinnyGemm::multiply(cudaStream_t, const SkinnyProduct<bf16>&);
template bool SkinnyGemm::multiply(cudaStream_t, const SkinnyProduct<fp16>&);

}  // namespace tern::ops::cuda
