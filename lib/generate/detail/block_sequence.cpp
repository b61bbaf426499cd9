#include "generate/detail/block_sequence.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "base/random.hpp"

namespace tern::generate::detail {
namespace {

/// ops::sample draws at step 0 of the stream, orders at this one.
constexpr std::uint64_t order_step = 1;

/// One past the end token that finishes a level with `before` earlier ones; 0: none.
std::size_t level_end(const std::vector<std::int32_t>& tokens, const LevelRule& rule,
                      std::int32_t end, std::size_t before) {
  if (end < 0 || rule.ends == 0) return 0;
  std::size_t ends = before;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == end && ++ends == rule.ends) return i + 1;
  return 0;
}

}  // namespace

std::uint32_t random_id(std::size_t number, std::size_t place, std::size_t length) {
  const std::size_t id = number * length + place;
  TERN_REQUIRE(place < length && id <= std::numeric_limits<std::uint32_t>::max(),
               "token {} of {} of prompt {}", place, length, number);
  return static_cast<std::uint32_t>(id);
}

std::vector<std::vector<std::size_t>> unmasking(const BlockSampling& options,
                                                const std::vector<std::int32_t>& block,
                                                std::uint32_t first_id) {
  using Method = BlockSampling::Method;
  const std::uint64_t steps = options.steps > 0 ? options.steps : block.size();
  // first_hitting: sorting by random keys shuffles. ddpm: uniform steps.
  std::map<std::pair<std::uint64_t, std::size_t>, std::vector<std::size_t>> passes;
  for (std::size_t p = 0; p < block.size(); ++p) {
    if (block[p] != options.mask) continue;
    const Random4 words = philox(options.sampling.seed, Stream::sampling, order_step,
                                 first_id + static_cast<std::uint32_t>(p), 0);
    const std::uint64_t key = (std::uint64_t{words.word[0]} << 32) | words.word[1];
    if (options.method == Method::ddpm)
      passes[{(words.word[0] * steps) >> 32, 0}].push_back(p);
    else
      passes[{key, p}].push_back(p);
  }
  std::vector<std::vector<std::size_t>> result;
  for (auto& [when, places] : passes) result.push_back(std::move(places));
  return result;
}

std::vector<std::int32_t> filled(std::vector<std::int32_t> given, const LevelRule& rule,
                                 std::int32_t end) {
  const std::size_t length = level_end(given, rule, end, 0), block = rule.block_tokens();
  if (length == 0) return given;
  given.resize(length);
  given.resize(std::min(rule.tokens, (length + block - 1) / block * block), end);
  return given;
}

BlockSequence::BlockSequence(std::size_t number, std::size_t length,
                             const std::vector<std::int32_t>& prefix, std::int32_t prefix_level)
    : number_(number), length_(length), prefix_(prefix.size()) {
  append(prefix, prefix_level);
}

/// Appends a prefix or a block: its tokens attend to each other and to all before.
void BlockSequence::append(const std::vector<std::int32_t>& tokens, std::int32_t level) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  levels_.resize(tokens_.size(), level);
  sees_.resize(tokens_.size(), tokens_.size());
}

void BlockSequence::start_level(const LevelRule& rule, const std::vector<std::int32_t>& given,
                                std::int32_t end) {
  level_begin_ = size();
  ends_ = 0;
  level_finished_ = false;
  given_ = filled(given, rule, end);
  while (!level_finished_) {
    const std::size_t at = level_size(), count = std::min(rule.block_tokens(), rule.tokens - at);
    if (given_.size() < at + count) return;
    const auto first = given_.begin() + static_cast<std::ptrdiff_t>(at);
    block.assign(first, first + static_cast<std::ptrdiff_t>(count));
    finish_block(rule, end);
  }
}

void BlockSequence::start_block(std::size_t count, const BlockSampling& options) {
  block.assign(count, options.mask);
  for (std::size_t i = level_size(), p = 0; p < count && i < given_.size(); ++i, ++p)
    block[p] = given_[i];
  passes = unmasking(options, block, static_cast<std::uint32_t>(random_id_of(0)));
}

void BlockSequence::finish_block(const LevelRule& rule, std::int32_t end) {
  const std::size_t last = level_end(block, rule, end, ends_);
  if (last > 0) std::fill(block.begin() + static_cast<std::ptrdiff_t>(last), block.end(), end);
  if (end >= 0) ends_ += static_cast<std::size_t>(std::count(block.begin(), block.end(), end));
  append(block, rule.level);
  level_finished_ = last > 0 || level_size() == rule.tokens;
}

std::int32_t BlockSequence::random_id_of(std::size_t place) const {
  return static_cast<std::int32_t>(random_id(number_, size() - prefix_ + place, length_));
}

}  // namespace tern::generate::detail
