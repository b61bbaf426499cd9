/// One execution of an operation for checks.hpp: draws inputs, poisons outputs, reads results.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "ops/ops.hpp"

namespace tern::ops::detail {

/// Runs of the same seed get the same numbers for the same sequence of calls, whatever T is: all
/// inputs are multiples of what bf16 can hold.
template <class T>
class Run {
 public:
  using A = Accumulate<T>;
  Run(const Context& run_context, std::uint64_t seed) : context(run_context), seed_(seed) {}
  const Context& context;

  /// Normal numbers times `scale`.
  template <class S = T>
  Matrix<S> input(std::size_t rows, std::size_t columns, double scale = 1) {
    return upload<S>(draw(rows * columns, scale), rows, columns);
  }
  template <class S = T>
  Vector<S> input(std::size_t n, double scale = 1) {
    return Vector<S>(input<S>(1, n, scale).data(), n);
  }
  /// A result: NaN until it is written.
  template <class S = T>
  Matrix<S> output(std::size_t rows, std::size_t columns) {
    return record(
        upload<S>(std::vector<double>(rows * columns, std::numeric_limits<double>::quiet_NaN()),
                  rows, columns));
  }
  template <class S = T>
  Vector<S> output(std::size_t n) {
    return Vector<S>(output<S>(1, n).data(), n);
  }
  /// A result that has numbers already, to be changed or added to.
  template <class S = T>
  Matrix<S> inout(std::size_t rows, std::size_t columns, double scale = 1) {
    return record(input<S>(rows, columns, scale));
  }
  template <class S = T>
  Vector<S> inout(std::size_t n, double scale = 1) {
    return Vector<S>(inout<S>(1, n, scale).data(), n);
  }
  /// Not a result.
  template <class S>
  Vector<S> workspace(std::size_t n) {
    return Vector<S>(block<S>(n), n);
  }
  /// Uniform in [0, limit), every `ignored`-th -1 (0: none).
  std::vector<std::int32_t> draw_integers(std::size_t n, std::uint32_t limit, std::size_t ignored) {
    std::vector<std::int32_t> values(n);
    for (std::size_t i = 0; i < n; ++i)
      values[i] = ignored && i % ignored == 0
                      ? -1
                      : static_cast<std::int32_t>(word(i) % (i % 3 ? limit : 2));
    ++draws_;
    return values;
  }
  Vector<const std::int32_t> integers(const std::vector<std::int32_t>& values) {
    std::int32_t* data = block<std::int32_t>(values.size());
    copy_to_device(values.data(), data, values.size());
    return Vector<const std::int32_t>(data, values.size());
  }

  /// The outputs, in the order in which they were asked for.
  std::vector<std::vector<double>> results() const {
    context.fence("check");
    std::vector<std::vector<double>> all;
    for (const auto& read : outputs_) all.push_back(read());
    return all;
  }

 private:
  std::uint32_t word(std::size_t i) const {
    return philox(seed_, Stream::test, draws_, 0, static_cast<std::uint32_t>(i)).word[0];
  }
  std::vector<double> draw(std::size_t n, double scale) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; i += 2) {
      const auto r = philox(seed_, Stream::test, draws_, 1, static_cast<std::uint32_t>(i));
      const Normal2 pair = normal2(r.word[0], r.word[1]);
      values[i] = float(bf16(static_cast<float>(scale) * pair.first));
      if (i + 1 < n) values[i + 1] = float(bf16(static_cast<float>(scale) * pair.second));
    }
    ++draws_;
    return values;
  }
  template <class S>
  S* block(std::size_t n) {
    blocks_.emplace_back("check", n * sizeof(S) + 16);
    return reinterpret_cast<S*>(blocks_.back().data());
  }
  template <class S>
  static void copy_to_device(const S* from, S* to, std::size_t n) {
    Kokkos::deep_copy(
        Vector<S>(to, n),
        Kokkos::View<const S*, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>(from, n));
  }
  template <class S>
  Matrix<S> upload(const std::vector<double>& values, std::size_t rows, std::size_t columns) {
    std::vector<S> stored(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<S, bf16>)
        stored[i] = bf16(static_cast<float>(values[i]));
      else
        stored[i] = static_cast<S>(values[i]);
    }
    S* data = block<S>(values.size());
    copy_to_device(stored.data(), data, stored.size());
    return Matrix<S>(data, rows, columns);
  }
  template <class S>
  Matrix<S> record(const Matrix<S>& m) {
    outputs_.push_back([m] {
      std::vector<S> host(m.size());
      Kokkos::deep_copy(Kokkos::View<S*, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>(
                            host.data(), host.size()),
                        Vector<S>(m.data(), m.size()));
      std::vector<double> values(host.size());
      for (std::size_t i = 0; i < host.size(); ++i) {
        if constexpr (std::is_same_v<S, bf16>)
          values[i] = float(host[i]);
        else
          values[i] = host[i];
      }
      return values;
    });
    return m;
  }

  std::uint64_t seed_, draws_ = 0;
  std::vector<Kokkos::View<char*, DeviceMemory>> blocks_;
  std::vector<std::function<std::vector<double>()>> outputs_;
};

/// The rows in the order that embedding_backward asks for.
inline std::vector<std::int32_t> sorted_rows(const std::vector<std::int32_t>& tokens) {
  std::vector<std::int32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tokens[a] < tokens[b]; });
  return order;
}

}  // namespace tern::ops::detail
