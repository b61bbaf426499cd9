/// Agreement of the ranks on a save through the file system only, in DIR/.session: the writers are
/// background threads, which must not call MPI. Each rank has one small file there:
///
///   board       rank 0: the session's token, the number of the last finished save, the outcomes
///               of the last 64, and the nonces of the ranks seen so far
///   rank_0003   rank 3: its nonce and the result of writing its shard
///
/// Each Store makes a new token or nonce. A rank trusts a board only if it shows the rank's own
/// nonce; rank 0 accepts only notices with its own token. Files left by an earlier, killed run are
/// therefore never mistaken for current ones. Files keep their size and are rewritten in place,
/// which works on a full disk.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/detail/sums.hpp"

namespace tern::checkpoint::detail {

/// A rank's report on its shard of one save.
struct Notice {
  std::uint64_t save = 0;
  Sum sum;
  std::string error;  // empty: the shard is on disk
};

/// Rank 0's side.
class Board {
 public:
  Board(const std::filesystem::path& directory, int ranks);
  const std::string& token() const { return token_; }
  /// The notice of `rank` about `save`; empty until it is there.
  std::optional<Notice> look(int rank, std::uint64_t save);
  void finish(std::uint64_t save, bool good);

 private:
  void post();
  std::filesystem::path folder_;
  std::string token_;
  std::uint64_t finished_ = 0, outcomes_ = 0;
  std::vector<std::string> nonces_;
};

/// The other ranks' side.
class Member {
 public:
  Member(const std::filesystem::path& directory, int rank);
  /// Reads the board; false while it is not this run's.
  bool refresh();
  const std::string& token() const { return token_; }  // valid once refresh() returned true
  /// The outcome of `save`; empty until rank 0 has finished it.
  std::optional<bool> outcome(std::uint64_t save) const;
  void post(const Notice& notice);

 private:
  std::filesystem::path folder_;
  int rank_;
  std::string nonce_, token_;
  std::uint64_t finished_ = 0, outcomes_ = 0;
};

}  // namespace tern::checkpoint::detail
