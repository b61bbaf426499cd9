/// Byte-level BPE and raw bytes. A tokenizer is immutable and may be used by many threads.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text {

/// Tokens that a text which stands alone has around it, as a model was trained to see it.
struct Affixes {
  std::vector<std::int32_t> before, after;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Tokens of a text, appended. Special tokens in the text are treated as plain text.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  /// The same, with the names of special tokens in the text read as these tokens: for text that a
  /// template wrote, never for a user's. Throws UserError if one asks for what is not supported
  /// (single_word, lstrip, rstrip).
  virtual void encode_marked(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  /// Bytes of tokens; ids out of range throw UserError.
  virtual std::string decode(const std::vector<std::int32_t>& tokens) const = 0;
  virtual std::size_t vocabulary() const = 0;
  /// Separates documents; -1 if the tokenizer has none.
  virtual std::int32_t end_of_text() const = 0;
  /// Of a tokenizer.json's post-processor: Llama 3's beginning of text, for instance. encode() adds
  /// none of them.
  virtual const Affixes& affixes() const = 0;
  /// Id of a token's exact bytes or a special token's name; -1 if absent.
  virtual std::int32_t id(std::string_view token) const = 0;
};

/// `where`: 'bytes' (256 bytes + end of text), a tokenizer.json, a folder that holds one, or a
/// folder that holds encoder.json (or vocab.json) and vocab.bpe (or merges.txt). Any other name,
/// 'gpt2' included, is looked up as a folder beside the data: `search`/name.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& where,
                                          const std::vector<std::filesystem::path>& search = {});

/// The file or folder that `where` names; empty for 'bytes'. Throws UserError if there is none.
std::filesystem::path find_tokenizer(const std::string& where,
                                     const std::vector<std::filesystem::path>& search = {});

}  // namespace tern::text
