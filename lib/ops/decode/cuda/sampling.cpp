/// Sampling of the next token, one block per row, with the rules of the portable sampling.
/// Logits have 16 bits, so the k-th largest and the one that fills the nucleus are found in four
/// passes of four bits, in bins private to each thread: no atomics. Weights are fixed-point
/// integers with 40 fractional bits from a float exponential; their sums do not depend on order.
#include "ops/decode/sampling.hpp"
#include "base/random.hpp"
#include "ops/core/cuda/kernels.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;
using Weight = unsigned long long;

constexpr int block_threads = 1024, block_warps = block_threads / warp_size;
constexpr int digit_bits = 4, bins = 1 << digit_bits, segments = 256;
constexpr unsigned whole_warp = 0xffffffffu;

template <class T>
constexpr unsigned infinity = std::is_same_v<T, fp16> ? 0x7c00u : 0x7f80u;

/// Integer that orders as the logit does; -0 is 0, NaN is -infinity.
template <class T>
__device__ unsigned key_of(unsigned bits) {
  if ((bits & 0x7fffu) > infinity<T>) bits = 0x8000u | infinity<T>;
  if (bits == 0x8000u) bits = 0;
  return bits & 0x8000u ? ~bits & 0xffffu : bits | 0x8000u;
}
template <class T>
__device__ float value_of(unsigned key) {
  return expand_pair<T>(key & 0x8000u ? key ^ 0x8000u : ~key & 0xffffu).x;
}
template <class T>
constexpr unsigned key_of_minus_infinity = 0x7fffu - infinity<T>;

template <class T>
struct Rows {
  const T* logits;
  std::size_t columns;
  int vocabulary;
  float factor;  // log2(e) / temperature
  Sampling options;
  const std::int32_t *ids, *numbers;
  std::int32_t* token;
};

/// Candidate tokens: those above `last`, and the first `ties` of those equal to it.
struct Kept {
  unsigned last;
  Weight ties;
};

template <class T>
struct Row {
  const T* logits;
  int vocabulary;
  float factor, largest;

  __device__ Weight weight(unsigned key) const {
    const float logit = value_of<T>(key);
    if (logit == largest) return Weight{1} << 40;  // also infinity, where the difference is NaN
    return static_cast<Weight>(exp2f((logit - largest) * factor) * 0x1p40f + 0.5f);
  }
  /// f(pack, its first token) for this thread's packs, in order; several loads are in flight.
  template <class F>
  __device__ void each_pack(const F& f) const {
    constexpr int at_once = 5, step = block_threads * pack_size;
    for (int first = threadIdx.x * pack_size; first < vocabulary; first += at_once * step) {
      uint4 packs[at_once];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        if (first + k * step < vocabulary)
          packs[k] = *reinterpret_cast<const uint4*>(logits + first + k * step);
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (first + k * step < vocabulary) f(packs[k], first + k * step);
      }
    }
  }
  /// f(key, token) for the tokens of a pack.
  template <class F>
  __device__ void each_of(const uint4& pack, int first, const F& f) const {
    const unsigned pairs[4] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
    for (int i = 0; i < pack_size; ++i)
      if (first + i < vocabulary) f(key_of<T>(pairs[i / 2] >> (16 * (i % 2)) & 0xffffu), first + i);
  }
  /// f(key, token) for this thread's tokens.
  template <class F>
  __device__ void each(const F& f) const {
    each_pack([&](const uint4& pack, int first) { each_of(pack, first, f); });
  }
  __device__ float largest_of(const uint4& pack, int first) const {
    const unsigned pairs[4] = {pack.x, pack.y, pack.z, pack.w};
    float found = -INFINITY;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = expand_pair<T>(pairs[i]);
      if (first + 2 * i < vocabulary) found = fmaxf(found, two.x);  // not NaN
      if (first + 2 * i + 1 < vocabulary) found = fmaxf(found, two.y);
    }
    return found;
  }
  /// The largest key of this thread's tokens, shifted by 32 bits, and the lowest of the tokens that
  /// have it, as what it lacks of 2^32 - 1; 0 if none is above -infinity.
  __device__ Weight top() const {
    float most = -INFINITY;
    int at = -1;
    each_pack([&](const uint4& pack, int first) {
      const float here = largest_of(pack, first);
      if (here > most) most = here, at = first;
    });
    Weight found = 0;
    if (at >= 0)
      each_of(*reinterpret_cast<const uint4*>(logits + at), at, [&](unsigned key, int token) {
        found = max(found, Weight{key} << 32 | (0xffffffffu - static_cast<unsigned>(token)));
      });
    return found;
  }
};

