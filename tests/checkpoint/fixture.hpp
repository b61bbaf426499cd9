/// Checkpoints whose every value is a function of step, tensor and place.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/shape.hpp"
#include "checkpoint/checkpoint.hpp"
#include "scratch.hpp"

namespace tern::checkpoint::testing {

namespace fs = std::filesystem;
using test::names_in;
using test::read_file;
using test::Scratch;
using test::write_file;

/// Odd sizes, a matrix of several chunks, a vector, a scalar.
inline std::vector<Tensor> sample_tensors() {
  return {{"/model/embed_tokens/weight", {1031, 768}},
          {"/model/layers/0/self_attn/q_proj/weight", {48, 96}},
          {"/model/norm/weight", {97}},
          {"/optimizer/m/model/layers/0/self_attn/q_proj/weight", {48, 96}},
          {"/optimizer/count", {}}};
}

/// Few and small, for tests that write many.
inline std::vector<Tensor> small_tensors() {
  return {{"/model/layers/0/mlp/up_proj/weight", {40, 65}},
          {"/model/norm/weight", {33}},
          {"/optimizer/m/model/norm/weight", {33}}};
}

inline float value_at(std::int64_t step, std::size_t tensor, std::size_t place) {
  const auto word = philox(7, Stream::test, static_cast<std::uint64_t>(step),
                           static_cast<std::uint32_t>(tensor), static_cast<std::uint32_t>(place));
  return uniform(word.word[0]) - 0.5f;
}

inline std::vector<std::vector<float>> values_of(const std::vector<Tensor>& tensors,
                                                 std::int64_t step) {
  std::vector<std::vector<float>> values;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    values.emplace_back(element_count(tensors[t].shape));
    for (std::size_t i = 0; i < values[t].size(); ++i) values[t][i] = value_at(step, t, i);
  }
  return values;
}

/// The part of each tensor that `rank` of `ranks` holds: cuts fall inside rows.
/// A piece and its values, in host memory.
struct HeldPiece : Piece {
  const float* data;
};

inline std::vector<HeldPiece> pieces_of(const std::vector<std::vector<float>>& values, int rank = 0,
                                        int ranks = 1) {
  std::vector<HeldPiece> pieces;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const auto cut = [&](int r) { return values[t].size() * r / ranks; };
    const std::size_t first = cut(rank), count = cut(rank + 1) - first;
    if (count > 0) pieces.push_back({{t, first, count}, values[t].data() + first});
  }
  return pieces;
}

/// The same where matrices are divided by columns, as tensor ranks hold some. Of each matrix rank 0
/// holds the last third in two pieces a row, as where data ranks cut it there.
inline std::vector<HeldPiece> columns_of(const std::vector<Tensor>& tensors,
                                         const std::vector<std::vector<float>>& values, int rank,
                                         int ranks) {
  std::vector<HeldPiece> pieces;
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (tensors[t].shape.size() != 2) continue;
    const std::size_t rows = tensors[t].shape[0], width = tensors[t].shape[1];
    const auto cut = [&](int r) { return width * r / ranks; };
    const std::size_t first = cut(rank), count = cut(rank + 1) - first;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t at = row * width + first, half = count / 2;
      const float* data = values[t].data() + at;
      if (rank > 0 || row < 2 * rows / 3) {
        pieces.push_back({{t, at, count}, data});
      } else {
        pieces.push_back({{t, at, half}, data});
        pieces.push_back({{t, at + half, count - half}, data + half});
      }
    }
  }
  for (const HeldPiece& piece : pieces_of(values, rank, ranks))
    if (tensors[piece.tensor].shape.size() != 2) pieces.push_back(piece);
  return pieces;
}

inline Header header_of(std::int64_t step) {
  return {step,
          step * 1000,
          "&campaign name = 'test' /\n",
          {{"best_loss", 3.25 + step}},
          {{"note", "größer"}}};
}

inline void save(Store& store, const Header& header, const std::vector<Tensor>& tensors,
                 const std::vector<HeldPiece>& pieces) {
  store.save(header, tensors, {pieces.begin(), pieces.end()}, [&](const std::vector<float*>& to) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      std::copy_n(pieces[i].data, pieces[i].count, to[i]);
  });
}

inline void save(Store& store, const std::vector<Tensor>& tensors, std::int64_t step) {
  const auto values = values_of(tensors, step);
  save(store, header_of(step), tensors, pieces_of(values));
}

/// Whether every value is the one of the reader's own step, bit for bit.
inline ::testing::AssertionResult consistent(const Reader& reader,
                                             const std::vector<Tensor>& tensors) {
  const std::int64_t step = reader.header().step;
  const auto expected = values_of(tensors, step);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::vector<float> read(expected[t].size());
    reader.read(tensors[t].path, 0, read.size(), read.data());
    if (read != expected[t])
      return ::testing::AssertionFailure() << tensors[t].path << " of step " << step << " differs";
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tern::checkpoint::testing
