#include "checks/detail/families.hpp"

#include <algorithm>
#include <cmath>

#include "checks/detail/paged_rows.hpp"

namespace tern::checks {
using namespace ops;
namespace {

enum class Codes { all, subnormal };

/// Random codes without NaN, and powers of two.
template <class T>
CodedPages coded_pages(Run<T>& r, std::size_t pages, std::size_t K, std::size_t P, std::size_t E,
                       Codes kind) {
  const std::size_t n = pages * K * P;
  std::vector<std::int32_t> codes(n * E / 4), undo(n);
  const auto drawn = r.draw_integers(4 * codes.size() + n, 254, 0);
  for (std::size_t i = 0; i < 4 * codes.size(); ++i) {
    auto code = static_cast<std::uint32_t>(drawn[i] < 127 ? drawn[i] : drawn[i] + 1);
    if (kind == Codes::subnormal) code &= 0x87;
    auto& word = reinterpret_cast<std::uint32_t&>(codes[i / 4]);
    word |= code << (i % 4 * 8);
  }
  for (std::size_t i = 0; i < n; ++i)  // 2^-8 to 2^-5: numbers up to 14
    undo[i] = (127 - 8 + drawn[4 * codes.size() + i] % 4) << 23;
  const auto words = [&](const std::vector<std::int32_t>& values) {
    return const_cast<std::int32_t*>(r.integers(values).data());
  };
  return {Tensor3<std::uint8_t>(reinterpret_cast<std::uint8_t*>(words(codes)), pages, K, P * E),
          Tensor3<float>(reinterpret_cast<float*>(words(undo)), pages, K, P)};
}

void check_coded(Checker& checker, std::size_t H, std::size_t K, std::size_t E, std::size_t P,
                 const CheckedRows& host, const std::string& shape) {
  const std::size_t N = host.positions.size(), width = (H + 2 * K) * E;
  const auto coded_cache = [=]<class T>(Run<T>& r, Codes kind) {
    const CodedPages keys = coded_pages(r, host.pages, K, P, E, kind);
    return PagedCache<T>{{}, {}, P, keys, coded_pages(r, host.pages, K, P, E, kind)};
  };
  const auto attend = [=]<class T>(Run<T>& r, Codes kind) {
    using A = Accumulate<T>;
    const PagedRows rows = device_rows(r, host);
    const PagedCache<T> cache = coded_cache(r, kind);
    const auto partial = r.template workspace<A>(paged_partials(host.splits.size(), H, E));
    run(r.context, PagedAttention<T>{.rows = rows,
                                     .scale = 1 / std::sqrt(static_cast<double>(E)),
                                     .qkv = r.input(N, width),
                                     .cache = cache,
                                     .partial = partial,
                                     .out = r.output(N, H * E)});
  };
  checker.check("paged_attention, fp8", shape, [=]<class T>(Run<T>& r) { attend(r, Codes::all); });
  checker.check("paged_attention, fp8, subnormal codes", shape,
                [=]<class T>(Run<T>& r) { attend(r, Codes::subnormal); });
  checker.check_fp8("paged_store, fp8", shape, [=]<class T>(Run<T>& r) {
    const PagedRows rows = device_rows(r, host);
    const PagedCache<T> cache = coded_cache(r, Codes::all);
    const Vector<T> q_gain = r.input(E), k_gain = r.input(E);
    run(r.context, PagedStore<T>{.rows = rows,
                                 .qkv = r.inout(N, width),
                                 .heads = H,
                                 .stage = {q_gain, k_gain, 1e-5, {}},
                                 .cache = cache});
    const std::size_t places = host.pages * K * P;
    run(r.context, PagedNumbers<T>{.pages = cache.coded_keys, .to = r.output(places, E)});
    run(r.context, PagedNumbers<T>{.pages = cache.coded_values, .to = r.output(places, E)});
  });
}

void check_paged(Checker& checker, std::size_t H, std::size_t K, std::size_t E, std::size_t P,
                 const std::vector<std::pair<int, int>>& first_and_rows) {
  const CheckedRows host = checked_rows(first_and_rows, static_cast<int>(P));
  const std::size_t N = host.positions.size(), width = (H + 2 * K) * E;
  std::int32_t last = 0;
  for (const std::int32_t p : host.positions) last = std::max(last, p);
  const std::string shape = fmt::format("N {} of {} to {} tokens, H {} K {} E {} P {}", N,
                                        host.segments.size(), last + 1, H, K, E, P);
  const auto cache_of = [=]<class T>(const Matrix<T>& keys, const Matrix<T>& values) {
    const auto pages = [&](const Matrix<T>& m) {
      return Tensor3<T>(m.data(), host.pages, K, P * E);
    };
    return PagedCache<T>{pages(keys), pages(values), P};
  };
  for (const auto& kind : {std::pair{true, false}, {false, false}, {true, true}}) {
    const bool rotated = kind.first, normed = kind.second;
    checker.check(normed    ? "paged_store, normed"
                  : rotated ? "paged_store"
                            : "paged_store, plain",
                  shape, [=]<class T>(Run<T>& r) {
                    using A = Accumulate<T>;
                    const PagedRows rows = device_rows(r, host);
                    const auto table = r.template input<A>(static_cast<std::size_t>(last) + 1, E);
                    const auto keys = r.inout(host.pages * K, P * E);
                    const auto values = r.inout(host.pages * K, P * E);
                    const std::size_t gains = normed ? E : 0;
                    const HeadStage<T> stage{r.input(gains), r.input(gains), 1e-5,
                                             rotated ? table : Matrix<A>()};
                    run(r.context, PagedStore<T>{.rows = rows,
                                                 .qkv = r.inout(N, width),
                                                 .heads = H,
                                                 .stage = stage,
                                                 .cache = cache_of(keys, values)});
                  });
  }
  check_coded(checker, H, K, E, P, host, shape);
  checker.check("paged_attention", shape, [=]<class T>(Run<T>& r) {
    using A = Accumulate<T>;
    const PagedRows rows = device_rows(r, host);
    const auto keys = r.input(host.pages * K, P * E), values = r.input(host.pages * K, P * E);
    const auto partial = r.template workspace<A>(paged_partials(host.splits.size(), H, E));
    run(r.context, PagedAttention<T>{.rows = rows,
                                     .scale = 1 / std::sqrt(static_cast<double>(E)),
                                     .qkv = r.input(N, width),
                                     .cache = cache_of(keys, values),
                                     .partial = partial,
                                     .out = r.output(N, H * E)});
  });
}

}  // namespace

void check_paged_cache(Checker& checker) {
  // Decoding rows; prefill chunks from position 0, from later ones, over many tiles, of two rows.
  const std::vector<std::pair<int, int>> mixed{{0, 1},  {255, 1}, {256, 1}, {700, 1},
                                               {0, 77}, {63, 2},  {70, 60}, {100, 157}};
  for (const std::size_t E : {32, 64, 128}) check_paged(checker, 8, 2, E, 16, mixed);
  check_paged(checker, 4, 2, 64, 16, {{1279, 1}, {8600, 1}});  // 5 and 34 parts
  check_paged(checker, 32, 8, 128, 16, mixed);
  check_paged(checker, 3, 3, 64, 4, mixed);
  check_paged(checker, 16, 1, 128, 64, mixed);
  check_paged(checker, 34, 2, 64, 16, mixed);  // groups of 17
  check_paged(checker, 4, 2, 40, 16, mixed);
  check_paged(checker, 8, 2, 128, 16, {{2999, 1}, {31, 1}});
  check_paged(checker, 8, 2, 128, 16, {{0, 300}});
}

}  // namespace tern::checks
