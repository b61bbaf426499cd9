// Times the operations of one decoding pass of Qwen3-4B on one GPU, each compared with its floor:
// the bytes it must move at the memory's rate. Weights and caches are many times the size of the
// device's caches, and used in rotation.
//
//   engine_ops [rows, default 64] [tokens in the cache of each, default 544]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "checks/detail/paged_rows.hpp"
#include "measure.hpp"
#include "ops/core/cuda/library.hpp"
#include "ops/ops.hpp"

namespace {

using namespace tern;
using namespace tern::bench;

constexpr double rate = 4.27e12;  // bytes/s
constexpr std::size_t L = 36, D = 2560, H = 32, K = 8, E = 128, F = 9728, V = 151936, P = 16;
constexpr std::size_t qkv_width = (H + 2 * K) * E, copies = 6;

struct Line {
  std::string name;
  double count, bytes;
  std::function<void()> run;
};

struct Views {
  Matrix<bf16> weights, x, normed, qkv, attention, up, activated, logits;
  Matrix<float> table;
  Vector<bf16> gain;
  Vector<float> rstd, partial;
  std::vector<ops::PagedCache<bf16>> caches, coded;  // coded: in fp8
  Vector<std::int32_t> drawn;

  Views(Buffers b, std::size_t rows, std::size_t pages, std::size_t splits)
      : weights(b.random<bf16>(copies * 2 * F, D, 0.02f)),
        x(b.random<bf16>(rows, D)),
        normed(b.random<bf16>(rows, D)),
        qkv(b.random<bf16>(rows, qkv_width)),
        attention(b.random<bf16>(rows, H * E)),
        up(b.random<bf16>(rows, 2 * F)),
        activated(b.random<bf16>(rows, F)),
        logits(b.random<bf16>(rows, V)),
        table(b.random<float>(4096, E)),
        gain(b.vector<bf16>(D)),
        rstd(b.vector<float>(rows)),
        partial(b.vector<float>(ops::paged_partials(splits, H, E))),
        drawn(reinterpret_cast<std::int32_t*>(b.random<float>(1, rows).data()), rows) {
    for (std::size_t i = 0; i < copies; ++i) {
      const auto half = [&] {
        return Tensor3<bf16>(b.random<bf16>(pages * K, P * E).data(), pages, K, P * E);
      };
      const auto keys = half(), values = half();
      caches.push_back({keys, values, P});
      const auto codes = [&] {
        const std::size_t places = pages * K * P;
        auto* bytes = reinterpret_cast<std::uint8_t*>(b.random<float>(places, E / 4).data());
        return ops::CodedPages{Tensor3<std::uint8_t>(bytes, pages, K, P * E),
                               Tensor3<float>(b.random<float>(1, places).data(), pages, K, P)};
      };
      const ops::CodedPages coded_keys = codes();
      coded.push_back({{}, {}, P, coded_keys, codes()});
    }
  }
};

/// Product with weights (O, I), another copy of them at each call.
Line product(const ops::Context& context, const Views& v, const char* name, double count,
             const Matrix<bf16>& from, const Matrix<bf16>& to, ops::Write write) {
  const Matrix<bf16> added = write == ops::Write::add ? to : Matrix<bf16>();
  const std::size_t I = from.extent(1), O = to.extent(1), rows = from.extent(0);
  const std::size_t fit = v.weights.size() / (O * I);
  const double bytes = 2.0 * (static_cast<double>(O * I) + static_cast<double>(rows * (O + I)));
  auto turn = std::make_shared<std::size_t>(0);
  return {name, count, bytes, [=, &context] {
            const Matrix<bf16> w(v.weights.data() + *turn % fit * O * I, O, I);
            ++*turn;
            ops::run(context, ops::LinearForward<bf16>{.x = from, .w = w, .y = to, .added = added});
          }};
}

std::vector<Line> lines_of(const ops::Context& context, const Views& v, const ops::PagedRows& rows,
                           Vector<const std::int32_t> ids, double cached) {
  using ops::Write;
  const std::size_t N = v.x.extent(0);
  const double n = static_cast<double>(N);
  auto turn = std::make_shared<std::size_t>(0);
  const auto next = [=](const auto& caches) { return caches[(*turn)++ % copies]; };
  std::vector<Line> lines{
      product(context, v, "product qkv", L, v.normed, v.qkv, Write::overwrite),
      product(context, v, "product o, added", L, v.attention, v.x, Write::add),
      product(context, v, "product gate, up", L, v.normed, v.up, Write::overwrite),
      product(context, v, "product down, added", L, v.activated, v.x, Write::add)};
  for (const bool fp8 : {false, true}) {
    const auto& caches = fp8 ? v.coded : v.caches;
    const double of_head = fp8 ? E + sizeof(float) : 2 * E, count = fp8 ? 0 : L;
    lines.push_back({fp8 ? "paged_attention, fp8" : "paged_attention", count,
                     2 * cached * K * of_head + 4 * n * H * E, [=, &context] {
                       ops::run(context, ops::PagedAttention<bf16>{.rows = rows,
                                                                   .scale = 0.088,
                                                                   .qkv = v.qkv,
                                                                   .cache = next(caches),
                                                                   .partial = v.partial,
                                                                   .out = v.attention});
                     }});
    lines.push_back({fp8 ? "paged_store with q/k norm, fp8" : "paged_store with q/k norm", count,
                     4 * n * qkv_width, [=, &context] {
                       const Vector<const bf16> gain(v.gain.data(), E);
                       ops::run(context, ops::PagedStore<bf16>{.rows = rows,
                                                               .qkv = v.qkv,
                                                               .heads = H,
                                                               .stage = {gain, gain, 1e-6, v.table},
                                                               .cache = next(caches)});
                     }});
  }
  lines.push_back({"rmsnorm", 2 * L + 1, 4 * n * D, [=, &context] {
                     ops::run(context, ops::NormForward<bf16>{.kind = ops::Norm::rmsnorm,
                                                              .x = v.x,
                                                              .gain = v.gain,
                                                              .eps = 1e-6,
                                                              .y = v.normed,
                                                              .rstd = v.rstd});
                   }});
  lines.push_back({"swiglu", L, 6 * n * F, [=, &context] {
                     ops::run(context,
                              ops::ActivationForward<bf16>{
                                  .kind = ops::Activation::swiglu, .x = v.up, .y = v.activated});
                   }});
  const Matrix<const bf16> head(v.weights.data(), V > copies * 2 * F ? copies * 2 * F : V, D);
  const Matrix<bf16> head_logits(v.logits.data(), N, head.extent(0));
  const double head_share = static_cast<double>(V) / static_cast<double>(head.extent(0));
  lines.push_back({"head (per full vocabulary)", head_share,
                   2.0 * static_cast<double>(head.extent(0)) * (D + n), [=, &context] {
                     ops::run(context,
                              ops::LinearForward<bf16>{.x = v.normed, .w = head, .y = head_logits});
                   }});
  const ops::Sampling choices[] = {{0, 1, 0, 1}, {1, 1, 0, 1}, {0.8, 0.95, 20, 1}};
  for (const ops::Sampling& choice : choices)
    lines.push_back(
        {fmt::format("sample_rows T {} p {} k {}", choice.temperature, choice.top_p, choice.top_k),
         choice.temperature == 0 ? 1.0 : 0.0, 2 * n * V, [=, &context] {
           ops::run(context,
                    ops::SampleRows<bf16>{.options = choice,
                                          .logits = v.logits,
                                          .vocabulary = V,
                                          .ids = ids,
                                          .numbers = Vector<const std::int32_t>(ids.data(), N),
                                          .token = v.drawn});
         }});
  return lines;
}

void print_table(const ops::Context& context, const std::vector<Line>& lines, double rows) {
  std::printf("%-30s %9s %9s %6s %8s %9s\n", "operation", "us", "floor us", "ratio", "TB/s",
              "ms/pass");
  double total = 0, floors = 0;
  for (const Line& line : lines) {
    const double seconds = time_of(context, line.run, 31), floor = line.bytes / rate;
    total += line.count * seconds, floors += line.count * floor;
    std::printf("%-30s %9.1f %9.1f %6.2f %8.2f %9.3f\n", line.name.c_str(), seconds * 1e6,
                floor * 1e6, seconds / floor, line.bytes / seconds * 1e-12,
                line.count * seconds * 1e3);
    std::fflush(stdout);
  }
  std::printf("a pass: %.2f ms, floor %.2f ms: %.0f tokens/s, floor %.0f\n", total * 1e3,
              floors * 1e3, rows / total, rows / floors);
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const int rows = argc > 1 ? std::atoi(argv[1]) : 64, tokens = argc > 2 ? std::atoi(argv[2]) : 544;
  const std::vector<std::pair<int, int>> sequences(static_cast<std::size_t>(rows), {tokens - 1, 1});
  const checks::CheckedRows host = checks::checked_rows(sequences, P);
  const auto make = [](Arena& arena) { return ops::make_context(arena, true, "auto"); };
  const auto request = [&](Arena& arena, const ops::Context& context) {
    return Views(Buffers{arena, context}, host.positions.size(), host.pages, host.splits.size());
  };
  Arena measuring;
  const ops::Context nothing = make(measuring);
  request(measuring, nothing);
  Arena arena(measuring.bytes());
  const ops::Context context = make(arena);
  const Views views = request(arena, context);
  checks::Run<bf16> run(context, 1);
  const ops::PagedRows on_device = checks::device_rows(run, host);
  const auto ids = run.integers(std::vector<std::int32_t>(2 * host.positions.size(), 3));
  const auto lines = lines_of(context, views, on_device, ids, static_cast<double>(rows) * tokens);
  print_table(context, lines, rows);
}
