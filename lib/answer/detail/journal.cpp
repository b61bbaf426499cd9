#include "answer/detail/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hashes.hpp"
#include "base/lines.hpp"
#include "deck/choices.hpp"

namespace tern::answer::detail {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json to_json(const AnswerRecord& r) {
  ordered_json object = {{"n", r.number}, {"text", r.text}};
  if (!r.good()) object.update({{"reject", r.reject}, {"reason", r.reason}});
  if (r.cut) object["cut"] = true;
  object.update({{"prompt", r.prompt_tokens},
                 {"new", r.new_tokens},
                 {"seconds", r.seconds},
                 {"computed", r.computed_tokens},
                 {"reused", r.reused_tokens}});
  return object;
}

AnswerRecord from_json(const ordered_json& object) {
  AnswerRecord r;
  r.number = object.at("n");
  r.text = object.at("text");
  r.reject = object.value("reject", "");
  r.reason = object.value("reason", "");
  r.cut = object.value("cut", false);
  r.prompt_tokens = object.at("prompt");
  r.new_tokens = object.at("new");
  r.seconds = object.at("seconds");
  r.computed_tokens = object.at("computed");
  r.reused_tokens = object.at("reused");
  return r;
}

/// Reason why a line is not as it was written.
struct Damage {
  std::string why;
};

/// Reader of one replica's part: sessions in sequence.
struct JournalReader {
  Journal& parts;
  std::map<std::size_t, AnswerRecord>& found;
  std::map<std::int64_t, double>& seconds;  // per session: of the slowest replica
  const Provenance& now;
  std::size_t requests;
  std::int64_t session = 0;
  AnswerRecord last = {};  // record of the session

  void end_session() {
    seconds[session] = std::max(seconds[session], last.seconds);
    parts.computed_tokens += last.computed_tokens;
    parts.reused_tokens += last.reused_tokens;
    last = {};
  }

  void take_head(const ordered_json& object, const std::string& place) {
    const std::int64_t number = object.at("session");
    if (number < 1 || !object.at("made_from").is_object()) throw Damage{"no session"};
    require_same(object.at("made_from"), now, place);
    end_session();
    session = number;
    parts.sessions = std::max(parts.sessions, session);
  }

  void take_record(const ordered_json& object) {
    const AnswerRecord record = from_json(object);
    if (record.number >= requests)
      throw Damage{fmt::format("request {} of {}", record.number, requests)};
    if (session == 0) throw Damage{"the line that states what it was made from cannot be read"};
    last = record;
    found.emplace(record.number, record);
  }

  /// Throws Damage, or UserError for a part of other origin.
  void take(std::string_view line, const std::string& place) {
    if (!intact(line)) throw Damage{"its checksum does not match"};
    const auto object = try_ordered_json(line);
    if (!object.is_object()) throw Damage{"not a JSON object"};
    try {
      if (object.contains("made_from"))
        take_head(object, place);
      else
        take_record(object);
    } catch (const nlohmann::json::exception& e) {  // missing member or wrong type
      throw Damage{e.what()};
    }
  }
};

constexpr std::string_view crc_key = ",\"crc\":\"";
constexpr std::size_t crc_bytes = crc_key.size() + 8 + 2;  // key, digits, "}

std::string crc_of(std::string_view text) { return fmt::format("{:08x}", crc32c(text)); }

}  // namespace

std::string line_of(const ordered_json& object) {
  return json_text(object, -1, InvalidUtf8::replaced) + '\n';
}

std::string checked_line(ordered_json object) {
  std::string line = line_of(object);
  line.resize(line.size() - 2);  // }\n
  const std::string crc = crc_of(line);
  return line.append(crc_key).append(crc).append("\"}\n");
}

bool intact(std::string_view line) {
  if (line.size() < crc_bytes) return false;
  const std::string_view end = line.substr(line.size() - crc_bytes);
  return end.starts_with(crc_key) && end.ends_with("\"}") &&
         end.substr(crc_key.size(), 8) == crc_of(line.substr(0, line.size() - crc_bytes));
}

AnswerFiles::AnswerFiles(const deck::Deck& deck)
    : directory(deck.output.directory),
      answers(deck.generation.output.empty() ? directory / "answers.jsonl"
                                             : fs::path(deck.generation.output)) {}

fs::path AnswerFiles::rejects() const {
  return answers.parent_path() / (answers.stem().string() + "_rejects.jsonl");
}

