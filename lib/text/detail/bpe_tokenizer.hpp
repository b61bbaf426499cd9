/// Byte-level BPE with any vocabulary, merges and pre-tokenizer.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/detail/merges.hpp"
#include "text/detail/pretokenizer.hpp"
#include "text/tokenizer.hpp"

namespace tern::text::detail {

/// A token outside the merges, matched in the raw text before anything else. Special tokens are
/// matched only by encode_marked(); otherwise they are plain text.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool special = true;
  std::string option = {};  // matching option in tokenizer.json; empty: none
};

/// Finds added tokens in a text, longest match first. Keeps pointers to them.
class AddedTokenSearch {
 public:
  void add(const AddedToken& token);
  /// Position of the first token in `text`, and the token; text.size() and null if there is none.
  std::pair<std::size_t, const AddedToken*> first(std::string_view text) const;

 private:
  std::vector<const AddedToken*> tokens_;  // longest first
  std::array<bool, 256> starts_ = {};      // whether a token starts with this byte
};

/// Everything that defines a byte-level BPE tokenizer.
struct BpeDescription {
  std::string source;               // for messages
  std::vector<std::string> tokens;  // bytes by id; empty where no token has the id
  std::vector<Merge> merges;        // by rank
  std::vector<AddedToken> added;
  std::unique_ptr<Pretokenizer> pretokenizer;
  bool nfc = false;               // normalize text to form C first
  bool add_prefix_space = false;  // prepend a space to text without one
  bool ignore_merges = false;     // pieces that are tokens are not merged from bytes
  std::int32_t end_of_text = -1;
  Affixes affixes;
};

/// Invalid UTF-8: each maximal run of invalid bytes is a separate piece, and the text on either
/// side is split independently, so every byte is kept.
class BpeTokenizer final : public Tokenizer {
 public:
  /// Throws UserError if a byte has no token.
  explicit BpeTokenizer(BpeDescription description);

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override;
  void encode_marked(std::string_view text, std::vector<std::int32_t>& tokens) const override;
  std::string decode(const std::vector<std::int32_t>& tokens) const override;
  std::size_t vocabulary() const override { return what_.tokens.size(); }
  std::int32_t end_of_text() const override { return what_.end_of_text; }
  const Affixes& affixes() const override { return what_.affixes; }
  std::int32_t id(std::string_view token) const override;

 private:
  struct Encoder;
  void encode(std::string_view text, const AddedTokenSearch& search,
              std::vector<std::int32_t>& tokens) const;

  const BpeDescription what_;
  const Merges merges_;
  std::vector<std::int32_t> byte_ids_;
  std::unordered_map<std::string, std::int32_t> ids_;
  AddedTokenSearch plain_, all_;  // without and with special tokens
  const std::uint64_t serial_;    // owner id for the threads' caches
};

}  // namespace tern::text::detail
