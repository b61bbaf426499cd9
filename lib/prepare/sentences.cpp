#include "prepare/sentences.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <unordered_map>

#include "base/draw.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "prepare/detail/output_folder.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;

struct Record {
  nlohmann::ordered_json fields;
  std::size_t line;
};

std::string text_of(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}
std::string label_of(const Record& record) {
  return record.fields.contains("label") ? text_of(record.fields["label"]) : "";
}

/// Without blanks, ASCII punctuation and capitals.
std::string bare(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !std::isalnum(byte)) continue;
    kept += byte < 0x80 ? static_cast<char>(std::tolower(byte)) : c;
  }
  return kept.empty() ? text : kept;
}

/// The records of a file, each text once.
std::vector<Record> read(const fs::path& file, std::size_t& repeated) {
  LineReader lines(file, "pass a file of sentences with --input");
  std::vector<Record> records;
  std::unordered_map<std::string, std::size_t> known;  // index in records
  for (const Line& line : lines) {
    if (line.blank()) continue;
    nlohmann::ordered_json fields = {{"text", line.text}};
    try {
      if (line.text.front() == '{') fields = parse_ordered_json(line.text);
    } catch (const nlohmann::json::exception& error) {
      user_error("{}: the line is not JSON: {}", lines.place(line), reason(error));
    }
    if (!fields.is_object() || !fields.contains("text") || !fields["text"].is_string())
      user_error("{}: neither a text nor an object with \"text\"", lines.place(line));
    Record record{std::move(fields), line.number};
    const auto [at, fresh] = known.emplace(bare(record.fields["text"]), records.size());
    if (!fresh) {
      const Record& first = records[at->second];
      if (label_of(first) != label_of(record))
        user_error("{}: the text of line {} under another label, '{}' instead of '{}'",
                   lines.place(line), first.line, label_of(record), label_of(first));
      ++repeated;
      continue;
    }
    if (!record.fields.contains("id")) record.fields["id"] = line.number;
    records.push_back(std::move(record));
  }
  return records;
}

/// Whether each record is for the test: of each label, groups in an order drawn by `seed`, until
/// the fraction is reached. A group belongs to the label of its first record.
std::vector<bool> tested(const std::vector<Record>& records, double fraction, std::uint64_t seed) {
  std::map<std::string, std::vector<std::vector<std::size_t>>> groups;  // by label
  std::map<std::string, std::pair<std::string, std::size_t>> place;     // of a named group
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto& mine = groups[label_of(records[i])];
    const auto& fields = records[i].fields;
    if (!fields.contains("group")) {
      mine.push_back({i});
      continue;
    }
    const auto [at, fresh] =
        place.emplace(text_of(fields["group"]), std::pair(label_of(records[i]), mine.size()));
    if (fresh) mine.emplace_back();
    groups[at->second.first][at->second.second].push_back(i);
  }
  std::vector<bool> test(records.size());
  std::uint32_t number = 0;
  for (auto& [label, mine] : groups) {
    Draw draw(seed, 0, number++);
    shuffle(mine, draw);
    std::size_t all = 0, taken = 0;
    for (const auto& group : mine) all += group.size();
    const auto wanted = static_cast<std::size_t>(std::lround(fraction * static_cast<double>(all)));
    for (std::size_t g = 0; g < mine.size() && taken < wanted; ++g) {
      for (const std::size_t i : mine[g]) test[i] = true;
      taken += mine[g].size();
    }
  }
  return test;
}

void write(const fs::path& file, const std::vector<Record>& records, const std::vector<bool>& test,
           bool which) {
  write_file(file, [&](std::ostream& out) {
    for (std::size_t i = 0; i < records.size(); ++i)
      if (test[i] == which) out << json_text(records[i].fields, -1, InvalidUtf8::replaced) << '\n';
  });
}

nlohmann::ordered_json meta_of(const SentencesOptions& options, const SentencesSummary& summary) {
  return {{"input", options.input.string()},
          {"sentences", summary.sentences},
          {"test", summary.test},
          {"repeated", summary.repeated},
          {"labels", summary.labels},
          {"test_fraction", options.test_fraction},
          {"seed", options.seed}};
}

}  // namespace

SentencesSummary prepare_sentences(const SentencesOptions& options, Log& log) {
  if (options.output.empty()) user_error("no output folder is named; give --output data/NAME");
  if (!(options.test_fraction > 0 && options.test_fraction < 1))
    user_error("--test-fraction {}: out of range; pass a number between 0 and 1",
               options.test_fraction);
  SentencesSummary summary;
  const std::vector<Record> records = read(options.input, summary.repeated);
  const std::vector<bool> test = tested(records, options.test_fraction, options.seed);
  summary.test = static_cast<std::size_t>(std::count(test.begin(), test.end(), true));
  summary.sentences = records.size() - summary.test;
  if (summary.test == 0 || summary.sentences == 0)
    user_error("{}: {} different texts leave one side empty at --test-fraction {}; give more",
               options.input.string(), records.size(), options.test_fraction);
  std::set<std::string> labels;
  for (const Record& record : records)
    if (record.fields.contains("label")) labels.insert(label_of(record));
  summary.labels = labels.size();
  detail::OutputFolder folder(options.output, options.force, {options.input});
  write(folder.path() / "sentences.jsonl", records, test, false);
  write(folder.path() / "test.jsonl", records, test, true);
  folder.publish(meta_of(options, summary));
  log.line(
      "{} is ready: {} sentences, {} others for the test, {} labels; {} repeated ones left out",
      options.output.string(), summary.sentences, summary.test, summary.labels, summary.repeated);
  return summary;
}

}  // namespace tern::prepare
