#include "generate/block_sampler.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "generate/detail/check_tokens.hpp"

namespace tern::generate {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Blocks up to this size are stored in the next block's first pass, which saves one pass per block
/// but needs rows for both; for larger blocks it would save little.
constexpr std::size_t joined_block = 32;

std::size_t pass_rows(std::size_t batch, std::size_t max_tokens, std::size_t largest_block) {
  return std::max(max_tokens, batch * (largest_block + std::min(largest_block, joined_block)));
}

/// Rows of logits per chunk of drawn tokens.
std::size_t chunk_rows(std::size_t drawn, std::size_t vocabulary, std::size_t element_bytes) {
  constexpr bool host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
  constexpr std::size_t most = 1024;
  return std::min(most, ops::head_chunk_rows(drawn, vocabulary, element_bytes, host));
}

/// `from` must outlive the copy: until the next fence.
template <class V>
Vector<const V> upload(const ops::Context& context, const Vector<V>& to,
                       const std::vector<V>& from) {
  const Vector<V> device(to.data(), from.size());
  if (from.empty()) return device;
  Kokkos::deep_copy(context.space, device, HostVector<const V>(from.data(), from.size()));
  return device;
}

}  // namespace

template <class T>
BlockSampler<T>::BlockSampler(const deck::Model& model, const model::ParameterTree& tree,
                              const model::Parameters<T>& parameters, std::size_t batch,
                              std::size_t max_tokens, std::size_t largest_block, Arena& arena)
    : size_(model, tree.share()),
      batch_(batch),
      max_tokens_(max_tokens),
      largest_block_(largest_block),
      rows_(pass_rows(batch, max_tokens, largest_block)),
      levels_(static_cast<std::size_t>(model.levels)),
      scale_(1 / std::sqrt(static_cast<double>(model.head_dim))),
      decoder_(
          model, tree, parameters,
          {rows_, max_tokens,
           tree.share().tensors > 1 ? chunk_rows(batch * largest_block, size_.V, sizeof(T)) : 1},
          arena),
      cache_(decoder_.layers(), batch, max_tokens, size_.K, size_.E, arena) {
  TERN_REQUIRE(batch > 0 && largest_block > 0 && largest_block <= max_tokens,
               "batch {}, blocks of {}, {} tokens", batch, largest_block, max_tokens);
  TERN_REQUIRE(deck::position_of(model) != deck::Position::learned,
               "block sampling of a model with learned positions");
  const std::size_t drawn = batch * largest_block;
  const std::size_t chunk = chunk_rows(drawn, size_.V, sizeof(T));
  integers_ = arena.vector<std::int32_t>("rows", Term::data, 4 * rows_);
  spans_ = arena.vector<ops::KeySpans>("spans", Term::data, rows_);
  hulls_ = arena.vector<ops::SpanHull>("hulls", Term::data, rows_);
  picked_at_ = arena.vector<std::int32_t>("picked rows", Term::data, 2 * drawn);
  drawn_ = arena.vector<std::int32_t>("drawn tokens", Term::data, drawn);
  picked_ = arena.matrix<T>("picked", Term::workspace, chunk, size_.D);
  logits_ = arena.matrix<T>("drawn logits", Term::workspace, chunk, size_.V);
}

// ---- checks of the request ----

template <class T>
void BlockSampler<T>::check(const std::vector<LevelRule>& levels,
                            const BlockSampling& options) const {
  TERN_REQUIRE(!levels.empty(), "no level to sample");
  for (const LevelRule& rule : levels) {
    TERN_REQUIRE(rule.tokens > 0 && rule.block_tokens() <= largest_block_,
                 "a level of {} tokens in blocks of {}, made for {}", rule.tokens,
                 rule.block_tokens(), largest_block_);
    TERN_REQUIRE(levels_ > 0 ? rule.level >= 0 && static_cast<std::size_t>(rule.level) < levels_
                             : rule.level < 0,
                 "row {} of a level embedding of {}", rule.level, levels_);
  }
  TERN_REQUIRE(options.mask >= 0 && static_cast<std::size_t>(options.mask) < size_.V &&
                   options.vocabulary > 0 &&
                   options.vocabulary <= static_cast<std::size_t>(options.mask),
               "mask token {}, tokens drawn {}, of {}", options.mask, options.vocabulary, size_.V);
}

template <class T>
void BlockSampler<T>::check_sequences(const std::vector<Tokens>& prompts,
                                      const std::vector<LevelRule>& levels,
                                      const std::vector<std::vector<Tokens>>& given,
                                      const BlockSampling& options) const {
  TERN_REQUIRE(given.empty() || given.size() == prompts.size(), "{} prompts, given tokens of {}",
               prompts.size(), given.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::size_t number = options.first + i;
    detail::check_tokens(prompts[i], number, size_.V);
    std::size_t longest = prompts[i].size();
    for (std::size_t l = 0; l < levels.size(); ++l) {
      longest += levels[l].tokens;
      if (given.empty()) continue;
      TERN_REQUIRE(given[i].size() == levels.size(), "{} levels, given tokens of {}", levels.size(),
                   given[i].size());
      detail::check_tokens(given[i][l], number, size_.V);
      if (given[i][l].size() > levels[l].tokens)
        user_error("prompt {}: {} tokens are given for a level of at most {}; shorten them", number,
                   given[i][l].size(), levels[l].tokens);
    }
    if (longest > max_tokens_)
      user_error(
          "prompt {} has {} tokens, and with the {} that may follow it would take {} of {} "
          "positions; shorten it",
          number, prompts[i].size(), longest - prompts[i].size(), longest, max_tokens_);
  }
}

