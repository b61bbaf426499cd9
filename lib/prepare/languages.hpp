/// Sentences of a dozen languages, to be answered by a code: prompt distillation without a
/// download, and small enough for a laptop.
///
/// A prompt holds a table that gives each language a code. A teacher learns conversations under
/// several tables, so that it must read which one it is under: codes cannot be known without the
/// prompt. It then answers sentences under one prompt, prompt.txt, by the name of the language and
/// its code; a student learns the codes without that. Sentences are made from phrases of our own,
/// the same on every machine.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace tern::prepare {

struct LanguagesOptions {
  std::filesystem::path output;
  std::size_t tables = 8;             // different ones
  std::size_t conversations = 4'000;  // that the teacher learns from
  std::size_t questions = 3;          // of each: the prompt stands before the first alone
  std::size_t sentences = 2'400;      // that the teacher answers for the student
  std::size_t test = 480;             // other sentences, to judge both
  std::size_t vocabulary = 1'024;     // of the BPE
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  bool force = false;  // replace an output folder that is there
};

struct LabelledSentence {
  std::string text;
  std::size_t language;  // number of it
};

/// Names of the languages, in the order of their numbers.
std::vector<std::string> language_names();

/// `counts[i]` sentences for each i, no two the same in all of them together; languages take turns.
std::vector<std::vector<LabelledSentence>> language_sentences(
    const std::vector<std::size_t>& counts, std::uint64_t seed);

/// A code for each language: different ones of two letters, of which there are 24.
using Codes = std::vector<std::string>;
Codes language_codes(std::uint64_t seed, std::uint32_t table);

/// The prompt with the table of these codes; {text} stands for the sentence. The order of the
/// table's lines is a function of seed and table too.
std::string language_prompt(const Codes& codes, std::uint64_t seed, std::uint32_t table);

/// Writes to `output`
///   teacher_train.jsonl, teacher_valid.jsonl   conversations under a prompt each, as chat messages
///   prompt.txt                                 the prompt of the campaign: table 0
///   sentences.jsonl, test.jsonl                {"text", "id", "label"}, labels by that prompt
///   tokenizer.json, meta.json                  a BPE with <|im_start|>, <|im_end|>, <|endoftext|>
/// in a folder beside it that is renamed when it is complete. Throws UserError.
void prepare_languages(const LanguagesOptions& options, Log& log);

}  // namespace tern::prepare
