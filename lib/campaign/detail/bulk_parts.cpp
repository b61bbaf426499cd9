#include "campaign/detail/bulk_parts.hpp"

#include <algorithm>
#include <fstream>
#include <map>

#include "base/error.hpp"

namespace tern::campaign::detail {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json to_json(const BulkRecord& r) {
  ordered_json object = {{"n", r.number}, {"text", r.text}};
  if (!r.good()) object.update({{"reject", r.reject}, {"reason", r.reason}});
  object.update({{"prompt", r.prompt_tokens},
                 {"new", r.new_tokens},
                 {"seconds", r.seconds},
                 {"computed", r.computed_tokens},
                 {"reused", r.reused_tokens}});
  return object;
}

BulkRecord from_json(const ordered_json& object) {
  BulkRecord r;
  r.number = object.at("n");
  r.text = object.at("text");
  r.reject = object.value("reject", "");
  r.reason = object.value("reason", "");
  r.prompt_tokens = object.at("prompt");
  r.new_tokens = object.at("new");
  r.seconds = object.at("seconds");
  r.computed_tokens = object.at("computed");
  r.reused_tokens = object.at("reused");
  return r;
}

/// One replica's part as it is read: sessions follow each other in it.
struct PartReader {
  Parts& parts;
  std::map<std::size_t, BulkRecord>& found;
  std::map<std::int64_t, double>& seconds;  // of sessions: the slowest replica's
  std::int64_t session = 0;
  BulkRecord last = {};  // of the session

  void end_session() {
    seconds[session] = std::max(seconds[session], last.seconds);
    parts.computed_tokens += last.computed_tokens;
    parts.reused_tokens += last.reused_tokens;
    last = {};
  }

  void take(const ordered_json& object, const MadeFrom& now, const std::string& place) {
    if (object.contains("made_from")) {
      require_same(object.at("made_from"), now, place);
      end_session();
      session = object.at("session");
      parts.sessions = std::max(parts.sessions, session);
      return;
    }
    last = from_json(object);
    found.emplace(last.number, last);
  }
};

}  // namespace

std::string line_of(const ordered_json& object) {
  return json_text(object, -1, InvalidUtf8::replaced) + '\n';
}

BulkFiles::BulkFiles(const deck::Deck& deck)
    : directory(deck.output.directory),
      answers(deck.generation.output.empty() ? directory / "answers.jsonl"
                                             : fs::path(deck.generation.output)) {}

fs::path BulkFiles::rejects() const {
  return answers.parent_path() / (answers.stem().string() + "_rejects.jsonl");
}

fs::path BulkFiles::part(int replica) const {
  return parts() / fmt::format("replica_{:04d}.jsonl", replica);
}

std::string hash_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) user_error("{}: cannot be read", path.string());
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0)
    for (std::streamsize i = 0; i < in.gcount(); ++i)
      hash =
          (hash ^ static_cast<unsigned char>(block[static_cast<std::size_t>(i)])) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

MadeFrom made_from(const deck::Deck& deck, const std::string& weights) {
  const deck::Generation& g = deck.generation;
  return {{"the contents of &generation input", hash_of(g.input)},
          {"the contents of &generation prompt_template",
           g.prompt_template.empty() ? "" : hash_of(g.prompt_template)},
          {"the weights", weights},
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

void require_same(const MadeFrom& before, const MadeFrom& now, const std::string& place) {
  for (const auto& [name, value] : now.items())
    if (!before.contains(name) || before.at(name) != value)
      user_error(
          "{}: these answers were made from something else: {} was {} and is {} now. Restore it to "
          "go on, start anew by --fresh, or set another &output directory",
          place, name, before.contains(name) ? json_text(before.at(name)) : "not given",
          json_text(value));
}

Parts read_parts(const BulkFiles& files, const MadeFrom& now) {
  Parts parts;
  std::map<std::size_t, BulkRecord> found;
  std::map<std::int64_t, double> seconds;
  std::vector<fs::path> paths;
  if (fs::exists(files.parts()))
    for (const auto& entry : fs::directory_iterator(files.parts())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    PartReader reader{parts, found, seconds};
    const std::string text = read_file(path);
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      const auto object = try_ordered_json(std::string_view(text).substr(at, end - at));
      if (end == text.size() || !object.is_object()) {
        ++parts.dropped;
        continue;
      }
      reader.take(object, now, path.string());
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
  const std::string text = read_file(path);
  const std::size_t whole = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  if (whole != text.size()) fs::resize_file(path, whole);
}

}  // namespace

PartWriter::PartWriter(const fs::path& path, const MadeFrom& made_from, std::int64_t session)
    : path_((drop_cut_line(path), path)), file_(path) {
  if (!file_.append(line_of({{"session", session}, {"made_from", made_from}})))
    user_error("{}: cannot be written; is the disk full?", path_.string());
}

void PartWriter::append(const BulkRecord& record) {
  if (!file_.append(line_of(to_json(record))))
    user_error(
        "{}: cannot be written; is the disk full? What stands there is kept: free some "
        "space, then go on by --resume",
        path_.string());
}

}  // namespace tern::campaign::detail