template <class Join>
__device__ Weight block_reduce(Weight value, const Join& join) {
  __shared__ Weight shared[block_warps];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value = join(value, __shfl_xor_sync(whole_warp, value, offset));
  __syncthreads();  // `shared` may still be read for the previous call
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  value = shared[lane];
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value = join(value, __shfl_xor_sync(whole_warp, value, offset));
  return value;
}
__device__ Weight block_sum(Weight value) {
  return block_reduce(value, [](Weight a, Weight b) { return a + b; });
}

/// Shortest prefix of the order whose weights reach target. own: (bins, threads).
template <class T, class F>
__device__ Kept select(const Row<T>& row, Weight target, const F& weight, Weight* own) {
  __shared__ Weight sums[bins];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  unsigned last = 0;
  Weight above = 0;
  for (int shift = 16 - digit_bits; shift >= 0; shift -= digit_bits) {
    for (int d = 0; d < bins; ++d) own[d * block_threads + threadIdx.x] = 0;
    row.each([&](unsigned key, int) {
      if ((key ^ last) >> shift < bins)
        own[(key >> shift & (bins - 1)) * block_threads + threadIdx.x] += weight(key);
    });
    __syncthreads();
    if (warp < bins) {
      Weight sum = 0;
      for (int t = lane; t < block_threads; t += warp_size) sum += own[warp * block_threads + t];
      for (int offset = warp_size / 2; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(whole_warp, sum, offset);
      if (lane == 0) sums[warp] = sum;
    }
    __syncthreads();
    int digit = bins - 1;  // the same in every thread
    for (; digit > 0 && above + sums[digit] < target; --digit) above += sums[digit];
    last |= static_cast<unsigned>(digit) << shift;
  }
  const Weight each = weight(last);
  return {last, (target - above + each - 1) / each};
}

template <class T>
__device__ Kept kept(const Row<T>& row, const Sampling& options, Weight* own) {
  Kept all{0, 0};  // every key is above 0
  if (options.top_k > 0 && options.top_k < row.vocabulary)
    all = select(
        row, static_cast<Weight>(options.top_k), [](unsigned) { return Weight{1}; }, own);
  if (options.top_p >= 1) return all;
  Weight sum = 0;
  row.each([&](unsigned key, int) {
    if (key > all.last) sum += row.weight(key);
  });
  Weight total = block_sum(sum);
  if (all.ties > 0) total += all.ties * row.weight(all.last);
  const double reach = ceil(options.top_p * static_cast<double>(total));
  const Weight target = reach < 1 ? 1 : min(total, static_cast<Weight>(reach));
  return select(
      row, target, [&](unsigned key) { return row.weight(key); }, own);
}

/// Weights of the vocabulary's segments, one warp each: tokens above Kept::last, and equal to it.
struct Segments {
  Weight above[segments];
  unsigned equal[segments];
};

__device__ Weight warp_total(Weight value) {
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}
__device__ Weight warp_scan(Weight value) {
  for (int offset = 1; offset < warp_size; offset *= 2) {
    const Weight before = __shfl_up_sync(whole_warp, value, offset);
    if (static_cast<int>(threadIdx.x) % warp_size >= offset) value += before;
  }
  return value;
}

template <class T>
struct Draw {
  const Row<T>& row;
  Kept keep;
  Weight tie;
  int length;  // tokens per segment

  __device__ Draw(const Row<T>& of, const Kept& k)
      : row(of),
        keep(k),
        tie(k.ties > 0 ? of.weight(k.last) : 0),
        length(divide_up(of.vocabulary, segments)) {}

  __device__ unsigned key(int token) const {
    return key_of<T>(reinterpret_cast<const unsigned short*>(row.logits)[token]);
  }
  __device__ Weight sum(Weight above, Weight equal) const {
    return above + tie * min(equal, keep.ties);
  }
  __device__ void weigh(Segments& all) const {
    const int lane = threadIdx.x % warp_size;
    for (int s = threadIdx.x / warp_size; s < segments; s += block_warps) {
      Weight above = 0, equal = 0;
      const int end = min(row.vocabulary, (s + 1) * length);
      for (int i = s * length + lane; i < end; i += warp_size) {
        const unsigned k = key(i);
        if (k > keep.last) above += row.weight(k);
        equal += k == keep.last;
      }
      above = warp_total(above), equal = warp_total(equal);
      if (lane == 0) all.above[s] = above, all.equal[s] = static_cast<unsigned>(equal);
    }
  }
  /// First token at which the cumulative kept weight exceeds `uniform` times the total. One warp.
  __device__ int walk(const Segments& all, double uniform) const {
    Weight above = 0, equal = 0;
    for (int s = 0; s < segments; ++s) above += all.above[s], equal += all.equal[s];
    const Weight total = sum(above, equal);
    const Weight drawn = min(total - 1, static_cast<Weight>(uniform * static_cast<double>(total)));
    above = equal = 0;
    int s = 0;
    while (sum(above + all.above[s], equal + all.equal[s]) <= drawn)
      above += all.above[s], equal += all.equal[s], ++s;
    const int lane = threadIdx.x % warp_size, end = min(row.vocabulary, (s + 1) * length);
    for (int first = s * length;; first += warp_size) {
      const int i = first + lane;
      const unsigned k = i < end ? key(i) : 0;
      const Weight upto = warp_scan(i < end && k > keep.last ? row.weight(k) : 0) + above;
      const Weight same = warp_scan(i < end && k == keep.last) + equal;
      const unsigned found = __ballot_sync(whole_warp, sum(upto, same) > drawn);
      if (found) return first + __ffs(static_cast<int>(found)) - 1;
      above = __shfl_sync(whole_warp, upto, warp_size - 1);
      equal = __shfl_sync(whole_warp, same, warp_size - 1);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads) sample_row_draws(const Rows<T> args) {
  extern __shared__ Weight own[];  // (bins, threads), where something is selected
  __shared__ Segments all;
  const int b = blockIdx.x;
  Row<T> row{args.logits + b * args.columns, args.vocabulary, args.factor, 0};
  const Weight top = block_reduce(row.top(), [](Weight a, Weight c) { return max(a, c); });
  const auto key = static_cast<unsigned>(top >> 32);
  if (key <= key_of_minus_infinity<T> || args.options.temperature == 0) {
    if (threadIdx.x == 0)
      args.token[b] = key <= key_of_minus_infinity<T>
                          ? -1
                          : static_cast<std::int32_t>(0xffffffffu - static_cast<unsigned>(top));
    return;
  }
  row.largest = value_of<T>(key);
  const Draw<T> draw(row, kept(row, args.options, own));
  draw.weigh(all);
  __syncthreads();
  if (threadIdx.x >= warp_size) return;
  const Random4 words = philox(
      args.options.seed, Stream::sampling, static_cast<std::uint32_t>(args.ids[2 * b + 1]),
      static_cast<std::uint32_t>(args.ids[2 * b]), static_cast<std::uint32_t>(args.numbers[b]));
  const double uniform =
      static_cast<double>(((static_cast<std::uint64_t>(words.word[0]) << 32) | words.word[1]) >>
                          11) *
      0x1p-53;
  const int token = draw.walk(all, uniform);
  if (threadIdx.x == 0) args.token[b] = token;
}

}  // namespace

template <class T>
bool SampleRows<T>::native(const Context& context, const SampleRows& call) {
  const std::size_t rows = call.logits.extent(0), columns = call.logits.extent(1);
  if (rows == 0) return true;
  if (columns % pack_size != 0 || !all_aligned(call.logits.data()) || call.vocabulary > (1u << 24))
    return false;
  const Rows<T> args{
      call.logits.data(),
      columns,
      static_cast<int>(call.vocabulary),
      call.options.temperature > 0 ? log2_e / static_cast<float>(call.options.temperature) : 0,
      call.options,
      call.ids.data(),
      call.numbers.data(),
      call.token.data()};
  const bool selects =
      call.options.temperature > 0 && (call.options.top_k > 0 || call.options.top_p < 1);
  const int bytes = selects ? static_cast<int>(bins * block_threads * sizeof(Weight)) : 0;
  cudaFuncSetAttribute(sample_row_draws<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       static_cast<int>(bins * block_threads * sizeof(Weight)));
  sample_row_draws<<<static_cast<unsigned>(rows), block_threads, bytes, stream_of(context)>>>(args);
  check_launch("sample_rows");
  return true;
}

TERN_INSTANTIATE_NATIVE(SampleRows)

}  // namespace tern::ops
