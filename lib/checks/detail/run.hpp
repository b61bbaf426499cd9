/// One execution of an operation for operations.hpp (draws inputs, poisons outputs, reads results),
/// and the judgment of several.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checks/operations.hpp"
#include "ops/attention/pattern.hpp"

namespace tern::checks {

/// Numbers that runs draw in the same order, computed once for all of them.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  /// The draw-th array: n normal numbers times `scale`, representable in bf16.
  const std::vector<double>& normal(std::uint64_t draw, std::size_t n, double scale);
  /// The i-th word of the draw-th array of integers.
  std::uint32_t word(std::uint64_t draw, std::size_t i) const;

 private:
  struct Normal {
    double scale = 0;
    std::vector<double> values;
  };
  std::uint64_t seed_;
  std::map<std::uint64_t, Normal> normal_;
};

/// Memory of a Run of any storage type. S: float, double, bf16, fp16 or
/// std::int32_t.
class RunMemory {
 public:
  explicit RunMemory(std::shared_ptr<Draws> draws) : draws_(std::move(draws)) {}
  /// Uniform in [0, limit), every `ignored`-th -1 (0: none).
  std::vector<std::int32_t> draw_integers(std::size_t n, std::uint32_t limit, std::size_t ignored);
  Vector<const std::int32_t> integers(const std::vector<std::int32_t>& values);
  /// The table's pattern over copies in device memory.
  ops::Pattern pattern(const ops::SpanTable& table);

 protected:
  /// Normal numbers times `scale`.
  const std::vector<double>& draw(std::size_t n, double scale);
  template <class S>
  Matrix<S> upload(const std::vector<double>& values, std::size_t rows, std::size_t columns);
  /// Registers m as a result.
  template <class S>
  void record(const Matrix<S>& m);
  /// Device memory for the lifetime of the run.
  void* block(std::size_t bytes);
  std::vector<std::vector<double>> read_results() const;

 private:
  std::shared_ptr<Draws> draws_;
  std::uint64_t drawn_ = 0;  // arrays
  std::vector<Kokkos::View<char*, DeviceMemory>> blocks_;
  std::vector<std::function<std::vector<double>()>> outputs_;
};

/// Runs with the same seed get the same numbers for the same sequence of calls, for any T: all
/// inputs are representable in bf16, and, but for the smallest, in fp16.
template <class T>
class Run : public RunMemory {
 public:
  Run(const ops::Context& run_context, std::shared_ptr<Draws> draws)
      : RunMemory(std::move(draws)), context(run_context) {}
  Run(const ops::Context& run_context, std::uint64_t seed)
      : Run(run_context, std::make_shared<Draws>(seed)) {}
  const ops::Context& context;

  /// Normal numbers times `scale`.
  template <class S = T>
  Matrix<S> input(std::size_t rows, std::size_t columns, double scale = 1) {
    return upload<S>(draw(rows * columns, scale), rows, columns);
  }
  template <class S = T>
  Vector<S> input(std::size_t n, double scale = 1) {
    return Vector<S>(input<S>(1, n, scale).data(), n);
  }
  /// The same for cases (checks/cases), which name their operands; results are in order of requests.
  template <class S = T, class... Shape>
  auto input(const char*, Shape... shape) {
    return input<S>(shape...);
  }
  template <class S = T, class... Shape>
  auto output(const char*, Shape... shape) {
    return output<S>(shape...);
  }
  template <class S = T, class... Shape>
  auto inout(const char*, Shape... shape) {
    return inout<S>(shape...);
  }
  /// Near one: what such a number multiplies keeps its sign and its size.
  Vector<T> factor() {
    const bf16 near_one(static_cast<float>(1 + 0.2 * draw(1, 1)[0]));
    return Vector<T>(upload<T>({static_cast<double>(near_one)}, 1, 1).data(), 1);
  }
  /// A result: NaN until it is written.
  template <class S = T>
  Matrix<S> output(std::size_t rows, std::size_t columns) {
    const std::vector<double> unwritten(rows * columns, std::numeric_limits<double>::quiet_NaN());
    const Matrix<S> m = upload<S>(unwritten, rows, columns);
    record<S>(m);
    return m;
  }
  template <class S = T>
  Vector<S> output(std::size_t n) {
    return Vector<S>(output<S>(1, n).data(), n);
  }
  /// A result with initial numbers, to be changed or added to.
  template <class S = T>
  Matrix<S> inout(std::size_t rows, std::size_t columns, double scale = 1) {
    const Matrix<S> m = input<S>(rows, columns, scale);
    record<S>(m);
    return m;
  }
  template <class S = T>
  Vector<S> inout(std::size_t n, double scale = 1) {
    return Vector<S>(inout<S>(1, n, scale).data(), n);
  }
  /// Scratch, not a result.
  template <class S>
  Vector<S> workspace(std::size_t n) {
    return Vector<S>(static_cast<S*>(block(n * sizeof(S))), n);
  }

  /// Outputs, in the order of their requests.
  std::vector<std::vector<double>> results() const {
    context.fence("check");
    return read_results();
  }
};

using Outputs = std::vector<std::vector<double>>;

/// Runs operations and judges their results.
class Checker {
 public:
  enum class Storage { bf16, fp16, single };
  Checker(const ops::Context& context, Storage storage, std::uint64_t seed)
      : fast_(context), plain_(context.portable()), storage_(storage), seed_(seed) {}

  /// `body` asks a Run for inputs and outputs and calls the operation, for any storage type.
  enum class Results { in_storage, in_fp8 };
  /// `sums`: allowance in the bar for the native operation's sums.
  template <class Body>
  void check(const char* operation, std::string shape, const Body& body, double sums = 1e-6,
             Results results = Results::in_storage) {
    judge(operation, std::move(shape), {body, body, body, body}, sums, results);
  }
  template <class Body>
  void check_fp8(const char* operation, std::string shape, const Body& body) {
    check(operation, std::move(shape), body, 1e-6, Results::in_fp8);
  }
  std::vector<CheckResult> results() { return std::move(results_); }

 private:
  struct Bodies {
    std::function<void(Run<double>&)> exact;
    std::function<void(Run<float>&)> single;
    std::function<void(Run<bf16>&)> brain;
    std::function<void(Run<fp16>&)> half;
  };
  void judge(const char* operation, std::string shape, const Bodies& bodies, double sums,
             Results results);
  Outputs run(const ops::Context& context, const Bodies& bodies,
              const std::shared_ptr<Draws>& draws) const;

  const ops::Context& fast_;
  ops::Context plain_;
  Storage storage_;
  std::uint64_t seed_;
  std::vector<CheckResult> results_;
};

}  // namespace tern::checks
