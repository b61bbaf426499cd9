/// Sources of batches: rows of a fixed number of positions, numbered from 0. A row is a window of
/// tokens or holds one or several samples.
#pragma once
#include <string>

#include "data/sample_rows.hpp"
#include "data/shards.hpp"
#include "text/tokenizer.hpp"

namespace tern::data {

class Source {
 public:
  virtual ~Source() = default;
  virtual std::size_t rows() const = 0;
  /// Allocates a batch whose B and T are set, with all rows empty.
  virtual void start(Batch&) const {}
  /// Adds row `row` of the source as row `at` of the batch. Called concurrently by several threads,
  /// each with its own batch.
  virtual void append(std::size_t row, std::size_t at, Batch& batch) const = 0;
  virtual Counts counts(std::size_t row) const = 0;
  /// --show-batch: a line per token of row `row`, which is row `at` of the batch. Empty: not shown.
  virtual std::string show(std::size_t row, std::size_t at, const Batch& batch,
                           const text::Tokenizer& tokenizer) const;
};

/// Windows of `length` tokens, each with its successor as target.
class NextTokenSource : public Source {
 public:
  NextTokenSource(const Shards& shards, std::size_t length) : shards_(shards), length_(length) {}
  std::size_t rows() const override { return shards_.windows(length_); }
  void start(Batch& batch) const override;
  void append(std::size_t row, std::size_t at, Batch& batch) const override;
  Counts counts(std::size_t) const override;

 private:
  const Shards& shards_;
  std::size_t length_;
};

/// The same windows as samples of one level, in blocks of `block` tokens.
class BlockSource : public Source {
 public:
  BlockSource(const Shards& shards, std::size_t length, std::size_t block)
      : shards_(shards), length_(length), block_(block) {}
  std::size_t rows() const override { return shards_.windows(length_); }
  void start(Batch& batch) const override { batch.make<SampleRows>(); }
  void append(std::size_t row, std::size_t at, Batch& batch) const override;
  Counts counts(std::size_t) const override;

 private:
  const Shards& shards_;
  std::size_t length_, block_;
};

}  // namespace tern::data
