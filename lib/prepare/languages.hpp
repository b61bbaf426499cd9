/// Sentences of one or two dozen languages, answered with a code: prompt distillation without a
/// download, small enough for a laptop.
///
/// A prompt has a table with a code for each language. A teacher learns conversations with several
/// tables, which it can tell apart by their prompts; with a table of its own in each conversation,
/// it must read the codes from the prompt. It then answers sentences under one prompt, prompt.txt,
/// with the name of the language and its code; a student learns these answers without the prompt.
/// Sentences are composed of built-in phrases, identical on every machine.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace tern::prepare {

struct LanguagesOptions {
  std::filesystem::path output;
  std::size_t languages = 12;
  std::size_t least_languages = 0;    // in a teacher's table, drawn from this on; 0: always all
  std::size_t tables = 8;             // different ones; as many as conversations: one each
  std::size_t conversations = 4'000;  // training conversations of the teacher
  std::size_t questions = 3;          // per conversation: the prompt is only before the first
  std::size_t sentences = 2'400;      // answered by the teacher for the student
  std::size_t test = 480;             // other sentences, to evaluate both
  std::size_t vocabulary = 1'024;     // BPE
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  bool force = false;  // replace an existing output folder
};

struct LabeledSentence {
  std::string text;
  std::size_t language;  // index in language_names()
};

/// Names of the first languages, by index.
std::vector<std::string> language_names(std::size_t languages);

/// `counts[i]` sentences for each i, unique over all lists; languages alternate. The last list
/// repeats its own sentences, not others', if it needs more than half of those that are left.
std::vector<std::vector<LabeledSentence>> language_sentences(const std::vector<std::size_t>& counts,
                                                             std::uint64_t seed,
                                                             std::size_t languages);

/// One code per language: different codes of two letters, from 24 for 12 languages.
using Codes = std::vector<std::string>;
Codes language_codes(std::uint64_t seed, std::uint32_t table, std::size_t languages);

/// The prompt with the table of these codes; {text} is the place of the sentence. The order of the
/// table's lines is a function of seed and table as well.
std::string language_prompt(const Codes& codes, std::uint64_t seed, std::uint32_t table);

/// Writes to `output`
///   teacher_train.jsonl, teacher_valid.jsonl   chat conversations, each with a prompt
///   prompt.txt                                 prompt of the campaign: table 0
///   sentences.jsonl, test.jsonl                {"text", "id", "label"}, labels from that prompt
///   tokenizer.json, meta.json                  BPE with <|im_start|>, <|im_end|>, <|endoftext|>
/// The folder is renamed into place when complete. Throws UserError.
void prepare_languages(const LanguagesOptions& options, Log& log);

}  // namespace tern::prepare