template <class T>
std::vector<std::vector<Tokens>> BlockSampler<T>::sample(
    const ops::Context& context, const std::vector<Tokens>& prompts,
    const std::vector<LevelRule>& levels, const std::vector<std::vector<Tokens>>& given,
    const BlockSampling& options) {
  check(levels, options);
  check_sequences(prompts, levels, given, options);
  std::size_t length = 0;
  for (const LevelRule& rule : levels) length += rule.tokens;
  std::vector<std::vector<Tokens>> results(prompts.size());
  for (std::size_t first = 0; first < prompts.size(); first += batch_) {
    sequences_.clear();
    for (std::size_t i = first; i < std::min(first + batch_, prompts.size()); ++i)
      sequences_.emplace_back(options.first + i, length, prompts[i], levels_ > 0 ? 0 : -1);
    for (std::size_t l = 0; l < levels.size(); ++l) {
      for (Sequence& s : sequences_)
        s.start_level(levels[l], given.empty() ? Tokens{} : given[s.number() - options.first][l],
                      options.end);
      sample_level(context, levels[l], options);
      for (const Sequence& s : sequences_)
        results[s.number() - options.first].push_back(s.level_tokens());
    }
  }
  return results;
}

// ---- levels and blocks ----

template <class T>
void BlockSampler<T>::sample_level(const ops::Context& context, const LevelRule& rule,
                                   const BlockSampling& options) {
  const std::size_t block = rule.block_tokens();
  for (std::size_t at = 0; at < rule.tokens; at += block)
    denoise(context, compact(context, at), std::min(block, rule.tokens - at), rule, options);
}

/// Moves the sequences whose level continues at `at` to the first slots; returns their number.
template <class T>
std::size_t BlockSampler<T>::compact(const ops::Context& context, std::size_t at) {
  std::size_t active = 0;
  for (std::size_t slot = 0; slot < sequences_.size(); ++slot) {
    Sequence &s = sequences_[slot], &to = sequences_[active];
    if (s.level_finished() || s.level_size() != at) continue;
    if (slot != active) {
      cache_.exchange(context, slot, active, std::max(s.cached, to.cached));
      std::swap(s, to);
    }
    ++active;
  }
  return active;
}

template <class T>
void BlockSampler<T>::denoise(const ops::Context& context, std::size_t active, std::size_t count,
                              const LevelRule& rule, const BlockSampling& options) {
  std::size_t passes = 0;
  for (std::size_t slot = 0; slot < active; ++slot) {
    sequences_[slot].start_block(count, options);
    passes = std::max(passes, sequences_[slot].passes.size());
  }
  for (std::size_t pass = 0; pass < passes; ++pass) {
    if (active * (max_pending(0, active) + count) > rows_) catch_up(context, active);
    const Block block{max_pending(0, active), count, pass, rule.level};
    const detail::PassRows rows = rows_of(0, active, block);
    draw(context, run(context, rows), active, block, options);
  }
  for (std::size_t slot = 0; slot < active; ++slot)
    sequences_[slot].finish_block(rule, options.end);
}

/// Stores the keys and values of all clean tokens.
template <class T>
void BlockSampler<T>::catch_up(const ops::Context& context, std::size_t active) {
  for (std::size_t first = 0; first < active;) {
    std::size_t last = first + 1;
    while (last < active && (last + 1 - first) * max_pending(first, last + 1) <= rows_) ++last;
    const detail::PassRows rows = rows_of(first, last, {max_pending(first, last), 0, 0, -1});
    if (rows.count() > 0) {
      run(context, rows);
      context.fence("clean rows");  // `rows` must outlive its copies
    }
    first = last;
  }
}

template <class T>
std::size_t BlockSampler<T>::max_pending(std::size_t first, std::size_t last) const {
  std::size_t most = 0;
  for (std::size_t slot = first; slot < last; ++slot)
    most = std::max(most, sequences_[slot].pending());
  return most;
}

