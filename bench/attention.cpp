// Times attention_forward and attention_backward, with the fraction of the host's floating-point
// peak that they reach:
//
//   attention [repetitions]
//
// bench/attention.py times PyTorch at the same shapes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/timer.hpp"
#include "ops/ops.hpp"

namespace {
using namespace tern;

struct Shape {
  int batch, heads, kv_heads, queries, keys, size;
};

template <class T>
class Attention {
 public:
  using A = Accumulate<T>;
  explicit Attention(const Shape& shape)
      : shape_(shape),
        numbers_("numbers", 4 * query_size() + 4 * key_size()),
        statistics_("statistics", 2 * rows()) {
    auto mirror = Kokkos::create_mirror_view(numbers_);
    for (std::size_t i = 0; i < mirror.size(); ++i)
      mirror(i) = static_cast<T>(static_cast<float>(i * 2654435761u % 2003) / 1001.5f - 1);
    Kokkos::deep_copy(numbers_, mirror);
  }
  void forward() const {
    ops::run(context_, ops::AttentionForward<T>{.pattern = pattern(),
                                                .scale = scale,
                                                .q = queries(0),
                                                .k = keys(0),
                                                .v = keys(1),
                                                .out = queries(1),
                                                .lse = lse()});
    context_.fence("bench");
  }
  void backward() const {
    ops::run(context_, ops::AttentionBackward<T>{.pattern = pattern(),
                                                 .scale = scale,
                                                 .q = queries(0),
                                                 .k = keys(0),
                                                 .v = keys(1),
                                                 .out = queries(1),
                                                 .dout = queries(2),
                                                 .lse = lse(),
                                                 .delta = delta(),
                                                 .dq = queries(3),
                                                 .dk = keys(2),
                                                 .dv = keys(3)});
    context_.fence("bench");
  }

 private:
  static constexpr double scale = 0.125;
  std::size_t rows() const {
    return static_cast<std::size_t>(shape_.batch) * shape_.heads * shape_.queries;
  }
  std::size_t query_size() const { return rows() * shape_.size; }
  std::size_t key_size() const {
    return static_cast<std::size_t>(shape_.batch) * shape_.kv_heads * shape_.keys * shape_.size;
  }
  ops::Pattern pattern() const {
    return {ops::Pattern::Kind::causal, shape_.keys - shape_.queries};
  }
  Heads<T> heads(T* data, int tokens, int count) const {
    const Matrix<T> all(data, static_cast<std::size_t>(shape_.batch) * tokens,
                        static_cast<std::size_t>(count) * shape_.size);
    return heads_of(all, 0, shape_.batch, tokens, count, shape_.size);
  }
  Heads<T> queries(int i) const {
    return heads(numbers_.data() + i * query_size(), shape_.queries, shape_.heads);
  }
  Heads<T> keys(int i) const {
    return heads(numbers_.data() + 4 * query_size() + i * key_size(), shape_.keys, shape_.kv_heads);
  }
  Matrix<A> lse() const {
    return Matrix<A>(statistics_.data(), shape_.batch * shape_.heads, shape_.queries);
  }
  Matrix<A> delta() const {
    return Matrix<A>(statistics_.data() + rows(), shape_.batch * shape_.heads, shape_.queries);
  }

  Shape shape_;
  Kokkos::View<T*, DeviceMemory> numbers_;
  Kokkos::View<A*, DeviceMemory> statistics_;
  ops::Context context_;
};

/// Shortest of several runs, in seconds: other work on the machine only adds to it.
template <class F>
double shortest(int repetitions, const F& run) {
  run();
  std::vector<double> times;
  const bool alone = Device().concurrency() == 1;
  for (int i = 0; i < repetitions; ++i) {
    Timer timer;
    const std::clock_t start = std::clock();
    run();
    const double busy = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    times.push_back(alone ? busy : timer.seconds());
  }
  return *std::min_element(times.begin(), times.end());
}

template <class T>
void report(const Shape& s, int repetitions) {
  const Attention<T> attention(s);
  const double forward = shortest(repetitions, [&] { attention.forward(); });
  const double backward = shortest(repetitions, [&] { attention.backward(); });
  const double seen = s.queries * (s.keys - (s.queries - 1) / 2.0);  // pairs of one head
  const double product = 2.0 * s.batch * s.heads * seen * s.size;
  std::printf(
      "%-5s B=%d H=%d K=%d Tq=%-5d Tk=%-5d E=%-4d forward %9.3f ms %8.1f GFLOP/s   "
      "backward %9.3f ms %8.1f GFLOP/s\n",
      type_name<T>(), s.batch, s.heads, s.kv_heads, s.queries, s.keys, s.size, forward * 1e3,
      2 * product / forward * 1e-9, backward * 1e3, 5 * product / backward * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 50;
  const Shape laptop{8, 4, 4, 256, 256, 64}, longer{4, 8, 8, 1024, 1024, 64};
  report<float>(laptop, repetitions);
  report<float>(longer, repetitions);
  report<float>({4, 8, 2, 1024, 1024, 64}, repetitions);
  report<float>({2, 4, 4, 1024, 1024, 128}, repetitions);
  report<float>({8, 4, 4, 1, 256, 64}, repetitions);
  report<float>({8, 8, 8, 1, 1024, 64}, repetitions);
  report<bf16>(laptop, repetitions);
  report<bf16>(longer, repetitions);
}
