/// Byte-level BPE over any vocabulary, merges and pre-tokenizer.
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

/// A token beside the merges, found in the text as it stands, before anything else. Special ones
/// are looked for where the caller asks for it: in a text they are plain text.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool special = true;
  std::string option = {};  // of tokenizer.json, which changes how it is found; empty: none
};

/// Finds added tokens in a text; of those that start at one place, the longest. Refers to them.
class AddedTokenSearch {
 public:
  void add(const AddedToken& token);
  /// Place of the first in `text`, and which it is; text.size() and null if there is none.
  std::pair<std::size_t, const AddedToken*> first(std::string_view text) const;

 private:
  std::vector<const AddedToken*> tokens_;  // longest first
  std::array<bool, 256> starts_ = {};      // whether one of them starts with the byte
};

/// Everything that defines a byte-level BPE tokenizer.
struct BpeDescription {
  std::string source;               // for messages
  std::vector<std::string> tokens;  // bytes by id; empty where no token has the id
  std::vector<Merge> merges;        // by rank
  std::vector<AddedToken> added;
  std::unique_ptr<Pretokenizer> pretokenizer;
  bool nfc = false;               // text is brought to normalization form C first
  bool add_prefix_space = false;  // a text that does not start with a space is given one
  bool ignore_merges = false;     // a piece that is a token as a whole is that token
  std::int32_t end_of_text = -1;
  Affixes affixes;
};

/// Text that is not valid UTF-8: each longest run of bytes outside valid sequences is a piece of
/// its own, and the text on either side of it is cut as if it stood alone. So every byte is kept.
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
  AddedTokenSearch plain_, all_;  // without and with the special tokens
  const std::uint64_t serial_;    // tells the threads' caches whose words they hold
};

}  // namespace tern::text::detail
