#include <cmath>

#include "ops/core/cuda/kernels.hpp"
#include "ops/optimizer/optimizer.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int block_threads = 256;
constexpr int group = 4;  // floats in 16 bytes

template <class T>
struct Update {
  float *master, *m, *v;
  const float *gradient, *scale;
  T* copy;  // may be null
  std::size_t n;
  float beta1, beta2, keep, step_size, root_correction, eps;
};

template <class T>
__device__ void update_one(const Update<T>& a, float scale, float gradient, float& w, float& m,
                           float& v) {
  const float g = gradient * scale;
  m = a.beta1 * m + (1 - a.beta1) * g;
  v = a.beta2 * v + (1 - a.beta2) * g * g;
  w = w * a.keep - a.step_size * m / (sqrtf(v) * a.root_correction + a.eps);
}

template <class T>
__global__ void adamw_packs(Update<T> a) {
  const float scale = *a.scale;
  if (!(scale > 0)) return;  // step skipped: 0 or NaN
  const std::size_t at = (std::size_t(blockIdx.x) * block_threads + threadIdx.x) * group;
  if (at + group <= a.n) {
    float4 w = *reinterpret_cast<float4*>(a.master + at), m = *reinterpret_cast<float4*>(a.m + at),
           v = *reinterpret_cast<float4*>(a.v + at);
    const float4 g = *reinterpret_cast<const float4*>(a.gradient + at);
    update_one(a, scale, g.x, w.x, m.x, v.x), update_one(a, scale, g.y, w.y, m.y, v.y);
    update_one(a, scale, g.z, w.z, m.z, v.z), update_one(a, scale, g.w, w.w, m.w, v.w);
    *reinterpret_cast<float4*>(a.master + at) = w;
    *reinterpret_cast<float4*>(a.m + at) = m;
    *reinterpret_cast<float4*>(a.v + at) = v;
    if (a.copy)
      *reinterpret_cast<uint2*>(a.copy + at) = {round_pair<T>(w.x, w.y), round_pair<T>(w.z, w.w)};
  } else {
    for (std::size_t i = at; i < a.n; ++i) {
      update_one(a, scale, a.gradient[i], a.master[i], a.m[i], a.v[i]);
      if (a.copy) a.copy[i] = T(a.master[i]);
    }
  }
}

}  // namespace

template <class T>
bool AdamWUpdate<T>::native(const Context& context, const AdamWUpdate& call) {
  if (call.master.size() == 0) return true;
  T* copy_data = call.copy.size() ? call.copy.data() : nullptr;
  if (!all_aligned(call.master.data(), call.gradient.data(), call.m.data(), call.v.data(),
                   copy_data))
    return false;
  const double t = static_cast<double>(call.rule.step);
  const Update<T> a{call.master.data(),
                    call.m.data(),
                    call.v.data(),
                    call.gradient.data(),
                    call.gradient_scale.data(),
                    copy_data,
                    call.master.size(),
                    static_cast<float>(call.rule.beta1),
                    static_cast<float>(call.rule.beta2),
                    static_cast<float>(1 - call.rule.lr * call.rule.weight_decay),
                    static_cast<float>(call.rule.lr / (1 - std::pow(call.rule.beta1, t))),
                    static_cast<float>(1 / std::sqrt(1 - std::pow(call.rule.beta2, t))),
                    static_cast<float>(call.rule.eps)};
  const std::size_t threads = divide_up<std::size_t>(a.n, group);
  adamw_packs<<<blocks_for(threads, block_threads), block_threads, 0, stream_of(context)>>>(a);
  check_launch("adamw_update");
  return true;
}

TERN_INSTANTIATE_NATIVE(AdamWUpdate)

}  // namespace tern::ops
