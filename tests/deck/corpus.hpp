/// Decks that tests start from, and random changes of them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "deck/deck.hpp"

namespace tern::test {

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// input/*.in in the order of their names. Throws if there are none.
inline std::vector<std::filesystem::path> input_decks() {
  std::vector<std::filesystem::path> decks;
  for (const auto& entry : std::filesystem::directory_iterator(TERN_SOURCE_DIR "/input"))
    if (entry.path().extension() == ".in") decks.push_back(entry.path());
  if (decks.empty()) throw std::runtime_error("no decks in " TERN_SOURCE_DIR "/input");
  std::sort(decks.begin(), decks.end());
  return decks;
}

/// One of every construct that the reader knows.
inline const char* const every_construct = R"(! comment with 'quotes" and & and /
&CAMPAIGN name='it''s "one"', Task = "train" seed=+7, max_steps=0100 max_hours = 1.5d0 / ! after
&model
  layers = 2, hidden = 64 heads=4 ! it's
  kv_heads = 2, qk_norm = T attention_bias = F ffn_bias=.t. tie_embeddings = .FALSE.
  norm_eps = 1.D-6 dropout = .5 rope_base=1e6 init_std=2.E-2
/
&objective z_loss = 1E-4/&data train = 'a.bin' 'b/*.bin', "c!d.bin"
  valid = 2*'v.bin',
  tokenizer = 'bytes' /
&optimizer
  betas
  = 0.9 ,
    0.999
  betas(2) = 0.98
  lr=1d-3 min_lr=0,eps = +1e-9 /
&generation prompt = 'two
lines, ä' top_k=5 /
&output
/
)";

inline std::vector<std::string> seeds() {
  std::vector<std::string> texts = {every_construct, deck::print(deck::Deck{}, true),
                                    "&optimizer betas=2*0.5 /\n&batch per_rank=2,global=8/\n"};
  for (const auto& path : input_decks()) texts.push_back(file_text(path));
  return texts;
}

/// Changes a text at random: bytes, tokens, lines, splices with another. Uses std::mt19937_64 and
/// our own bounded draws, so that a seed means the same changes everywhere.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }

  std::string mutate(std::string text, const std::vector<std::string>& others) {
    const std::size_t changes = 1 + below(4);
    for (std::size_t i = 0; i < changes; ++i) {
      switch (below(4)) {
        case 0:
          bytes(text);
          break;
        case 1:
          tokens(text);
          break;
        case 2:
          lines(text);
          break;
        default:
          splice(text, others[below(others.size())]);
      }
    }
    return text;
  }

 private:
  void bytes(std::string& text) {
    static constexpr char telling[] = "&/=!'\"(),*.+-%_ \t\n\r0123456789eEdDtTfF\0\x7f\xc3\xa4\xff";
    const std::size_t at = below(text.size() + 1);
    const char c =
        below(4) == 0 ? static_cast<char>(below(256)) : telling[below(sizeof telling - 1)];
    switch (below(3)) {
      case 0:
        text.insert(at, 1, c);
        break;
      case 1:
        text.erase(at, 1 + below(3));
        break;
      default:
        if (at < text.size()) text[at] = c;
    }
  }

  /// The run of word characters around a random place.
  static std::pair<std::size_t, std::size_t> word_at(const std::string& text, std::size_t at) {
    static constexpr const char* blanks = " \t\n\r=,/";
    const std::size_t before = at == 0 ? std::string::npos : text.find_last_of(blanks, at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    return {begin, end - begin};
  }

  void tokens(std::string& text) {
    static constexpr const char* words[] = {"0",
                                            "1",
                                            "-1",
                                            "3*0.5",
                                            "2*",
                                            "999999999*1",
                                            "1d-3",
                                            "1e999",
                                            "1e-999",
                                            ".true.",
                                            "T",
                                            "f",
                                            "'x'",
                                            "''",
                                            "\"it's\"",
                                            "'a''b'",
                                            "'open",
                                            "&model",
                                            "&end",
                                            "/",
                                            "lr",
                                            "betas(2)",
                                            "betas(0)",
                                            "betas(9)",
                                            "= =",
                                            ",,",
                                            "nan",
                                            "inf",
                                            "1_000",
                                            "0x10",
                                            "12345678901234567890",
                                            "2**3",
                                            "a%b",
                                            "!",
                                            ";",
                                            "0.5,0.25",
                                            "'causal'",
                                            "'fp8'",
                                            "heads",
                                            "hidden = 32",
                                            "7",
                                            "64",
                                            "128",
                                            ".5",
                                            "5."};
    const auto [begin, length] = word_at(text, below(text.size() + 1));
    if (below(2) == 0) {
      text.replace(begin, length, words[below(std::size(words))]);
    } else {
      const auto [from, count] = word_at(text, below(text.size() + 1));
      text.replace(begin, length, text.substr(from, count));
    }
  }

  static std::size_t line_start(const std::string& text, std::size_t at) {
    const std::size_t end = at == 0 ? std::string::npos : text.find_last_of('\n', at - 1);
    return end == std::string::npos ? 0 : end + 1;
  }

  void lines(std::string& text) {
    const std::size_t begin = line_start(text, below(text.size() + 1));
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
    if (text.empty()) return;
    const std::string line = text.substr(begin, end - begin + 1);
    switch (below(3)) {
      case 0:
        text.erase(begin, line.size());
        break;
      case 1:
        text.insert(line_start(text, below(text.size() + 1)), line);
        break;
      default:  // joins with the next line
        if (end < text.size()) text[end] = ' ';
    }
  }

  void splice(std::string& text, const std::string& other) {
    const std::size_t from = below(other.size() + 1);
    const std::size_t count = below(2) == 0 ? below(80) : below(other.size() + 1);
    const std::string piece = other.substr(from, count);
    if (text.size() > 40000) text.resize(20000);  // keeps repeated splices from growing
    const std::size_t at = below(text.size() + 1);
    const std::size_t replaced = below(2) == 0 ? 0 : below(200);
    text.replace(at, replaced, piece);
  }

  std::mt19937_64 random_;
};

}  // namespace tern::test
