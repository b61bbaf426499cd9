/// Files that sets of problems have in common: conversations, requests, and a BPE with numbers.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/samples.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare::detail {

/// Writes `file`, a conversation per sample; the answer is `answer_of` it.
void write_chats(const std::filesystem::path& file, const std::vector<data::Sample>& samples,
                 const std::function<std::string(const data::Sample&)>& answer_of);

/// Writes `file`, a request per sample: its question, labeled with its answer. Ids count from 0.
void write_requests(const std::filesystem::path& file, const std::vector<data::Sample>& samples);

struct NumberBpe {
  std::size_t vocabulary = 0;
  int largest_number = 0;
  std::size_t weight = 1;  // how often each number is counted, in addition to the texts
  std::size_t threads = 1;
};

/// Trains a BPE on texts and writes `folder`/tokenizer.json. GPT-4's pattern makes each number of
/// up to three digits a separate piece; with enough weight, rare numbers become tokens as well.
void train_bpe(const NumberBpe& options, std::vector<std::string_view> texts,
               const std::filesystem::path& folder);

/// The first number from 0 to `largest` that is not one token; -1: all are.
int first_split_number(const text::Tokenizer& tokenizer, int largest);

}  // namespace tern::prepare::detail
