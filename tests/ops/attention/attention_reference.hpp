/// Attention written as its definition, dense and in double, and tensors to test it with.
#pragma once
#include <Kokkos_Core.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "ops/ops.hpp"

namespace tern::test {

/// A (B, T, heads, E) tensor that is a part of a wider buffer, as q, k and v are; the host's copy
/// is dense, in double, holding exactly what the device holds.
template <class T>
class Tensor {
 public:
  Tensor(int b, int t, int h, int e, int columns_before = 0, int columns_after = 0)
      : batch(b),
        tokens(t),
        heads(h),
        size(e),
        width_(columns_before + heads * size + columns_after),
        before_(columns_before),
        buffer_("tensor", static_cast<std::size_t>(batch) * tokens * width_),
        host(static_cast<std::size_t>(batch) * tokens * heads * size) {}

  Heads<T> view() const {
    return heads_of(as_matrix<T>(buffer_.data(), static_cast<std::size_t>(batch) * tokens, width_),
                    before_, batch, tokens, heads, size);
  }
  std::size_t at(int b, int t, int h, int e) const {
    return ((static_cast<std::size_t>(b) * tokens + t) * heads + h) * size + e;
  }
  /// Standard normal numbers, times `deviation`.
  Tensor& fill(std::uint32_t seed, double deviation = 1) {
    for (std::size_t i = 0; i < host.size(); ++i) {
      const Random4 r = philox(seed, Stream::test, 0, 0, static_cast<std::uint32_t>(i));
      host[i] = deviation * normal2(r.word[0], r.word[1]).first;
    }
    return upload();
  }
  /// Rounds host to T and copies it to the device; the padding around the tensor becomes NaN.
  Tensor& upload() {
    auto mirror = Kokkos::create_mirror_view(buffer_);
    Kokkos::deep_copy(mirror, static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
    each([&](std::size_t inside, std::size_t i) {
      mirror(inside) = static_cast<T>(host[i]);
      host[i] = static_cast<double>(mirror(inside));
    });
    Kokkos::deep_copy(buffer_, mirror);
    return *this;
  }
  const std::vector<double>& download() {
    auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), buffer_);
    each([&](std::size_t inside, std::size_t i) { host[i] = static_cast<double>(mirror(inside)); });
    return host;
  }
  /// Whether the padding around the tensor is still NaN.
  bool surroundings_untouched() const {
    auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), buffer_);
    std::vector<char> own(mirror.size(), 0);
    each([&](std::size_t inside, std::size_t) { own[inside] = 1; });
    for (std::size_t i = 0; i < mirror.size(); ++i)
      if (!own[i] && !std::isnan(static_cast<double>(mirror(i)))) return false;
    return true;
  }

  int batch, tokens, heads, size;

 private:
  template <class F>
  void each(const F& f) const {
    for (int b = 0, i = 0; b < batch; ++b)
      for (int t = 0; t < tokens; ++t)
        for (int j = 0; j < heads * size; ++j, ++i)
          f((static_cast<std::size_t>(b) * tokens + t) * width_ + before_ + j,
            static_cast<std::size_t>(i));
  }
  int width_, before_;
  Kokkos::View<T*, DeviceMemory> buffer_;

 public:
  std::vector<double> host;
};

/// (rows, columns) numbers on the device, such as lse.
template <class A>
struct Statistics {
  Statistics(int n, int m) : rows(n), columns(m), data("rows", static_cast<std::size_t>(n) * m) {}
  Matrix<A> view() const { return as_matrix<A>(data.data(), rows, columns); }
  std::vector<double> download() const {
    auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), data);
    return {mirror.data(), mirror.data() + mirror.size()};
  }
  int rows, columns;
  Kokkos::View<A*, DeviceMemory> data;
};

struct AttentionCase {
  int batch, queries, keys, heads, kv_heads, size;
  ops::Pattern pattern;
};

/// out, lse and, if dout is not empty, dq, dk, dv.
struct DenseAttention {
  std::vector<double> out, lse, dq, dk, dv;
};

