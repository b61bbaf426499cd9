#include "checkpoint/detail/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <sstream>
#include <thread>

#include "base/files.hpp"

namespace tern::checkpoint::detail {
namespace {

namespace fs = std::filesystem;

fs::path session_folder(const fs::path& directory) { return directory / ".session"; }
fs::path board_path(const fs::path& folder) { return folder / "board"; }
fs::path rank_path(const fs::path& folder, int rank) {
  return folder / fmt::format("rank_{:04d}", rank);
}

constexpr std::size_t hash_digits = 16;

std::string hash_text(std::string_view text) { return fmt::format("{:016x}", hash_of(text)); }

/// A line of fixed size, preceded by its hash: readers detect a partial rewrite.
std::string line_of(std::string text, std::size_t size) {
  text.resize(size, ' ');
  return hash_text(text) + text + "\n";
}

std::optional<std::string> read_line(const fs::path& path) {
  try {
    const std::string line = read_text(path);
    if (line.size() <= hash_digits) return std::nullopt;
    const std::string text = line.substr(hash_digits, line.size() - hash_digits - 1);
    if (line.substr(0, hash_digits) != hash_text(text)) return std::nullopt;
    return text;
  } catch (const FileError&) {
    return std::nullopt;
  }
}

/// Needs no space on the disk. Tried a few times: the other ranks wait for it.
void rewrite(const fs::path& path, const std::string& line) {
  for (int tries = 5;; --tries) {
    try {
      return File(path, O_WRONLY).write(line.data(), line.size(), 0);
    } catch (const FileError&) {
      if (tries == 1) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

constexpr std::size_t notice_size = 400;
std::size_t board_size(std::size_t ranks) { return 64 + 17 * ranks; }

std::string notice_text(const std::string& nonce, const std::string& token, const Notice& notice) {
  return fmt::format("{} {} {} {} {} {}", nonce, token.empty() ? "-" : token, notice.save,
                     notice.sum.hash, notice.sum.size, notice.error);
}

}  // namespace

Board::Board(const fs::path& directory, int ranks)
    : folder_(session_folder(directory)),
      token_(unique_token()),
      nonces_(static_cast<std::size_t>(ranks), "-") {
  make_own_folder(folder_);
  post();
}

void Board::post() {
  std::string text = fmt::format("{} {} {}", token_, finished_, outcomes_);
  for (const std::string& nonce : nonces_) text += " " + nonce;
  const std::string line = line_of(text, board_size(nonces_.size()));
  const fs::path path = board_path(folder_);
  std::error_code error;
  if (fs::file_size(path, error) == line.size() && !error)
    rewrite(path, line);
  else
    write_durably(path, line);
}

std::optional<Notice> Board::look(int rank, std::uint64_t save) {
  const auto text = read_line(rank_path(folder_, rank));
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  std::string nonce, token;
  Notice notice;
  words >> nonce >> token >> notice.save >> notice.sum.hash >> notice.sum.size >> std::ws;
  std::string& seen = nonces_[static_cast<std::size_t>(rank)];
  if (seen != nonce) {
    seen = nonce;
    post();
  }
  if (token != token_ || notice.save != save) return std::nullopt;
  std::getline(words, notice.error);
  notice.error.erase(notice.error.find_last_not_of(' ') + 1);
  return notice;
}

void Board::finish(std::uint64_t save, bool good) {
  // Ranks that wrote no shard must also find their nonces.
  for (int rank = 1; rank < static_cast<int>(nonces_.size()); ++rank) look(rank, save);
  finished_ = save;
  outcomes_ = outcomes_ << 1 | (good ? 1 : 0);
  post();
}

Member::Member(const fs::path& directory, int rank)
    : folder_(session_folder(directory)), rank_(rank), nonce_(unique_token()) {
  make_own_folder(folder_);
  write_durably(rank_path(folder_, rank_), line_of(notice_text(nonce_, "", {}), notice_size));
}

bool Member::refresh() {
  const auto text = read_line(board_path(folder_));
  if (!text) return false;
  std::istringstream words(*text);
  std::string token, nonce;
  std::uint64_t finished = 0, outcomes = 0;
  words >> token >> finished >> outcomes;
  for (int rank = 0; rank <= rank_; ++rank) words >> nonce;
  if (!words || nonce != nonce_) return false;
  token_ = token;
  finished_ = finished;
  outcomes_ = outcomes;
  return true;
}

std::optional<bool> Member::outcome(std::uint64_t save) const {
  if (finished_ < save) return std::nullopt;
  const std::uint64_t age = finished_ - save;
  return age < 64 && (outcomes_ >> age & 1) != 0;
}

void Member::post(const Notice& notice) {
  rewrite(rank_path(folder_, rank_), line_of(notice_text(nonce_, token_, notice), notice_size));
}

}  // namespace tern::checkpoint::detail
