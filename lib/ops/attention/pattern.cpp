#include "ops/attention/pattern.hpp"

#include <algorithm>

namespace tern::ops {
namespace {

void widen(Span& hull, const Span& span) {
  if (span.empty()) return;
  hull =
      hull.empty() ? span : Span{std::min(hull.first, span.first), std::max(hull.last, span.last)};
}

void narrow(Span& common, const Span& span) {
  common = {std::max(common.first, span.first), std::min(common.last, span.last)};
}

SpanHull hull_of(const KeySpans* first, const KeySpans* last) {
  SpanHull hull{{}, *first};
  for (const KeySpans* q = first; q != last; ++q) {
    widen(hull.widest.context, q->context);
    widen(hull.widest.own, q->own);
    narrow(hull.common.context, q->context);
    narrow(hull.common.own, q->own);
  }
  return hull;
}

}  // namespace

SpanTable::SpanTable(std::size_t batch, std::size_t tokens)
    : batch_(batch),
      tokens_(tokens),
      spans_(batch * tokens),
      hulls_(batch * static_cast<std::size_t>(Pattern::groups(static_cast<int>(tokens)))) {}

void SpanTable::clear() { std::fill(spans_.begin(), spans_.end(), KeySpans{}); }

void SpanTable::finish() {
  SpanHull* hull = hulls_.data();
  for (std::size_t b = 0; b < batch_; ++b) {
    const KeySpans* row = spans_.data() + b * tokens_;
    for (std::size_t q = 0; q < tokens_; q += Pattern::group)
      *hull++ = hull_of(row + q, row + std::min(tokens_, q + Pattern::group));
  }
}

Pattern SpanTable::pattern(const KeySpans* spans, const SpanHull* hulls) const {
  Pattern result;
  result.kind = Pattern::Kind::spans;
  result.queries = static_cast<int>(tokens_);
  result.spans = spans;
  result.hulls = hulls;
  return result;
}

}  // namespace tern::ops
