/// Variants of GSM8K's training problems (Cobbe et al., arXiv 2110.14168): other numbers of like
/// size, with every calculation redone. Its 7,473 problems are too few to train on alone.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "base/log.hpp"

namespace tern::prepare {

struct Gsm8kOptions {
  std::filesystem::path folder = "data/gsm8k";  // train.jsonl, test.jsonl
  std::filesystem::path output;
  std::size_t variants = 20;   // of a problem, at most
  std::size_t copies = 1;      // of a problem that gets no variants
  std::size_t vocabulary = 0;  // tokens of a BPE trained on them; 0: none
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  bool chats = false;  // also write conversations and requests
  bool force = false;  // replace an existing output folder
};

struct Gsm8kSummary {
  std::size_t problems = 0, traced = 0, variants = 0;
  std::size_t near_test = 0;                   // traced, but too much like a test problem
  std::map<std::string, std::size_t> reasons;  // of those not traced: names of problems::Untraced
};

/// Writes `output`/train.jsonl, all problems followed by variants of those whose every number is
/// traced and by copies of the others, and meta.json. Of problems whose question shares more than
/// half of its phrases with that of a test problem no variant is made. With `vocabulary` also
/// tokenizer.json, a BPE trained on the problems and variants; with `chats` also these without
/// calculator notes as conversations, train_chat.jsonl, the test problems so, test_chat.jsonl, and
/// test_requests.jsonl, the test questions labeled with their answers. The folder is renamed into
/// place when complete. Throws UserError.
Gsm8kSummary prepare_gsm8k(const Gsm8kOptions& options, Log& log);

}  // namespace tern::prepare