/// The definition with arithmetic in A; `out` is rounded to Stored before delta is computed from
/// it, and so are the results, as in any implementation that stores them.
template <class A, class Stored = A>
DenseAttention dense_attention(const AttentionCase& c, double scale, const std::vector<double>& q,
                               const std::vector<double>& k, const std::vector<double>& v,
                               const std::vector<double>& dout) {
  const std::size_t nq = q.size(), nk = k.size();
  const A factor = static_cast<A>(scale), none = -std::numeric_limits<A>::infinity();
  std::vector<A> out(nq), dq(nq), dk(nk), dv(nk), p(c.keys), dp(c.keys);
  DenseAttention r;
  r.lse.resize(static_cast<std::size_t>(c.batch) * c.heads * c.queries);
  const auto index = [&](int b, int t, int tokens, int h, int heads) {
    return ((static_cast<std::size_t>(b) * tokens + t) * heads + h) * c.size;
  };
  for (int b = 0; b < c.batch; ++b)
    for (int h = 0; h < c.heads; ++h)
      for (int i = 0; i < c.queries; ++i) {
        const int kv = h / (c.heads / c.kv_heads);
        const std::size_t qi = index(b, i, c.queries, h, c.heads);
        const auto key = [&](int j) { return index(b, j, c.keys, kv, c.kv_heads); };
        const auto dot = [&](const std::vector<double>& x, const std::vector<double>& y,
                             std::size_t yj) {
          A sum = 0;
          for (int e = 0; e < c.size; ++e)
            sum += static_cast<A>(x[qi + e]) * static_cast<A>(y[yj + e]);
          return sum;
        };
        A largest = none, total = 0, delta = 0;
        for (int j = 0; j < c.keys; ++j) {
          p[j] = c.pattern.allowed(b, i, j) ? factor * dot(q, k, key(j)) : none;
          largest = std::fmax(largest, p[j]);
        }
        for (int j = 0; j < c.keys; ++j) total += largest == none ? A(0) : std::exp(p[j] - largest);
        const A lse = largest + std::log(total);
        r.lse[(static_cast<std::size_t>(b) * c.heads + h) * c.queries + i] =
            static_cast<double>(lse);
        if (total == 0) continue;
        for (int j = 0; j < c.keys; ++j) {
          const A weight = std::exp(p[j] - largest) / total;
          for (int e = 0; e < c.size; ++e) out[qi + e] += weight * static_cast<A>(v[key(j) + e]);
          p[j] = std::exp(p[j] - lse);
        }
        if (dout.empty()) continue;
        for (int e = 0; e < c.size; ++e)
          delta += static_cast<A>(dout[qi + e]) * static_cast<A>(static_cast<Stored>(out[qi + e]));
        for (int j = 0; j < c.keys; ++j) {
          const A ds = p[j] * (dot(dout, v, key(j)) - delta);
          for (int e = 0; e < c.size; ++e) {
            dq[qi + e] += factor * ds * static_cast<A>(k[key(j) + e]);
            dk[key(j) + e] += factor * ds * static_cast<A>(q[qi + e]);
            dv[key(j) + e] += p[j] * static_cast<A>(dout[qi + e]);
          }
        }
      }
  const auto stored = [](const std::vector<A>& x) {
    std::vector<double> rounded;
    for (const A value : x)
      rounded.push_back(static_cast<double>(static_cast<A>(static_cast<Stored>(value))));
    return rounded;
  };
  r.out = stored(out), r.dq = stored(dq), r.dk = stored(dk), r.dv = stored(dv);
  return r;
}

/// Root-mean-square of a - b over that of b; the former itself where b is only rounding error.
inline double attention_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (a[i] == b[i]) {  // also equal infinities
      if (std::isfinite(b[i])) norm += b[i] * b[i];
      continue;
    }
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  const double count = static_cast<double>(b.size());
  return std::sqrt(difference / (norm > 1e-20 * count ? norm : count));
}

}  // namespace tern::test
