#include "text/detail/bpe_tokenizer.hpp"

#include <algorithm>
#include <atomic>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/detail/nfc.hpp"
#include "text/detail/word_cache.hpp"

namespace tern::text::detail {
namespace {

std::atomic<std::uint64_t> next_serial{1};

}  // namespace

BpeTokenizer::BpeTokenizer(BpeDescription description)
    : what_(std::move(description)), merges_(what_.merges), serial_(next_serial++) {
  for (std::size_t i = 0; i < what_.tokens.size(); ++i)
    if (!what_.tokens[i].empty()) ids_.emplace(what_.tokens[i], static_cast<std::int32_t>(i));
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_.push_back(id(std::string(1, static_cast<char>(byte))));
    if (byte_ids_.back() < 0)
      user_error("{}: byte {:#04x} has no token; only byte-level vocabularies are supported",
                 what_.source, byte);
  }
  for (const AddedToken& token : what_.added) {
    all_.add(token);
    if (!token.special) plain_.add(token);
  }
}

void AddedTokenSearch::add(const AddedToken& token) {
  const auto shorter = [&](const AddedToken* other) {
    return other->content.size() < token.content.size();
  };
  tokens_.insert(std::find_if(tokens_.begin(), tokens_.end(), shorter), &token);
  starts_[static_cast<unsigned char>(token.content.front())] = true;
}

std::pair<std::size_t, const AddedToken*> AddedTokenSearch::first(std::string_view text) const {
  if (tokens_.empty()) return {text.size(), nullptr};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!starts_[static_cast<unsigned char>(text[at])]) continue;
    for (const AddedToken* token : tokens_)
      if (text.substr(at).starts_with(token->content)) return {at, token};
  }
  return {text.size(), nullptr};
}

std::int32_t BpeTokenizer::id(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? -1 : found->second;
}

/// One call of encode(), with this thread's cache.
struct BpeTokenizer::Encoder {
  const BpeTokenizer& tokenizer;
  std::vector<std::int32_t>& tokens;
  WordCache& cache;
  std::vector<std::string_view> pieces = {};
  std::vector<std::int32_t> symbols = {};

  void merge(std::string_view piece) {
    if (tokenizer.what_.ignore_merges) {
      if (const std::int32_t whole = tokenizer.id(piece); whole >= 0)
        return symbols.assign(1, whole);
    }
    symbols.resize(piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i)
      symbols[i] = tokenizer.byte_ids_[static_cast<unsigned char>(piece[i])];
    symbols.resize(tokenizer.merges_.apply(symbols.data(), symbols.size()));
  }

  void add(std::string_view piece) {
    if (cache.append(piece, tokens)) return;
    merge(piece);
    tokens.insert(tokens.end(), symbols.begin(), symbols.end());
    cache.store(piece, symbols);
  }

  void add_valid(std::string_view text) {
    pieces.clear();
    tokenizer.what_.pretokenizer->split(text, pieces);
    for (const std::string_view piece : pieces) add(piece);
  }

  /// Text without added tokens.
  void add_text(std::string_view text) {
    while (!text.empty()) {
      const std::size_t valid = valid_utf8_prefix(text);
      if (valid > 0) {
        const std::string_view part = text.substr(0, valid);
        if (tokenizer.what_.nfc && !is_surely_nfc(part))
          add_valid(to_nfc(part));
        else
          add_valid(part);
      }
      std::size_t end = valid;
      while (end < text.size() && utf8_length(text.substr(end)) == 0) ++end;
      if (end > valid) add(text.substr(valid, end - valid));
      text.remove_prefix(end);
    }
  }

  void add_segment(std::string_view text) {
    if (text.empty()) return;
    if (tokenizer.what_.add_prefix_space && text.front() != ' ')
      add_text(fmt::format(" {}", text));
    else
      add_text(text);
  }
};

void BpeTokenizer::encode(std::string_view text, const AddedTokenSearch& search,
                          std::vector<std::int32_t>& tokens) const {
  thread_local WordCache cache;
  cache.belong_to(serial_);
  Encoder encoder{*this, tokens, cache};
  while (!text.empty()) {
    const auto [at, token] = search.first(text);
    encoder.add_segment(text.substr(0, at));
    text.remove_prefix(at);
    if (token == nullptr) continue;
    if (!token->option.empty())
      user_error("{}: the added token '{}' has {} = true, which is not supported", what_.source,
                 token->content, token->option);
    tokens.push_back(token->id);
    text.remove_prefix(token->content.size());
  }
}

void BpeTokenizer::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
  encode(text, plain_, tokens);
}

void BpeTokenizer::encode_marked(std::string_view text, std::vector<std::int32_t>& tokens) const {
  encode(text, all_, tokens);
}

std::string BpeTokenizer::decode(const std::vector<std::int32_t>& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= what_.tokens.size() ||
        what_.tokens[token].empty())
      user_error("token {} is not in the vocabulary of {} ({} tokens)", token, what_.source,
                 what_.tokens.size());
    text += what_.tokens[token];
  }
  return text;
}

}  // namespace tern::text::detail