/// Rows of the sequences in slots [first, last): clean tokens that are not in the cache, and the
/// current block, unless this pass unmasks none of it.
template <class T>
detail::PassRows BlockSampler<T>::rows_of(std::size_t first, std::size_t last, const Block& block) {
  detail::PassRows rows(first, last - first, block.row + block.tokens, max_tokens_);
  for (std::size_t slot = first; slot < last; ++slot) {
    Sequence& s = sequences_[slot];
    for (std::size_t row = 0; s.cached < s.size(); ++row, ++s.cached)
      rows.put(slot, row, s.token(s.cached), s.cached, s.level(s.cached), s.sees(s.cached));
    if (block.pass >= s.passes.size()) continue;
    for (std::size_t p = 0; p < block.tokens; ++p)
      rows.put(slot, block.row + p, s.block[p], s.size() + p, block.level, s.size() + block.tokens);
  }
  rows.finish();
  return rows;
}

// ---- one pass ----

/// Returns the finished rows. The caller waits for the device.
template <class T>
Matrix<const T> BlockSampler<T>::run(const ops::Context& context, const detail::PassRows& rows) {
  const std::size_t S = rows.sequences(), R = rows.rows(), N = rows.count(), H = size_.H,
                    E = size_.E;
  const Vector<const std::int32_t> integers = upload(context, integers_, rows.integers());
  const auto part = [&](std::size_t at) {
    return Vector<const std::int32_t>(integers.data() + at * N, N);
  };
  const ops::Pattern pattern =
      rows.table().pattern(upload(context, spans_, rows.table().spans()).data(),
                           upload(context, hulls_, rows.table().hulls()).data());
  const auto attend = [&](std::size_t layer, const auto& parameters, const auto& of,
                          const model::MapInput<T>& input) {
    decoder_.attention().place_heads(context, parameters, of, {S, R}, {0, part(rows.positions_at)});
    cache_.store(context, layer, of.qkv.data() + H * E, size_.qkv, part(rows.places_at));
    ops::attention_forward<T>(context,
                              {.pattern = pattern,
                               .scale = scale_,
                               .q = heads_of(of.qkv, 0, S, R, H, E),
                               .k = cache_.keys(layer, rows.first_slot(), S, rows.keys()),
                               .v = cache_.values(layer, rows.first_slot(), S, rows.keys()),
                               .out = heads_of(of.result, 0, S, R, H, E),
                               .lse = of.lse});
    linear::round_rows<T>(context, input);
  };
  ++work_.passes;
  work_.rows += N;
  return decoder_.forward(
      context, {S, R},
      {{part(0), R, 0, levels_ > 0 ? part(rows.levels_at) : Vector<const std::int32_t>()}}, attend);
}

/// Unmasks the tokens of the block's pass.
template <class T>
void BlockSampler<T>::draw(const ops::Context& context, Matrix<const T> finished,
                           std::size_t active, const Block& block, const BlockSampling& options) {
  std::vector<std::int32_t> rows, requests;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // slot, place in the block
  for (std::size_t slot = 0; slot < active; ++slot) {
    const Sequence& s = sequences_[slot];
    if (block.pass >= s.passes.size()) continue;
    for (const std::size_t p : s.passes[block.pass]) {
      const std::size_t row = slot * (block.row + block.tokens) + block.row + p;
      rows.push_back(static_cast<std::int32_t>(row));
      requests.push_back(s.random_id_of(p));
      places.emplace_back(slot, p);
    }
  }
  const Tokens tokens = draw_rows(context, finished, rows, requests, options);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Sequence& s = sequences_[places[i].first];
    if (tokens[i] < 0)
      user_error(
          "prompt {}: the model's logits are not finite; its weights may come from a run that "
          "diverged; set &generation checkpoint to an earlier checkpoint",
          s.number());
    s.block[places[i].second] = tokens[i];
  }
}

/// Draws one token from each of some finished rows, in chunks of logits.
template <class T>
Tokens BlockSampler<T>::draw_rows(const ops::Context& context, Matrix<const T> finished,
                                  Tokens rows, const Tokens& requests,
                                  const BlockSampling& options) {
  const std::size_t M = rows.size();
  rows.insert(rows.end(), requests.begin(), requests.end());
  const Vector<const std::int32_t> both = upload(context, picked_at_, rows);
  for (std::size_t first = 0; first < M; first += logits_.extent(0)) {
    const std::size_t n = std::min(logits_.extent(0), M - first);
    const Matrix<T> picked = as_matrix(picked_.data(), n, size_.D);
    const Matrix<T> logits = as_matrix(logits_.data(), n, size_.V);
    ops::embedding_forward<T>(context, Vector<const std::int32_t>(both.data() + first, n), finished,
                              {}, 1, 0, picked);  // a gather
    decoder_.logits_of(context, picked, logits);
    ops::sample<T>(context, options.sampling, logits, options.vocabulary,
                   Vector<const std::int32_t>(both.data() + M + first, n), 0,
                   Vector<std::int32_t>(drawn_.data() + first, n));
  }
  Tokens tokens(M);
  Kokkos::deep_copy(context.space, HostVector<std::int32_t>(tokens.data(), M),
                    Vector<const std::int32_t>(drawn_.data(), M));
  context.fence("drawn tokens");
  return tokens;
}

template class BlockSampler<float>;
template class BlockSampler<double>;
template class BlockSampler<bf16>;
template class BlockSampler<fp16>;

}  // namespace tern::generate
