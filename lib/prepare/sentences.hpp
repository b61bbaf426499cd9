/// Splits a file of texts, with labels or without, into those that a teacher answers for a student
/// and others to test both with.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace tern::prepare {

struct SentencesOptions {
  std::filesystem::path input;  // one text per line, or JSON lines with "text" and other fields
  std::filesystem::path output;
  double test_fraction = 0.2;  // of each label's texts
  std::uint64_t seed = 1;
  bool force = false;  // replace an existing output folder
};

struct SentencesSummary {
  std::size_t sentences = 0, test = 0, repeated = 0, labels = 0;
};

/// Writes `output`/sentences.jsonl, test.jsonl and meta.json: the records with all their fields,
/// such as "label", and an "id", the number of the line, where they have none. Nothing leaks into
/// the test: of texts that differ only in capitals, blanks and ASCII punctuation the first is kept,
/// and records of one "group", such as translations of a sentence, stay on one side. Each label has
/// its share in the test. Throws UserError, naming file and line, for a line without a text, and
/// for one text under two labels.
SentencesSummary prepare_sentences(const SentencesOptions& options, Log& log);

}  // namespace tern::prepare
