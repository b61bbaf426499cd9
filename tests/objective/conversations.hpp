/// Random conversations, and batches of them made as the reader makes them.
#pragma once
#include <random>
#include <vector>

#include "data/chat_source.hpp"

namespace tern::test {

/// A question of 2 to 7 tokens and an answer of 1 to 6; of two turns where `turns` is 2.
inline text::ChatTokens random_chat(std::mt19937& generator, int vocabulary, int turns = 1) {
  text::ChatTokens chat;
  const auto below = [&](int n) {
    return static_cast<int>(generator() % static_cast<unsigned>(n));
  };
  for (int turn = 0; turn < 2 * turns; ++turn) {
    const bool answer = turn % 2 == 1;
    for (int i = (answer ? 1 : 2) + below(6); i > 0; --i) {
      chat.tokens.push_back(below(vocabulary));
      chat.learned.push_back(answer ? 1 : 0);
      chat.roles.push_back(answer ? text::Role::assistant : text::Role::user);
    }
  }
  return chat;
}

inline std::vector<text::ChatTokens> random_chats(std::size_t count, int vocabulary,
                                                  unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<text::ChatTokens> chats;
  for (std::size_t i = 0; i < count; ++i)
    chats.push_back(random_chat(generator, vocabulary, i % 3 == 2 ? 2 : 1));
  return chats;
}

/// The source's rows [first, first + rows) in order, as a micro-batch of a step of all its rows;
/// rows beyond the last are empty.
inline data::Batch batch_of(const data::ChatSource& source, std::size_t first, std::size_t rows) {
  data::Batch batch;
  batch.sequences = rows;
  batch.tokens_per_sequence = source.positions();
  source.start(batch);
  for (std::size_t row = 0; row < source.rows(); ++row) {
    batch.step += source.counts(row);
    if (row < first || row >= first + rows) continue;
    source.append(row, row - first, batch);
    batch.own += source.counts(row);
  }
  for (std::size_t row = 0; row < rows; ++row) batch.samples.push_back(first + row);
  return batch;
}

}  // namespace tern::test
