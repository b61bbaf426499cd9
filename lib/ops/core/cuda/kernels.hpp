/// Shared by the kernels of this folder: 16-byte packs of 16-bit numbers, sums over warps and blocks,
/// launches.
#pragma once
#include <cstdint>

#include "base/error.hpp"
#include "ops/core/context.hpp"
#include "ops/core/cuda/halves.hpp"

namespace tern::ops::cuda::detail {

constexpr int warp_size = 32;
constexpr int pack_size = 8;  // 16-bit numbers in 16 bytes
constexpr float log2_e = 1.4426950408889634f;

/// Eight 16-bit numbers, moved by one 16-byte access and computed with in float.
struct Pack {
  float value[pack_size];

  template <class T>
  __device__ static Pack load(const T* from) {
    static_assert(is_half<T>);
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    Pack pack;
    expand<T>(words.x, pack.value), expand<T>(words.y, pack.value + 2);
    expand<T>(words.z, pack.value + 4), expand<T>(words.w, pack.value + 6);
    return pack;
  }
  template <class T>
  __device__ void store(T* to) const {
    static_assert(is_half<T>);
    *reinterpret_cast<uint4*>(to) = {join<T>(0), join<T>(2), join<T>(4), join<T>(6)};
  }
  __device__ static Pack load(const float* from) {
    Pack pack;
    *reinterpret_cast<float4*>(pack.value) = reinterpret_cast<const float4*>(from)[0];
    *reinterpret_cast<float4*>(pack.value + 4) = reinterpret_cast<const float4*>(from)[1];
    return pack;
  }
  __device__ void store(float* to) const {
    reinterpret_cast<float4*>(to)[0] = *reinterpret_cast<const float4*>(value);
    reinterpret_cast<float4*>(to)[1] = *reinterpret_cast<const float4*>(value + 4);
  }

 private:
  template <class T>
  __device__ static void expand(std::uint32_t word, float* to) {
    const float2 pair = expand_pair<T>(word);
    to[0] = pair.x, to[1] = pair.y;
  }
  template <class T>
  __device__ std::uint32_t join(int i) const {
    return round_pair<T>(value[i], value[i + 1]);
  }
};

/// A pack as stored: half the registers of a Pack.
template <class T>
struct RawPack {
  uint4 words;
  __device__ static RawPack load(const T* from) { return {*reinterpret_cast<const uint4*>(from)}; }
  __device__ static RawPack round(const Pack& pack) {
    RawPack result;
    pack.store(reinterpret_cast<T*>(&result.words));
    return result;
  }
  __device__ void store(T* to) const { *reinterpret_cast<uint4*>(to) = words; }
  __device__ Pack pack() const { return Pack::load(reinterpret_cast<const T*>(&words)); }
};

__device__ inline float warp_sum(float value) {
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

/// The larger magnitude of the two; a NaN is larger than any number.
__device__ inline float larger(float magnitude, float value) {
  return __uint_as_float(max(__float_as_uint(magnitude), __float_as_uint(value) & 0x7fffffffu));
}
__device__ inline float larger(float magnitude, const Pack& pack) {
  for (const float value : pack.value) magnitude = larger(magnitude, value);
  return magnitude;
}

/// Sum over a group of `threads` neighboring threads, on all of them: a warp, or else the whole
/// block (then `shared` has one float per warp, and the call is a barrier).
template <int threads>
__device__ float group_sum(float value, float* shared) {
  value = warp_sum(value);
  if constexpr (threads > warp_size) {
    __syncthreads();  // `shared` may still be read for the previous sum
    if (threadIdx.x % warp_size == 0) shared[threadIdx.x / warp_size] = value;
    __syncthreads();
    value = 0;
    for (int w = 0; w < threads / warp_size; ++w) value += shared[w];
  }
  return value;
}

/// The largest magnitude of a group, likewise; a NaN is larger than any number.
template <int threads>
__device__ float group_max(float magnitude, float* shared) {
  const std::uint32_t bits = __float_as_uint(magnitude) & 0x7fffffffu;
  float most = __uint_as_float(__reduce_max_sync(0xffffffffu, bits));
  if constexpr (threads > warp_size) {
    __syncthreads();
    if (threadIdx.x % warp_size == 0) shared[threadIdx.x / warp_size] = most;
    __syncthreads();
    for (int w = 0; w < threads / warp_size; ++w) most = larger(most, shared[w]);
  }
  return most;
}

/// Raises *magnitude, as float's bits, to the largest of the warp's `most` rounded to bf16. All
/// threads of the warp take part. A maximum does not depend on the order of atomics, and few are
/// needed: most warps find a larger one there.
__device__ inline void raise_magnitude(std::uint32_t* magnitude, float most) {
  const std::uint32_t bits = __reduce_max_sync(0xffffffffu, __float_as_uint(most) & 0x7fffffffu);
  if (threadIdx.x % warp_size != 0) return;
  const std::uint32_t rounded = std::uint32_t(bf16(__uint_as_float(bits)).bits) << 16;
  if (rounded > *static_cast<volatile std::uint32_t*>(magnitude)) atomicMax(magnitude, rounded);
}
/// The address that raise_magnitude takes, set to zero; null for an empty one.
inline std::uint32_t* start_magnitude(const Vector<std::uint32_t>& magnitude, cudaStream_t stream) {
  if (magnitude.size() == 0) return nullptr;
  cudaMemsetAsync(magnitude.data(), 0, sizeof(std::uint32_t), stream);
  return magnitude.data();
}

inline cudaStream_t stream_of(const Context& context) { return context.space.cuda_stream(); }

inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  TERN_REQUIRE(error == cudaSuccess, "{}: {}", kernel, cudaGetErrorString(error));
}

// Programmatic dependent launch (CUDA programming guide): a kernel started with launch_early() may
// begin while its predecessor still runs, and reads no other kernel's results before
// await_previous(). In kernels started otherwise both calls do nothing.
__device__ inline void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
/// The next kernel may begin from here on.
__device__ inline void release_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

/// Attribute of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}
/// Major compute capability of the current device; queried once.
inline int compute_capability() {
  static const int major = device_attribute(cudaDevAttrComputeCapabilityMajor);
  return major;
}

/// Whether kernels with sm_90a instructions run on the current device.
inline bool runs_sm_90a() {
#if defined(TERN_SM90A)
  return compute_capability() == 9;
#else
  return false;
#endif
}

inline cudaLaunchAttribute early_attribute() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

/// The kernel must call await_previous() in all of its threads.
template <class... Parameters, class... Arguments>
void launch_early(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                  std::size_t shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute = early_attribute();
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = compute_capability() >= 9 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  check_launch(name);
}

template <class I>
__host__ __device__ constexpr I divide_up(I a, I b) {
  return (a + b - 1) / b;
}

/// Threads [0, n) in blocks of `threads`.
inline unsigned blocks_for(std::size_t n, unsigned threads) {
  return static_cast<unsigned>(divide_up<std::size_t>(n, threads));
}

inline bool aligned_16(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}
/// All of the pointers allow 16-byte accesses.
template <class... P>
bool all_aligned(const P*... pointers) {
  return (aligned_16(pointers) && ...);
}

/// Multiprocessors of the current device; queried once.
inline int multiprocessors() {
  static const int count = device_attribute(cudaDevAttrMultiProcessorCount);
  return count;
}

}  // namespace tern::ops::cuda::detail
