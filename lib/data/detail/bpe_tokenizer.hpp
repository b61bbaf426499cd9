/// Byte-level BPE over any vocabulary, merges and pre-tokenizer.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/detail/merges.hpp"
#include "data/detail/pretokenizer.hpp"
#include "data/tokenizer.hpp"

namespace tern::data::detail {

/// A token beside the merges, found in the text as it stands, before anything else. Special ones
/// are not looked for: in a text they are plain text.
struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool special = true;
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
};

/// Text that is not valid UTF-8: each longest run of bytes outside valid sequences is a piece of
/// its own, and the text on either side of it is cut as if it stood alone. So every byte is kept.
class BpeTokenizer final : public Tokenizer {
 public:
  /// Throws UserError if a byte has no token.
  explicit BpeTokenizer(BpeDescription description);

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override;
  std::string decode(const std::vector<std::int32_t>& tokens) const override;
  std::size_t vocabulary() const override { return what_.tokens.size(); }
  std::int32_t end_of_text() const override { return what_.end_of_text; }
  std::int32_t id(std::string_view token) const override;

 private:
  struct Encoder;
  std::size_t added_token_at(std::string_view text, const AddedToken** found) const;

  const BpeDescription what_;
  const Merges merges_;
  std::vector<std::int32_t> byte_ids_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<const AddedToken*> matched_;   // not special, longest first
  std::array<bool, 256> starts_added_ = {};  // whether one of them starts with the byte
  const std::uint64_t serial_;               // tells the threads' caches whose words they hold
};

}  // namespace tern::data::detail
