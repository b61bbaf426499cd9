/// Checks of operations. A case names its inputs and outputs and runs them twice: `run<T>` through
/// ops::, `reference<A>` as plain loops on the host in arithmetic type A. Then
/// - in every storage type, the error relative to reference<long double> is no more than twice that
///   of reference<Accumulate<T>>, both fed with the same rounded inputs;
/// - in double, gradients agree with finite differences of the forward operation;
/// - a second run gives the same bits.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "ops/ops.hpp"
#include "roundoff.hpp"

namespace tern::test {

using Numbers = std::vector<long double>;  // precise enough as the reference for double
using Named = std::map<std::string, Numbers>;

/// Standard normal numbers times `deviation`.
inline Numbers normal_numbers(std::size_t n, std::uint32_t seed, double deviation = 1) {
  Numbers values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Random4 r = philox(seed, Stream::test, 0, 0, static_cast<std::uint32_t>(i));
    values[i] = deviation * normal2(r.word[0], r.word[1]).first;
  }
  return values;
}

template <class T>
Numbers rounded(Numbers values) {
  for (auto& v : values) v = static_cast<Accumulate<T>>(static_cast<T>(v));
  return values;
}

/// Numbers on the device, in T; NaN until given.
template <class T>
class Array {
 public:
  Array(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), data_("array", rows * columns) {
    set(Numbers(rows * columns, std::numeric_limits<double>::quiet_NaN()));
  }
  Array(std::size_t rows, std::size_t columns, const Numbers& values) : Array(rows, columns) {
    set(values);
  }
  explicit Array(const Numbers& values) : Array(1, values.size(), values) {}

  void set(const Numbers& values) {
    EXPECT_EQ(values.size(), data_.size());
    auto mirror = Kokkos::create_mirror_view(data_);
    for (std::size_t i = 0; i < values.size(); ++i) mirror(i) = static_cast<T>(values[i]);
    Kokkos::deep_copy(data_, mirror);
  }
  Numbers get() const {
    auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), data_);
    Numbers values(mirror.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<Accumulate<T>>(mirror(i));
    return values;
  }
  Matrix<T> matrix() const { return Matrix<T>(data_.data(), rows_, columns_); }
  Vector<T> vector() const { return Vector<T>(data_.data(), data_.size()); }

 private:
  std::size_t rows_, columns_;
  Kokkos::View<T*, DeviceMemory> data_;
};

/// Memory of a case (checks/cases) that gets its inputs by name, and its results' initial numbers by
/// name and '0'. `scale` is that of random numbers.
template <class T>
class NamedMemory {
 public:
  explicit NamedMemory(const Named& inputs) : inputs_(inputs) {}

  template <class S = T>
  Matrix<S> input(const std::string& name, std::size_t rows, std::size_t columns, double = 1) {
    return keep(Array<S>(rows, columns, inputs_.at(name)));
  }
  template <class S = T>
  Vector<S> input(const std::string& name, std::size_t n, double = 1) {
    return as_vector(input<S>(name, 1, n));
  }
  template <class S = T>
  Matrix<S> output(const std::string& name, std::size_t rows, std::size_t columns) {
    return result(name, Array<S>(rows, columns));
  }
  template <class S = T>
  Vector<S> output(const std::string& name, std::size_t n) {
    return as_vector(output<S>(name, 1, n));
  }
  template <class S = T>
  Matrix<S> inout(const std::string& name, std::size_t rows, std::size_t columns, double = 1) {
    return result(name, Array<S>(rows, columns, inputs_.at(name + "0")));
  }
  template <class S = T>
  Vector<S> inout(const std::string& name, std::size_t n, double = 1) {
    return as_vector(inout<S>(name, 1, n));
  }
  template <class S>
  Vector<S> workspace(std::size_t n) {
    return as_vector(keep(Array<S>(1, n)));
  }

  Named results() const {
    Named all;
    for (const auto& [name, numbers] : results_) all[name] = numbers();
    return all;
  }

 private:
  template <class S>
  Matrix<S> keep(const Array<S>& array) {
    kept_.push_back(std::make_shared<Array<S>>(array));
    return array.matrix();
  }
  template <class S>
  Matrix<S> result(const std::string& name, const Array<S>& array) {
    results_[name] = [array] { return array.get(); };
    return keep(array);
  }
  template <class S>
  static Vector<S> as_vector(const Matrix<S>& m) {
    return Vector<S>(m.data(), m.size());
  }

