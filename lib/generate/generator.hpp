/// Generation of tokens by a trained transformer, with a key-value cache.
///
/// Sequences are left-aligned: each stands in its own slot of the cache and has its own positions,
/// so prompts may differ in length and no padding exists. Prompts are prefilled one by one, in
/// pieces of prefill_rows tokens; then all unfinished sequences of a batch decode together, one
/// token each a step: the matrix products run over the whole batch, rotation and attention over
/// runs of neighbouring slots that have equal length. A sequence's tokens depend on its prompt, its
/// number in the list of prompts and the sampling alone, up to the rounding of matrix products of
/// different heights.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/decoder.hpp"

namespace tern::generate {

struct GenerationOptions {
  ops::Sampling sampling;
  std::size_t max_new = 128;   // tokens after the prompt, at most
  std::int32_t stop = -1;      // ends a sequence, and is not part of the result; -1: none
  std::size_t vocabulary = 0;  // tokens at or above it (padding) are never drawn; 0: the model's
};

template <class T>
class Generator {
 public:
  static constexpr std::size_t prefill_rows = 256;

  /// batch: sequences decoded together. max_tokens: of one sequence, prompt included. steps: of a
  /// recursive model for each token; each of their passes has keys and values of its own, so the
  /// cache takes steps x passes x layers x 2 x batch x max_tokens x K E elements of the arena.
  /// UserError if a model with learned positions has fewer of them.
  Generator(const deck::Model& model, const model::ParameterTree& tree,
            const model::Parameters<T>& parameters, std::size_t batch, std::size_t max_tokens,
            std::size_t steps, Arena& arena);

  /// Fills what is constant. Once, after the arena allocates.
  void prepare(const ops::Context& context) { decoder_.prepare(context); }

  /// The new tokens of each prompt, in the order of the prompts, of which there may be more than
  /// `batch`. A sequence ends after max_new tokens, before the stop token, or when it has
  /// max_tokens. Throws UserError for an empty prompt, one without room for a new token, or a token
  /// outside the vocabulary, naming the prompt. Waits for the device after each token.
  std::vector<std::vector<std::int32_t>> generate(
      const ops::Context& context, const std::vector<std::vector<std::int32_t>>& prompts,
      const GenerationOptions& options);

 private:
  /// One sequence being generated. Those of a batch are kept in order of their slots.
  struct Sequence {
    std::size_t prompt;  // number in the list of prompts
    std::size_t slot;    // place in the cache
    std::size_t length;  // tokens in the cache
    std::int32_t next;   // the newest token, not yet in the cache
  };
  /// Rows of the current pass that are computed together: `sequences` neighbours of `tokens` rows
  /// each.
  struct Run {
    std::size_t row, slot, sequences, tokens, length;
  };

  void check(const std::vector<std::int32_t>& prompt, std::size_t number) const;
  void prefill(const ops::Context&, Sequence&, const std::vector<std::int32_t>& prompt);
  void decode(const ops::Context&, const std::vector<Sequence>&);
  Matrix<const T> pass(const ops::Context&, const std::vector<std::int32_t>& tokens,
                       const std::vector<Run>&);
  void attend(const ops::Context&, std::size_t cache,
              const typename model::Decoder<T>::AttentionParameters&,
              const typename model::Decoder<T>::AttentionRows&, const Run&);
  void sample(const ops::Context&, const GenerationOptions&, std::vector<Sequence>&,
              std::size_t drawn);
  Heads<T> cached(const Matrix<T>& cache, const Run&, std::size_t tokens) const;

  model::Dimensions size_;
  std::size_t batch_, max_tokens_, steps_;
  double scale_, cap_;
  model::Decoder<T> decoder_;
  std::vector<Matrix<T>> keys_, values_;  // (batch * max_tokens, K E), one a pass and layer
  Matrix<T> logits_;                      // (batch, V), one row a sequence
  Vector<std::int32_t> tokens_;           // (max(batch, prefill_rows))
  Vector<std::int32_t> requests_;         // (batch)
};

}  // namespace tern::generate
