// Times Muon's update of models' matrices on one device (on the host: the laptop GPT's), one by one
// and in groups of several bounds, and the operations that a group's update consists of. The
// vocabularies are small, so that AdamW, which updates the rest, takes no time.
//
//   bench_muon [portable] [MiB per group...]
#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/timer.hpp"
#include "model/declare.hpp"
#include "ops/ops.hpp"
#include "optimizer/muon.hpp"

namespace {

using namespace tern;

struct Named {
  std::string name;
  deck::Model model;
};

using Product = std::conditional_t<on_host, float, bf16>;  // as Muon's

std::vector<Named> models() {
  Named laptop{"4 x 256, swiglu", {}}, small{"12 x 768, relu2", {}}, large{"24 x 1024, swiglu", {}};
  laptop.model.layers = 4, laptop.model.hidden = 256, laptop.model.heads = 4;
  laptop.model.ffn_hidden = 704;
  small.model.activation = "relu2";
  small.model.ffn_hidden = 3072;
  large.model.layers = 24, large.model.hidden = 1024, large.model.heads = 16;
  large.model.ffn_hidden = 2752;
  for (Named* m : {&laptop, &small, &large}) {
    m->model.kv_heads = m->model.heads;
    m->model.head_dim = 64;
    m->model.vocabulary = 256;
    m->model.tie_embeddings = true;
  }
  return on_host ? std::vector{laptop} : std::vector{small, large};
}

/// Median seconds of `run`, from several with one fence.
double time_of(const ops::Context& context, const std::function<void()>& run, int together = 1) {
  std::vector<double> times;
  for (int i = 0; i < 2; ++i) run();
  context.fence("warm");
  const Timer total;
  while (times.size() < 5 || (times.size() < 15 && total.seconds() < 1)) {
    const Timer timer;
    for (int i = 0; i < together; ++i) run();
    context.fence("timed");
    times.push_back(timer.seconds() / together);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

template <class S>
void fill(const ops::Context& context, S* data, std::size_t n, float scale) {
  Kokkos::parallel_for(
      "fill",
      Kokkos::RangePolicy<Device, Kokkos::IndexType<std::int64_t>>(context.space, 0,
                                                                   static_cast<std::int64_t>(n)),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const Random4 r = philox(1, Stream::test, 0, 0, static_cast<std::uint32_t>(i));
        data[i] = S(scale * normal2(r.word[0], r.word[1]).first);
      });
}

double cube(std::size_t a, std::size_t b, std::size_t c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

/// Floating-point operations of the products of one matrix's update.
double operations(std::size_t rows, std::size_t columns) {
  const std::size_t m = std::min(rows, columns), n = std::max(rows, columns);
  return 5 * (4 * cube(m, m, n) + 2 * cube(m, m, m));
}

/// Everything an update needs; made twice, measuring and allocating.
struct World {
  World(Arena& arena, bool accelerated, const model::ParameterTree& tree, std::size_t group_bytes)
      : context(ops::make_context(arena, accelerated, "portable")),
        parameters(tree, model::Purpose::training, arena),
        scale(arena.vector<float>("scale", Term::workspace, 1)),
        before(arena.bytes(Term::workspace)),
        muon({}, tree, {0, tree.span()}, arena, group_bytes),
        workspace(arena.bytes(Term::workspace) - before) {}

  ops::Context context;
  model::Parameters<bf16> parameters;
  Vector<float> scale;
  std::size_t before;
  optimizer::Muon<bf16> muon;
  std::size_t workspace;
};

void time_update(const Named& m, bool accelerated, std::size_t group_bytes) {
  const model::ParameterTree tree(model::declare(m.model));
  Arena measuring;
  World(measuring, accelerated, tree, group_bytes);
  Arena arena(measuring.bytes());
  World world(arena, accelerated, tree, group_bytes);
  world.parameters.initialize(world.context, tree, 1);
  fill(world.context, world.parameters.gradient.data(), tree.span(), 0.01f);
  Kokkos::deep_copy(world.scale, 1.0f);
  double flop = 0;
  for (const model::Parameter& p : tree.parameters())
    if (p.matrix() && p.name.starts_with("model/layers/"))
      flop += operations(p.shape[0], p.shape[1]);
  std::int64_t step = 0;
  const double seconds = time_of(world.context, [&] {
    world.muon.apply(world.context, world.parameters, world.scale, 1e-4, ++step);
  });
  fmt::print("{:18} {:>9} {:>13.0f} {:>9.2f} {:>9.3g}\n", m.name,
             group_bytes ? fmt::format("{}", group_bytes >> 20) : "single",
             static_cast<double>(world.workspace) / (1 << 20), seconds * 1e3,
             flop / seconds * 1e-12);
  std::fflush(stdout);
}

struct Shape {
  std::size_t count, rows, columns;
};

/// The views of one group's update.
struct GroupViews {
  GroupViews(Arena& arena, bool accelerated, const Shape& s)
      : context(ops::make_context(arena, accelerated, "portable")),
        side(std::min(s.rows, s.columns)),
        span(arena.vector<float>("span", Term::data, s.count * s.rows * s.columns)),
        copy(arena.vector<bf16>("copy", Term::data, span.size())),
        squares(arena.vector<float>("squares", Term::data, s.count)),
        at(arena.vector<std::size_t>("at", Term::data, s.count)),
        x(arena.tensor3<Product>("x", Term::data, s.count, s.rows, s.columns)),
        next(arena.tensor3<Product>("next", Term::data, s.count, s.rows, s.columns)),
        gram(arena.tensor3<Product>("gram", Term::data, s.count, side, side)),
        square(arena.tensor3<Product>("square", Term::data, s.count, side, side)) {}

  ops::Context context;
  std::size_t side;
  Vector<float> span;
  Vector<bf16> copy;
  Vector<float> squares;
  Vector<std::size_t> at;
  Tensor3<Product> x, next, gram, square;
};

void time_operations(const Shape& s, bool accelerated) {
  Arena measuring;
  GroupViews(measuring, accelerated, s);
  Arena arena(measuring.bytes());
  const GroupViews v(arena, accelerated, s);
  fill(v.context, v.span.data(), v.span.size(), 1);
  fill(v.context, v.x.data(), v.x.size(), 0.03f);
  fill(v.context, v.gram.data(), v.gram.size(), 0.03f);
  const HostVector<std::size_t> at("at", s.count);
  for (std::size_t i = 0; i < s.count; ++i) at(i) = i * s.rows * s.columns;
  Kokkos::deep_copy(v.at, at);
  Kokkos::deep_copy(v.squares, 1.0f);
  const bool wide = s.rows <= s.columns;
  const double n = static_cast<double>(v.span.size());
  const auto report = [&](const char* name, double work, const char* unit,
                          const std::function<void()>& run) {
    const double seconds = time_of(v.context, run, on_host ? 1 : 50);
    fmt::print("{:3} of {:4} x {:4} {:18} {:9.1f} us {:8.3g} {}\n", s.count, s.rows, s.columns,
               name, seconds * 1e6, work / seconds * 1e-12, unit);
    std::fflush(stdout);
  };
  const double large = 2.0 * static_cast<double>(v.x.size() * v.side);
  report("x x^T", large, "TFLOP/s", [&] {
    ops::run(v.context,
             ops::BatchedProduct<Product>{
                 .alpha = 1, .a = {v.x, !wide}, .b = {v.x, wide}, .beta = 0, .c = {}, .d = v.gram});
  });
  report("polynomial", 2.0 * static_cast<double>(v.gram.size() * v.side), "TFLOP/s", [&] {
    ops::run(v.context,
             ops::BatchedProduct<Product>{
                 .alpha = 2, .a = {v.gram}, .b = {v.gram}, .beta = -5, .c = v.gram, .d = v.square});
  });
  report("its product by x", large, "TFLOP/s", [&] {
    const ops::Factor<Product> left{wide ? v.square : v.x}, right{wide ? v.x : v.square};
    ops::run(v.context, ops::BatchedProduct<Product>{
                            .alpha = 1, .a = left, .b = right, .beta = 3, .c = v.x, .d = v.next});
  });
  report("sums of squares", 4 * n, "TB/s", [&] {
    ops::run(v.context,
             ops::SumsOfSquares<float>{
                 .span = v.span, .at = v.at, .elements = s.rows * s.columns, .squares = v.squares});
  });
  report("normalize", 6 * n, "TB/s", [&] {
    ops::run(v.context,
             ops::Normalize<Product>{
                 .span = v.span, .at = v.at, .squares = v.squares, .eps = 1e-7, .to = v.x});
  });
  report("descend", 12 * n, "TB/s", [&] {
    ops::run(v.context,
             ops::Descent<bf16, Product>{.keep = 1,
                                         .step = 1e-4,
                                         .direction = v.x,
                                         .at = v.at,
                                         .gradient_scale = Vector<const float>(v.squares.data(), 1),
                                         .master = v.span,
                                         .copy = v.copy});
  });
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  bool accelerated = true;
  std::vector<std::size_t> bounds;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "portable") == 0)
      accelerated = false;
    else
      bounds.push_back(std::strtoul(argv[i], nullptr, 10) << 20);
  }
  if (bounds.empty()) bounds = {0, optimizer::Muon<bf16>::default_group_bytes};
  fmt::print("{:18} {:>9} {:>13} {:>9} {:>9}\n", "model", "group MiB", "workspace MiB", "ms",
             "TFLOP/s");
  for (const Named& m : models())
    for (const std::size_t bytes : bounds) time_update(m, accelerated, bytes);
  const std::vector<Shape> shapes =
      on_host
          ? std::vector<Shape>{{8, 256, 256}, {8, 704, 256}}
          : std::vector<Shape>{
                {1, 768, 768}, {48, 768, 768}, {1, 768, 3072}, {12, 768, 3072}, {12, 3072, 768}};
  for (const Shape& s : shapes) time_operations(s, accelerated);
}