  const Named& inputs_;
  std::vector<std::shared_ptr<void>> kept_;
  std::map<std::string, std::function<Numbers()>> results_;
};
/// The numbers of a view, as they are.
template <class V>
auto on_host(const V& view) {
  const auto copy = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return std::vector(copy.data(), copy.data() + copy.size());
}

/// A context, and the memory behind it.
template <bool accelerated>
struct HeldContext {
  static ops::Context make(Arena& arena) {
    return ops::make_context(arena, accelerated, accelerated ? "auto" : "portable");
  }
  static std::size_t bytes() {
    Arena measuring;
    make(measuring);
    return measuring.bytes();
  }
  static const ops::Context& get() {
    static HeldContext* held = nullptr;
    if (!held) {
      held = new HeldContext;
      Kokkos::push_finalize_hook([] { delete held; });
    }
    return held->context;
  }

  Arena arena{bytes()};
  ops::Context context = make(arena);
};
/// With portable kernels only; with native ones where the build has them.
inline const ops::Context& portable_context() { return HeldContext<false>::get(); }
inline const ops::Context& native_context() { return HeldContext<true>::get(); }

/// Results of a case with portable kernels.
template <class T, class Case>
Named results_of(const Case& c, const Named& inputs) {
  NamedMemory<T> memory(inputs);
  c.template run<T>(portable_context(), memory);
  return memory.results();
}

/// Equal, NaN being equal to NaN.
inline bool same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](long double x, long double y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  });
}

/// Root mean square of a - b over that of b.
inline double relative_error(const Numbers& a, const Numbers& b) {
  long double difference = 0, norm = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return static_cast<double>(std::sqrt(norm > 0 ? difference / norm : difference));
}

/// The first two checks of the header comment for storage type T. `stored`: the outputs of type T;
/// the others are of type Accumulate<T>. `exact`: inputs that are not rounded, being of type
/// Accumulate<T> or integers.
template <class T, class Case>
void check_precision(const Case& c, Named inputs, const std::set<std::string>& stored,
                     const std::set<std::string>& exact = {}) {
  using A = Accumulate<T>;
  for (auto& [name, values] : inputs)
    values = exact.count(name) ? rounded<A>(values) : rounded<T>(values);
  const Named result = c.template run<T>(inputs), again = c.template run<T>(inputs);
  const Named truth = c.template reference<long double>(inputs);
  const Named same = c.template reference<A>(inputs);
  ASSERT_EQ(result.size(), truth.size());
  for (const auto& [name, values] : truth) {
    ASSERT_TRUE(result.count(name)) << name;
    const Numbers rounding =
        stored.count(name) ? rounded<T>(same.at(name)) : rounded<A>(same.at(name));
    const double error = relative_error(result.at(name), values);
    const bool few = values.size() < 64;  // whose mean error is random
    double least = (few ? 4 : 1) * roundoff<A>();
    if (few && stored.count(name)) least = std::max(least, roundoff<T>());
    const double bar = 2 * std::max(relative_error(rounding, values), least);
    EXPECT_LE(error, bar) << type_name<T>() << " " << name;
    EXPECT_EQ(result.at(name), again.at(name)) << type_name<T>() << " " << name << " repeats";
  }
}

/// d(sum of output * cotangent) / d input for each pair (input, its gradient among the outputs),
/// from fourth-order differences. `already`: what the gradient's view held before it was added to.
template <class Case>
void check_gradients(const Case& c, const Named& inputs, const std::string& output,
                     const std::string& cotangent,
                     const std::vector<std::pair<std::string, std::string>>& gradients,
                     const Named& already = {}) {
  const Named result = c.template run<double>(inputs);
  const auto total = [&](const std::string& name, std::size_t i, double step) {
    Named moved = inputs;
    moved.at(name)[i] += step;
    const Numbers y = c.template run<double>(moved).at(output);
    long double sum = 0;
    for (std::size_t j = 0; j < y.size(); ++j) sum += y[j] * inputs.at(cotangent)[j];
    return sum;
  };
  constexpr double h = 1e-3;
  for (const auto& [name, gradient] : gradients) {
    const std::size_t n = inputs.at(name).size(), stride = n / 17 + 1;
    for (std::size_t i = 0; i < n; i += stride) {
      const long double difference = (8 * (total(name, i, h) - total(name, i, -h)) -
                                      (total(name, i, 2 * h) - total(name, i, -2 * h))) /
                                     (12 * h);
      const long double before = already.count(gradient) ? already.at(gradient)[i] : 0;
      EXPECT_NEAR(result.at(gradient)[i] - before, difference, 1e-8 * (1 + std::fabs(difference)))
          << gradient << "[" << i << "]";
    }
  }
}

}  // namespace tern::test
