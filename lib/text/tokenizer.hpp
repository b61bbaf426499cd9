/// Tokenizers: byte-level BPE and raw bytes. Immutable and thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text {

/// Tokens before and after a whole text, as the model was trained with.
struct Affixes {
  std::vector<std::int32_t> before, after;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Appends the tokens of a text. Names of special tokens in the text are plain text.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  /// The same, but names of special tokens become these tokens: for text from a template, never
  /// from a user. Throws UserError if one has an unsupported option (single_word, lstrip, rstrip).
  virtual void encode_marked(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  /// Bytes of tokens. Throws UserError for ids out of range.
  virtual std::string decode(const std::vector<std::int32_t>& tokens) const = 0;
  virtual std::size_t vocabulary() const = 0;
  /// Id of the token that separates documents; -1 if there is none.
  virtual std::int32_t end_of_text() const = 0;
  /// Tokens that the post-processor of a tokenizer.json adds, e.g. Llama 3's beginning of text.
  /// encode() does not add them.
  virtual const Affixes& affixes() const = 0;
  /// Id of a token's exact bytes or a special token's name; -1 if absent.
  virtual std::int32_t id(std::string_view token) const = 0;
};

/// `where`: 'bytes' (256 bytes + end of text), a tokenizer.json, a folder with one, or a folder
/// with encoder.json (or vocab.json) and vocab.bpe (or merges.txt). Any other name, such as 'gpt2',
/// is searched for as `search`/name; without `search`, data/name. Throws UserError.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& where,
                                          const std::vector<std::filesystem::path>& search = {});

/// File or folder that `where` names; empty for 'bytes'. Throws UserError if there is none.
std::filesystem::path find_tokenizer(const std::string& where,
                                     const std::vector<std::filesystem::path>& search = {});

}  // namespace tern::text