fs::path AnswerFiles::part(int replica) const {
  return parts() / fmt::format("replica_{:04d}.jsonl", replica);
}

std::string hash_of(const fs::path& path) {
  const File file(path, O_RDONLY);
  Fnv hash;
  std::vector<char> block(1 << 20);
  std::size_t done = 0;
  for (std::size_t n; (n = file.read(block.data(), block.size(), done)) > 0; done += n)
    hash.add({block.data(), n});
  return fmt::format("{:016x}", hash.value());
}

Provenance provenance(const deck::Deck& deck, const std::string& weights) {
  const deck::Generation& g = deck.generation;
  std::string model = weights;
  if (deck::quantization_of(g) != deck::Quantization::none) model += " in " + g.quantization;
  if (deck::stores_cache_in_fp8(g)) model += ", keys and values in " + g.cache_quantization;
  return {{"the contents of &generation input", hash_of(g.input)},
          {"the contents of &generation prompt_template",
           g.prompt_template.empty() ? "" : hash_of(g.prompt_template)},
          {"the weights", model},
          {"&objective kind", deck.objective.kind},
          {"&data tokenizer", deck.data.tokenizer},
          {"&data chat_template", deck.data.chat_template},
          {"&data thinking", deck.data.thinking},
          {"&precision compute", deck.precision.compute},
          {"&generation pattern", g.pattern},
          {"&generation stop", g.stop},
          {"&generation max_tokens", g.max_tokens},
          {"&generation max_model_len", g.max_model_len},
          {"&generation temperature", g.temperature},
          {"&generation top_k", g.top_k},
          {"&generation top_p", g.top_p},
          {"&campaign seed", deck.campaign.seed}};
}

void require_same(const Provenance& before, const Provenance& now, const std::string& place) {
  for (const auto& [name, value] : now.items())
    if (!before.contains(name) || before.at(name) != value)
      user_error(
          "{}: these answers were made from something else: {} was {} and is {} now; restore it to "
          "resume, start from scratch with --fresh, or set another &output directory",
          place, name, before.contains(name) ? json_text(before.at(name)) : "not given",
          json_text(value));
}

namespace {

/// A part that cannot be read is not an empty one, whose requests are answered again.
std::string text_of(const fs::path& path) {
  return read_text(path,
                   "it contains answers of this run; make it readable and pass --resume, or start "
                   "from scratch with --fresh");
}

}  // namespace

Journal read_journal(const AnswerFiles& files, const Provenance& now, std::size_t requests) {
  Journal parts;
  std::map<std::size_t, AnswerRecord> found;
  std::map<std::int64_t, double> seconds;
  std::vector<fs::path> paths;
  if (fs::exists(files.parts()))
    for (const auto& entry : fs::directory_iterator(files.parts())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    JournalReader reader{parts, found, seconds, now, requests};
    const std::string text = text_of(path);
    for (const Line& line : Lines(text)) {
      if (!line.ended) {
        ++parts.cut;
        break;
      }
      const std::string place = fmt::format("{}:{}", path.string(), line.number);
      try {
        reader.take(line.text, place);
      } catch (const Damage& damage) {
        parts.damaged.push_back(fmt::format("{}: {}", place, damage.why));
      }
    }
    reader.end_session();
  }
  for (auto& [number, record] : found) parts.records.push_back(std::move(record));
  for (const auto& [session, time] : seconds) parts.seconds += time;
  return parts;
}

namespace {

void drop_cut_line(const fs::path& path) {
  if (!fs::exists(path)) return;
  const std::string text = text_of(path);
  const std::size_t whole = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  if (whole != text.size() &&
      ::ftruncate(File(path, O_WRONLY).descriptor(), static_cast<off_t>(whole)) != 0)
    user_error("{}", FileError("shorten", path, errno).what());
}

}  // namespace

JournalWriter::JournalWriter(const fs::path& path, const Provenance& provenance,
                             std::int64_t session)
    : path_((drop_cut_line(path), path)), file_(path) {
  if (!file_.append(checked_line({{"session", session}, {"made_from", provenance}})))
    user_error("{}: cannot be written; check free space and permissions", path_.string());
}

void JournalWriter::append(const AnswerRecord& record) {
  if (!file_.append(checked_line(to_json(record))))
    user_error(
        "{}: cannot be written; is the disk full? Its contents are kept; free some space, then "
        "pass --resume",
        path_.string());
}

}  // namespace tern::answer::detail
