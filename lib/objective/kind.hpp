/// Kinds of objectives: what the rest of Tern asks of an objective before it is made. Each kind is
/// one row, defined next to its class; what the deck's checks ask is in deck/objective_kind.hpp.
#pragma once
#include <tuple>

#include "data/data_set.hpp"
#include "objective/objective.hpp"

namespace tern::objective {

/// Mean contents of a row of the data: which of its positions hold tokens of the data.
struct RowContents {
  double samples = 1;  // packed in the row, without attention across them
  double prefix = 0;   // tokens given clean, not doubled
  double learned = 0;  // tokens with a loss, masked or not
  double others = 0;   // tokens of the data that are neither of these
  bool assumed = true;

  /// Tokens as train/throughput counts them.
  double tokens() const { return prefix + learned + others; }
};

template <class T>
using Maker = std::unique_ptr<Objective<T>> (*)(const deck::Deck&, const Shape&, Arena&);
using Makers = std::tuple<Maker<float>, Maker<bf16>, Maker<fp16>, Maker<double>>;

template <class O, class T>
std::unique_ptr<Objective<T>> make(const deck::Deck& deck, const Shape& shape, Arena& arena) {
  return std::make_unique<O>(deck, shape, arena);
}
/// Those of class O.
template <template <class> class O>
inline constexpr Makers makers = {make<O<float>, float>, make<O<bf16>, bf16>, make<O<fp16>, fp16>,
                                  make<O<double>, double>};

// Rows of next-token prediction.
std::size_t context_positions(const deck::Deck&);
double learned_positions(const deck::Deck&, const RowContents&);
/// Causal attention within samples, or within &model window.
double causal_keys(const deck::Deck&, const RowContents&);
/// Windows of &model context tokens of token shards.
data::DataSet open_windows(const deck::Deck&, const std::vector<std::string>& files,
                           const text::Tokenizer*);

struct Kind {
  const char* name;
  Makers make;
  /// Opens &data train or valid. The tokenizer is null for token shards. Throws UserError for
  /// missing or too short data.
  data::DataSet (*open)(const deck::Deck&, const std::vector<std::string>& files,
                        const text::Tokenizer*) = open_windows;
  /// Positions per row (T) and the maximum of scored ones.
  std::size_t (*positions)(const deck::Deck&) = context_positions;
  std::size_t (*scored)(const deck::Deck&) = context_positions;
  /// Means of a row: positions that enter the head, and keys that a position attends to.
  double (*mean_scored)(const deck::Deck&, const RowContents&) = learned_positions;
  double (*mean_keys)(const deck::Deck&, const RowContents&) = causal_keys;
  /// Whether the attention of its rows may be masked by key spans, also without &model window.
  bool spans = false;
};

/// The row of &objective kind.
const Kind& kind(const deck::Deck& deck);

/// Positions per row (T) and maximum scored positions per row, for &objective kind.
std::size_t row_positions(const deck::Deck&);
std::size_t scored_positions(const deck::Deck&);

/// Opens &data train or valid (`files`) for the deck's objective. `tokenizer` is needed for samples
/// only. Throws UserError for missing or too short data.
data::DataSet open_data(const deck::Deck&, const std::vector<std::string>& files,
                        const text::Tokenizer* tokenizer);

}  // namespace tern::objective
