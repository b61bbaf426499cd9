/// Answers so far, on disk: one file of JSON lines per replica, append-only. Each line ends in its
/// checksum. Truncated or damaged lines do not count; their requests are answered again.
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

/// A line of a JSON Lines file; invalid UTF-8 is replaced.
std::string line_of(const nlohmann::ordered_json& object);

/// line_of with a last member "crc": the CRC-32C of the line up to it.
std::string checked_line(nlohmann::ordered_json object);
/// Whether a line, without its newline, matches its checksum.
bool intact(std::string_view line);

/// Origin of the answers: hashes of files, and the deck's values.
using Provenance = nlohmann::ordered_json;
Provenance provenance(const deck::Deck& deck, const std::string& weights);

/// Throws UserError with the first difference, if any.
void require_same(const Provenance& before, const Provenance& now, const std::string& place);

/// 64-bit FNV-1a hash of a file, in hexadecimal.
std::string hash_of(const std::filesystem::path& file);

/// An answered request.
struct AnswerRecord {
  std::size_t number = 0;  // request number, from 0
  std::string text;        // the answer, or the whole output if rejected
  std::string reject, reason;
  bool cut = false;  // ended by max_tokens
  std::size_t prompt_tokens = 0, new_tokens = 0;
  // Totals of the replica's session so far.
  double seconds = 0;
  std::size_t computed_tokens = 0, reused_tokens = 0;

  bool good() const { return reject.empty(); }
};

/// Paths of a run's files.
struct AnswerFiles {
  std::filesystem::path directory, answers;

  explicit AnswerFiles(const deck::Deck& deck);
  std::filesystem::path rejects() const;
  std::filesystem::path summary() const { return directory / "generation.json"; }
  std::filesystem::path parts() const { return directory / "parts"; }
  std::filesystem::path part(int replica) const;
};

/// All parts of a run.
struct Journal {
  std::vector<AnswerRecord> records;  // by request number, each once
  std::size_t cut = 0;                // truncated lines
  std::vector<std::string> damaged;   // other bad lines: "FILE:LINE: reason"
  std::int64_t sessions = 0;          // starts of the run
  double seconds = 0;                 // over all sessions
  std::size_t computed_tokens = 0, reused_tokens = 0;
};

/// Reads all parts of a run with `requests` requests. Throws UserError for a part of other origin.
Journal read_journal(const AnswerFiles& files, const Provenance& now, std::size_t requests);

/// Writer of a replica's part.
class JournalWriter {
 public:
  /// Drops a truncated last line and begins a session.
  JournalWriter(const std::filesystem::path& file, const Provenance& provenance,
                std::int64_t session);
  /// The record is in the file on return: a later kill loses nothing. Throws UserError if the disk
  /// is full.
  void append(const AnswerRecord& record);

 private:
  std::filesystem::path path_;
  AppendFile file_;
};

}  // namespace tern::answer::detail
