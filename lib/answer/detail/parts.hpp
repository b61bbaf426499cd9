/// What replicas have answered so far, on disk: files of JSON lines to which each appends. A line
/// ends in its own checksum. One that a kill cut off, or that was damaged since, does not count and
/// is done again.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/append_file.hpp"
#include "base/json.hpp"
#include "deck/deck.hpp"

namespace tern::answer::detail {

/// A line of a file of JSON lines; what is not UTF-8 in it is replaced.
std::string line_of(const nlohmann::ordered_json& object);

/// The same with a last member "crc": the CRC-32C of the line up to it.
std::string checked_line(nlohmann::ordered_json object);
/// Whether a line, given without its end, has its checksum.
bool intact(std::string_view line);

/// What answers follow from: hashes of files, and the deck's values.
using MadeFrom = nlohmann::ordered_json;
MadeFrom made_from(const deck::Deck& deck, const std::string& weights);

/// UserError that names the first difference, if there is one.
void require_same(const MadeFrom& before, const MadeFrom& now, const std::string& place);

/// 64-bit FNV-1a of a file, in hexadecimal.
std::string hash_of(const std::filesystem::path& file);

/// A request that was answered.
struct BulkRecord {
  std::size_t number = 0;  // of the request, from 0
  std::string text;        // the answer, or all that was written if it is no good
  std::string reject, reason;
  std::size_t prompt_tokens = 0, new_tokens = 0;
  // Of its replica's session so far.
  double seconds = 0;
  std::size_t computed_tokens = 0, reused_tokens = 0;

  bool good() const { return reject.empty(); }
};

/// Where everything is.
struct BulkFiles {
  std::filesystem::path directory, answers;

  explicit BulkFiles(const deck::Deck& deck);
  std::filesystem::path rejects() const;
  std::filesystem::path summary() const { return directory / "generation.json"; }
  std::filesystem::path parts() const { return directory / "parts"; }
  std::filesystem::path part(int replica) const;
};

/// All parts of a run.
struct Parts {
  std::vector<BulkRecord> records;   // by number of the request; each once
  std::size_t cut = 0;               // lines that a kill cut off
  std::vector<std::string> damaged;  // "FILE:LINE: what is wrong", of other lines
  std::int64_t sessions = 0;         // how often the run was started
  double seconds = 0;                // of all sessions
  std::size_t computed_tokens = 0, reused_tokens = 0;
};

/// Of `requests` requests. Throws UserError if a part was made from something else.
Parts read_parts(const BulkFiles& files, const MadeFrom& now, std::size_t requests);

/// A replica's own part.
class PartWriter {
 public:
  /// Drops a line that was cut off, and begins a session.
  PartWriter(const std::filesystem::path& file, const MadeFrom& made_from, std::int64_t session);
  /// In the file when it returns: a kill afterwards loses nothing. UserError if the disk is full.
  void append(const BulkRecord& record);

 private:
  std::filesystem::path path_;
  AppendFile file_;
};

}  // namespace tern::answer::detail
