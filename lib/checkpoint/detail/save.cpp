#include "checkpoint/detail/save.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/timer.hpp"
#include "checkpoint/detail/folder.hpp"
#include "checkpoint/detail/session.hpp"
#include "checkpoint/detail/sums.hpp"
#include "checkpoint/detail/writer.hpp"

namespace tern::checkpoint::detail {
namespace {

namespace fs = std::filesystem;

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

fs::path temporary_folder(const fs::path& directory, std::int64_t step, const std::string& token,
                          std::uint64_t save) {
  return directory / fmt::format("{}.tmp-{}-{}", step_name(step), token, save);
}

/// Rank 0, or the only rank.
class Leader : public Saver {
 public:
  Leader(fs::path directory, int ranks, double patience)
      : directory_(std::move(directory)), ranks_(ranks), patience_(patience) {
    if (ranks > 1) board_.emplace(directory_, ranks);
    token_ = board_ ? board_->token() : unique_token();
  }

  bool save(const Snapshot& snapshot) override {
    // The other ranks write into "TOKEN-SAVE" only, not into the folder of a plain save.
    auto folder = temporary_folder(directory_, snapshot.header.step, token_, ++saves_);
    if (snapshot.complete) folder += "-plain";
    try {
      fs::create_directory(folder);
      write_durably(folder / sum_file, to_text(snapshot.complete ? plain(folder, snapshot)
                                                                 : sharded(folder, snapshot)));
      publish(directory_, folder, snapshot.header.step);
    } catch (...) {
      remove_quietly(folder);
      finish(false);
      throw;
    }
    finish(true);
    return true;
  }

 private:
  std::vector<Sum> plain(const fs::path& folder, const Snapshot& snapshot) {
    const fs::path file = folder / checkpoint_file;
    write_plain(file, snapshot.header, snapshot.tensors, snapshot.buffer.get());
    return {sum_of(file)};
  }

  std::vector<Sum> sharded(const fs::path& folder, const Snapshot& snapshot) {
    const fs::path own = folder / shard_file(0);
    write_shard(own, snapshot.extents, snapshot.buffer.get(), snapshot.elements);
    std::vector<Sum> sums{sum_of(own)};
    collect(sums);
    std::vector<Extent> extents;
    std::vector<std::size_t> sizes;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto held = read_extents(folder / shard_file(rank), rank, snapshot.tensors);
      extents.insert(extents.end(), held.begin(), held.end());
      std::size_t size = 0;
      for (const Extent& extent : held) size = std::max(size, extent.offset + extent.count);
      sizes.push_back(size);
    }
    const fs::path file = folder / checkpoint_file;
    write_virtual(file, snapshot.header, snapshot.tensors, cover(snapshot.tensors, extents), sizes);
    sums.insert(sums.begin(), sum_of(file));
    return sums;
  }

  /// Waits for the other ranks' notices about this save.
  void collect(std::vector<Sum>& sums) {
    const Timer timer;
    for (int rank = 1; rank < ranks_; pause()) {
      if (const auto notice = board_->look(rank, saves_)) {
        if (!notice->error.empty())
          throw std::runtime_error(fmt::format("rank {}: {}", rank, notice->error));
        sums.push_back(notice->sum);
        sums.back().file = shard_file(rank);
        ++rank;
        continue;
      }
      // Ranks not yet seen wait for their nonce on the board, whatever their order.
      for (int other = rank + 1; other < ranks_; ++other) board_->look(other, saves_);
      if (timer.seconds() > patience_)
        throw std::runtime_error(
            fmt::format("rank {} did not deliver its shard within {} s", rank, patience_));
    }
  }

  void finish(bool good) noexcept {
    try {
      if (board_) board_->finish(saves_, good);
    } catch (const std::exception&) {  // the other ranks run into their own timeout
    }
  }

  fs::path directory_;
  int ranks_;
  double patience_;
  std::optional<Board> board_;
  std::string token_;
  std::uint64_t saves_ = 0;
};

/// Any other rank.
class Follower : public Saver {
 public:
  Follower(fs::path directory, int rank, double patience)
      : directory_(std::move(directory)),
        rank_(rank),
        patience_(patience),
        member_(directory_, rank) {}

  bool save(const Snapshot& snapshot) override {
    ++saves_;
    bool written = false;
    // Twice the patience of rank 0: it times out first and posts its outcome.
    for (const Timer timer; timer.seconds() < 2 * patience_; pause()) {
      if (!member_.refresh()) continue;
      const auto folder =
          temporary_folder(directory_, snapshot.header.step, member_.token(), saves_);
      if (const auto outcome = member_.outcome(saves_)) {
        remove_quietly(folder);  // rank 0 may have failed to, it was not empty
        return *outcome;
      }
      if (written || !fs::exists(folder)) continue;
      member_.post(write(folder, snapshot));
      written = true;
    }
    return false;
  }

 private:
  Notice write(const fs::path& folder, const Snapshot& snapshot) const {
    Notice notice{saves_, {}, {}};
    try {
      const fs::path file = folder / shard_file(rank_);
      write_shard(file, snapshot.extents, snapshot.buffer.get(), snapshot.elements);
      notice.sum = sum_of(file);
    } catch (const std::exception& error) {
      notice.error = error.what();
    }
    return notice;
  }

  fs::path directory_;
  int rank_;
  double patience_;
  Member member_;
  std::uint64_t saves_ = 0;
};

}  // namespace

std::vector<float*> Snapshot::take(const Header& header_, const std::vector<Tensor>& tensors_,
                                   const std::vector<Piece>& pieces, int rank, int ranks) {
  header = header_;
  tensors = tensors_;
  extents.clear();
  elements = 0;
  for (const Piece& piece : pieces) {
    TERN_REQUIRE(piece.tensor < tensors.size(), "piece of tensor {} of {}", piece.tensor,
                 tensors.size());
    const std::size_t size = element_count(tensors[piece.tensor].shape);
    TERN_REQUIRE(piece.first <= size && piece.count <= size - piece.first,
                 "{}: piece [{}, +{}) of {}", tensors[piece.tensor].path, piece.first, piece.count,
                 size);
    extents.push_back({piece.tensor, piece.first, piece.count, elements, rank});
    elements += piece.count;
  }
  try {
    cover(tensors, extents);
    complete = rank == 0;
  } catch (const std::runtime_error& gap) {
    TERN_REQUIRE(ranks > 1, "{}", gap.what());
    complete = false;
  }
  if (complete) {  // in the order of tensors, not of pieces
    std::vector<std::size_t> starts;
    elements = 0;
    for (const Tensor& tensor : tensors) {
      starts.push_back(elements);
      elements += element_count(tensor.shape);
    }
    for (Extent& extent : extents) extent.offset = starts[extent.tensor] + extent.first;
  }
  if (elements > capacity) {
    buffer.reset();
    buffer = std::make_unique_for_overwrite<float[]>(elements);
    capacity = elements;
  }
  std::vector<float*> places;
  for (const Extent& extent : extents) places.push_back(buffer.get() + extent.offset);
  return places;
}

std::unique_ptr<Saver> make_saver(const fs::path& directory, int rank, int ranks, double patience) {
  if (rank == 0) return std::make_unique<Leader>(directory, ranks, patience);
  return std::make_unique<Follower>(directory, rank, patience);
}

}  // namespace tern::checkpoint::detail
