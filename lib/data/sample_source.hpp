/// Samples of several segments as rows for block diffusion, several samples per row.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/samples.hpp"
#include "data/source.hpp"
#include "text/tokenizer.hpp"

namespace tern::data {

/// How samples become tokens and rows. Each segment (question, plan, execution) is tokenized
/// separately and ends with the end token, which its maximum number of tokens includes.
///
/// | hierarchical | conditioned | prefix   | plan_level | execution_level          |
/// |--------------|-------------|----------|------------|--------------------------|
/// | true         | (implied)   | question | plan       | execution                |
/// | false        | true        | question |            | plan, execution          |
/// | false        | false       |          |            | question, plan, execution|
///
/// Each level is padded with end tokens to whole blocks, but not beyond its maximum, the sum of its
/// segments' maxima.
struct SampleRules {
  std::size_t question_tokens = 128, plan_tokens = 128, execution_tokens = 256;
  std::size_t plan_block = 0, execution_block = 16;  // 0: one block of the level's maximum
  bool hierarchical = true;
  bool conditioned = true;    // the question is a clean prefix and not predicted
  bool packing = true;        // several samples per row
  bool cut = true;            // truncate long segments; false: leave the sample out
  std::size_t positions = 0;  // T of a row; 0: longest_positions()
  std::uint64_t seed = 0;     // for packing
  std::size_t threads = 1;    // for tokenization

  /// Positions of a sample whose segments all have maximum length.
  std::size_t longest_positions() const;
};

/// Numbers of all samples, of those left out and of segments too long; longest segments in tokens,
/// end token included.
struct Truncation {
  std::size_t samples = 0, left_out = 0;
  std::size_t questions = 0, plans = 0, executions = 0;  // too long ones
  std::size_t longest_question = 0, longest_plan = 0, longest_execution = 0;
};

class SampleSource : public Source {
 public:
  /// Tokenizes all samples and packs them by best fit decreasing (detail/packing.hpp). Rows are in
  /// pseudo-random order, a function of samples, tokenizer and rules only, and the same in each
  /// epoch; without packing row r is the r-th sample not left out. Throws UserError for
  /// contradictory rules, if there are no samples or none fits its maxima, if a row is shorter than
  /// a sample, and for a tokenizer without an end token.
  SampleSource(const std::vector<Sample>& samples, const text::Tokenizer& tokenizer,
               const SampleRules& rules);
  ~SampleSource() override;

  std::size_t rows() const override;
  void start(Batch& batch) const override { batch.make<SampleRows>(); }
  void append(std::size_t row, std::size_t at, Batch& batch) const override;
  /// tokens[l]: without padding, i.e. trailing end tokens except the first.
  Counts counts(std::size_t row) const override;

  /// T of a row.
  std::size_t positions() const;
  /// Fraction of all rows' positions that hold samples.
  double fill() const;
  const Truncation& truncation() const;
  /// Numbers of a row's samples in the constructor's list, in their order in the row.
  const std::vector<std::size_t>& samples_of(std::size_t row) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Tokens of a sample's question and plan as in training, end token included. Long ones are
/// truncated, whatever `rules.cut` is.
std::vector<std::int32_t> question_tokens(const Sample& sample, const text::Tokenizer& tokenizer,
                                          const SampleRules& rules);
std::vector<std::int32_t> plan_tokens(const Sample& sample, const text::Tokenizer& tokenizer,
                                      const SampleRules& rules);

/// Texts of the first `count` segments of a generated level, each up to its end token, which the
/// last one may lack.
std::vector<std::string> segment_texts(const std::vector<std::int32_t>& tokens,
                                       const text::Tokenizer& tokenizer, std::size_t count);

/// Text of the first segment: the tokens before the first end token, decoded.
std::string level_text(const std::vector<std::int32_t>& tokens, const text::Tokenizer& tokenizer);

}  // namespace tern::data
