/// Host state of block sampling: one sequence being sampled.
#pragma once
#include <cstdint>
#include <vector>

#include "generate/block_rules.hpp"

namespace tern::generate::detail {

/// Random-number key of a token: `number` is the prompt's, `place` counts from the end of the
/// prefix, in a sample of at most `length` places.
std::uint32_t random_id(std::size_t number, std::size_t place, std::size_t length);

/// Order in which the masked places of a block are unmasked: one entry per pass. The token at place
/// p has random_id first_id + p.
std::vector<std::vector<std::size_t>> unmasking(const BlockSampling& options,
                                                const std::vector<std::int32_t>& block,
                                                std::uint32_t first_id);

/// Given tokens of a level, truncated after the end token that finishes it, then padded with end
/// tokens to whole blocks.
std::vector<std::int32_t> filled(std::vector<std::int32_t> given, const LevelRule& rule,
                                 std::int32_t end);

class BlockSequence {
 public:
  /// `length`: maximum over all levels together. prefix_level: the prefix's row of the level
  /// embedding, or -1.
  BlockSequence(std::size_t number, std::size_t length, const std::vector<std::int32_t>& prefix,
                std::int32_t prefix_level);

  /// Starts a level; takes the whole blocks of what is given.
  void start_level(const LevelRule& rule, const std::vector<std::int32_t>& given, std::int32_t end);
  /// Starts the next block of `count` tokens: what is given of it, then masks.
  void start_block(std::size_t count, const BlockSampling& options);
  /// Appends the block to the clean tokens. After the end token that finishes the level, all are
  /// end tokens.
  void finish_block(const LevelRule& rule, std::int32_t end);

  bool level_finished() const { return level_finished_; }
  /// Clean tokens of the level so far.
  std::size_t level_size() const { return tokens_.size() - level_begin_; }
  std::vector<std::int32_t> level_tokens() const {
    return {tokens_.begin() + static_cast<std::ptrdiff_t>(level_begin_), tokens_.end()};
  }

  std::size_t number() const { return number_; }
  // Clean tokens, indexed by position.
  std::size_t size() const { return tokens_.size(); }
  std::int32_t token(std::size_t i) const { return tokens_[i]; }
  std::int32_t level(std::size_t i) const { return levels_[i]; }
  std::size_t sees(std::size_t i) const { return sees_[i]; }  // attends to those before this

  // The current block.
  std::vector<std::int32_t> block;
  std::vector<std::vector<std::size_t>> passes;  // places that each pass unmasks
  std::int32_t random_id_of(std::size_t place) const;

  std::size_t cached = 0;  // clean tokens whose keys and values are in the cache
  std::size_t pending() const { return size() - cached; }

 private:
  void append(const std::vector<std::int32_t>& tokens, std::int32_t level);

  std::size_t number_, length_, prefix_;
  std::vector<std::int32_t> tokens_, levels_;
  std::vector<std::size_t> sees_;
  std::size_t level_begin_ = 0, ends_ = 0;
  bool level_finished_ = false;
  std::vector<std::int32_t> given_;  // for the current level
};

}  // namespace tern::generate::detail
