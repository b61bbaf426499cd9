/// Samples of several segments as rows of block diffusion, several samples in a row.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/samples.hpp"
#include "data/source.hpp"
#include "text/tokenizer.hpp"

namespace tern::data {

/// How samples become tokens and rows. Each segment (question, plan, execution) is tokenised alone
/// and ends with the end token; the maxima are in tokens and include it.
///
/// | hierarchical | conditioned | prefix   | plan_level | execution_level          |
/// |--------------|-------------|----------|------------|--------------------------|
/// | true         | (implied)   | question | plan       | execution                |
/// | false        | true        | question |            | plan, execution          |
/// | false        | false       |          |            | question, plan, execution|
///
/// Each level is filled up with end tokens to whole blocks, but not beyond its maximum, which is
/// the sum of its segments' maxima.
struct SampleRules {
  std::size_t question_tokens = 128, plan_tokens = 128, execution_tokens = 256;
  std::size_t plan_block = 0, execution_block = 16;  // 0: one block of the level's maximum
  bool hierarchical = true;
  bool conditioned = true;    // the question is a clean prefix and not predicted
  bool packing = true;        // several samples in a row
  bool cut = true;            // a segment that is too long is cut; false: the sample is left out
  std::size_t positions = 0;  // T of a row; 0: longest_positions()
  std::uint64_t seed = 0;     // of the packing
  std::size_t threads = 1;    // for tokenising

  /// Positions of a sample whose segments all have their maximum.
  std::size_t longest_positions() const;
};

/// What did not fit, and the longest segments there were, in tokens with their end token.
struct Truncation {
  std::size_t samples = 0, left_out = 0;
  std::size_t questions = 0, plans = 0, executions = 0;  // too long
  std::size_t longest_question = 0, longest_plan = 0, longest_execution = 0;
};

class SampleSource : public Source {
 public:
  /// Tokenises all samples and packs them into rows: the longer ones first, each into the fullest
  /// row that it fits into. The rows, numbered in a pseudo-random order, are a function of samples,
  /// tokenizer and rules alone, and the same in each epoch; without packing row r is the r-th
  /// sample that is not left out. Throws UserError for contradictory rules, if no sample fits its
  /// maxima, if a row is shorter than a sample, and for a tokenizer without an end token.
  SampleSource(const std::vector<Sample>& samples, const text::Tokenizer& tokenizer,
               const SampleRules& rules);
  ~SampleSource() override;

  std::size_t rows() const override;
  void append(std::size_t row, std::size_t at, Batch& batch) const override;
  /// tokens[l]: without the filling, which are the level's last end tokens but the first of them.
  Counts counts(std::size_t row) const override;

  /// T of a row.
  std::size_t positions() const;
  /// Share of all rows' positions that samples stand on.
  double fill() const;
  const Truncation& truncation() const;
  /// The numbers of a row's samples in the constructor's list, in their order in the row.
  const std::vector<std::size_t>& samples_of(std::size_t row) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A sample's question and plan exactly as in training, end token included; what is too long is
/// cut, whatever `rules.cut` says.
std::vector<std::int32_t> question_tokens(const Sample& sample, const text::Tokenizer& tokenizer,
                                          const SampleRules& rules);
std::vector<std::int32_t> plan_tokens(const Sample& sample, const text::Tokenizer& tokenizer,
                                      const SampleRules& rules);

/// The texts of the first `count` segments of a generated level, each up to its end token; the
/// last one may lack it.
std::vector<std::string> segment_texts(const std::vector<std::int32_t>& tokens,
                                       const text::Tokenizer& tokenizer, std::size_t count);

/// The first of them: the tokens before the first end token, decoded.
std::string level_text(const std::vector<std::int32_t>& tokens, const text::Tokenizer& tokenizer);

}  // namespace tern::data
