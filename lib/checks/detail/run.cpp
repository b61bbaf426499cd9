#include "checks/detail/run.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/hashes.hpp"
#include "base/random.hpp"

namespace tern::checks {
using namespace ops;
namespace {

template <class S>
double widened(S value) {
  if constexpr (is_half<S>)
    return float(value);
  else
    return value;
}

template <class S>
S narrowed(double value) {
  if constexpr (is_half<S>)
    return S(static_cast<float>(value));
  else
    return static_cast<S>(value);
}

template <class S>
using HostNumbers = Kokkos::View<S*, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>;

template <class S>
void copy_to_device(const S* from, S* to, std::size_t n) {
  Kokkos::deep_copy(Vector<S>(to, n), HostNumbers<const S>(from, n));
}

/// Worst relative error of the outputs; infinity if any is NaN. Infinities (the lse of a query that
/// attends to nothing) must be the same in both.
double worst_error(const Outputs& found, const Outputs& exact) {
  double worst = 0;
  for (std::size_t k = 0; k < exact.size(); ++k) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < exact[k].size(); ++i) {
      if (std::isinf(exact[k][i]) && found[k][i] == exact[k][i]) continue;
      const double d = found[k][i] - exact[k][i];
      difference += d * d;
      size += exact[k][i] * exact[k][i];
    }
    const double error = std::sqrt(difference / std::max(size, 1e-300));
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return worst;
}

bool has_nan(const Outputs& outputs) {
  for (const auto& output : outputs)
    for (const double value : output)
      if (std::isnan(value)) return true;
  return false;
}

template <class S>
Outputs run_in(const Context& context, const std::shared_ptr<Draws>& draws,
               const std::function<void(Run<S>&)>& body) {
  Run<S> one(context, draws);
  body(one);
  return one.results();
}

}  // namespace

const std::vector<double>& Draws::normal(std::uint64_t draw, std::size_t n, double scale) {
  Normal& kept = normal_[draw];
  if (kept.values.size() == n && kept.scale == scale) return kept.values;
  kept = {scale, std::vector<double>(n)};
  std::vector<double>& values = kept.values;
  for (std::size_t i = 0; i < n; i += 2) {
    const auto r = philox(seed_, Stream::test, draw, 1, static_cast<std::uint32_t>(i));
    const Normal2 pair = normal2(r.word[0], r.word[1]);
    values[i] = float(bf16(static_cast<float>(scale) * pair.first));
    if (i + 1 < n) values[i + 1] = float(bf16(static_cast<float>(scale) * pair.second));
  }
  return values;
}

std::uint32_t Draws::word(std::uint64_t draw, std::size_t i) const {
  return philox(seed_, Stream::test, draw, 0, static_cast<std::uint32_t>(i)).word[0];
}

std::vector<std::int32_t> RunMemory::draw_integers(std::size_t n, std::uint32_t limit,
                                                   std::size_t ignored) {
  std::vector<std::int32_t> values(n);
  for (std::size_t i = 0; i < n; ++i)
    values[i] = ignored && i % ignored == 0
                    ? -1
                    : static_cast<std::int32_t>(draws_->word(drawn_, i) % (i % 3 ? limit : 2));
  ++drawn_;
  return values;
}

Vector<const std::int32_t> RunMemory::integers(const std::vector<std::int32_t>& values) {
  auto* data = static_cast<std::int32_t*>(block(values.size() * sizeof(std::int32_t)));
  copy_to_device(values.data(), data, values.size());
  return Vector<const std::int32_t>(data, values.size());
}

Pattern RunMemory::pattern(const SpanTable& table) {
  const auto copy = [&](const auto& array) {
    using Item = typename std::decay_t<decltype(array)>::value_type;
    std::vector<std::int32_t> numbers(array.size() * sizeof(Item) / sizeof(std::int32_t));
    std::memcpy(numbers.data(), array.data(), array.size() * sizeof(Item));
    return reinterpret_cast<const Item*>(integers(numbers).data());
  };
  return table.pattern(copy(table.spans()), copy(table.hulls()));
}

const std::vector<double>& RunMemory::draw(std::size_t n, double scale) {
  return draws_->normal(drawn_++, n, scale);
}

void* RunMemory::block(std::size_t bytes) {
  blocks_.emplace_back("check", bytes + 16);
  return blocks_.back().data();
}

std::vector<std::vector<double>> RunMemory::read_results() const {
  std::vector<std::vector<double>> all;
  for (const auto& read : outputs_) all.push_back(read());
  return all;
}

template <class S>
Matrix<S> RunMemory::upload(const std::vector<double>& values, std::size_t rows,
                            std::size_t columns) {
  std::vector<S> stored(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) stored[i] = narrowed<S>(values[i]);
  S* data = static_cast<S*>(block(values.size() * sizeof(S)));
  copy_to_device(stored.data(), data, stored.size());
  return Matrix<S>(data, rows, columns);
}

template <class S>
void RunMemory::record(const Matrix<S>& m) {
  outputs_.push_back([m] {
    std::vector<S> host(m.size());
    Kokkos::deep_copy(HostNumbers<S>(host.data(), host.size()), Vector<S>(m.data(), m.size()));
    std::vector<double> values(host.size());
    for (std::size_t i = 0; i < host.size(); ++i) values[i] = widened(host[i]);
    return values;
  });
}

#define INSTANTIATE(S)                                                                           \
  template Matrix<S> RunMemory::upload<S>(const std::vector<double>&, std::size_t, std::size_t); \
  template void RunMemory::record<S>(const Matrix<S>&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)
INSTANTIATE(std::int32_t)

Outputs Checker::run(const Context& context, const Bodies& bodies,
                     const std::shared_ptr<Draws>& draws) const {
  if (storage_ == Storage::bf16) return run_in(context, draws, bodies.brain);
  if (storage_ == Storage::fp16) return run_in(context, draws, bodies.half);
  return run_in(context, draws, bodies.single);
}

void Checker::judge(const char* operation, std::string shape, const Bodies& bodies, double sums,
                    Results results) {
  const auto draws = std::make_shared<Draws>(seed_ + Fnv().add(operation).add(shape).value());
  const Outputs exact = run_in(plain_, draws, bodies.exact), plain = run(plain_, bodies, draws);
  const Outputs fast = run(fast_, bodies, draws), again = run(fast_, bodies, draws);
  CheckResult result{
      operation,      std::move(shape), worst_error(fast, exact), worst_error(plain, exact), 0,
      !has_nan(fast), fast == again};
  const bool in_fp8 = results == Results::in_fp8;  // one that rounds to the next code is off by 25%
  result.bar = storage_ != Storage::single
                   ? std::min(2 * result.reference + sums, in_fp8 ? 1e-1 : 2e-2)
                   : (in_fp8 || fast_.tf32 ? 1e-3 : 1e-5);
  results_.push_back(std::move(result));
}

}  // namespace tern::checks
