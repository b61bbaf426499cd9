/// Sampling of the next token. Conventions: ops.hpp.
#pragma once
#include "ops/core/operation.hpp"

namespace tern::ops {

struct Sampling {
  double temperature = 1;  // 0: argmax, lowest index on ties
  double top_p = 1;
  int top_k = 0;  // 0: all
  std::uint64_t seed = 0;
};
/// Samples token (B) from the rows of logits (B, V), columns below `vocabulary` only. Row b draws
/// with (seed, request[b], position), so the draw is batch-invariant. Tokens are ordered by logit,
/// ties by index; top_k keeps the first k, then top_p the shortest prefix of those that reaches it.
/// NaN counts as -infinity; a row without a greater logit gives -1, which the caller must check
/// before using it as an index.
template <class T>
struct Sample {
  static constexpr Traits traits{.name = "tern::sample"};
  Sampling options;
  Matrix<const T> logits;
  std::size_t vocabulary;
  Vector<const std::int32_t> request;
  int position;
  Vector<std::int32_t> token;

  void check() const;
  double bytes() const { return bytes_of(logits); }
  static void portable(const Context&, const Sample&);
};

/// Like sample(), but row b draws with (seed, ids[b], numbers[b]). ids (2B): lower and upper halves
/// of the request numbers, interleaved; numbers below 2^32 draw as in sample().
template <class T>
struct SampleRows {
  static constexpr Traits traits{.name = "tern::sample_rows", .native = is_half<T>};
  Sampling options;
  Matrix<const T> logits;
  std::size_t vocabulary;
  Vector<const std::int32_t> ids;
  Vector<const std::int32_t> numbers;
  Vector<std::int32_t> token;

  void check() const;
  double bytes() const { return bytes_of(logits); }
  static void portable(const Context&, const SampleRows&);
  static bool native(const Context&, const SampleRows&);
};

}  // namespace tern::ops
