#include "comm/agreement.hpp"

#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hashes.hpp"
#include "comm/detail/mpi_check.hpp"
#include "comm/detail/wait.hpp"

namespace tern::comm {
namespace {

using detail::check;

int rank_of_world() {
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of_world() {
  int size = 1;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size;
}

template <class T>
T reduced(T value, MPI_Datatype type, MPI_Op op) {
  const detail::Wait wait({"all_reduce among all ranks", sizeof value});
  check(MPI_Allreduce(MPI_IN_PLACE, &value, 1, type, op, MPI_COMM_WORLD), "MPI_Allreduce");
  return value;
}

std::string broadcast(std::string text, int root) {
  std::uint64_t size = text.size();
  const detail::Wait wait({"broadcast to all ranks", text.size()});
  check(MPI_Bcast(&size, 1, MPI_UINT64_T, root, MPI_COMM_WORLD), "MPI_Bcast");
  text.resize(size);
  check(MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, root, MPI_COMM_WORLD),
        "MPI_Bcast");
  return text;
}

std::string joined(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

/// Removes and returns the first line; empty at the end.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

/// How `own`, of `rank`, first differs from the text of rank 0.
std::string difference(int rank, std::string_view own, std::string_view first) {
  while (!own.empty() || !first.empty()) {
    const std::string_view mine = next_line(own), other = next_line(first);
    if (mine != other)
      return fmt::format(
          "the ranks were started with different decks or options: rank {} has {}, rank 0 has {}; "
          "start all ranks with the same deck and options",
          rank, mine.empty() ? "nothing" : mine, other.empty() ? "nothing" : other);
  }
  return {};
}

}  // namespace

void together(const std::function<void()>& body) {
  const int ranks = size_of_world(), rank = rank_of_world();
  if (ranks == 1) return body();
  std::string text;
  bool failed = false, users = false;
  const auto caught = [&](const std::exception& e, bool of_the_user) {
    failed = true, users = of_the_user, text = e.what();
  };
  try {
    body();
  } catch (const UserError& e) {
    caught(e, true);
  } catch (const FileError& e) {
    caught(e, true);
  } catch (const std::filesystem::filesystem_error& e) {
    caught(e, true);
  } catch (const std::exception& e) {
    caught(e, false);
  }
  const int first = reduced(failed ? rank : ranks, MPI_INT, MPI_MIN);
  if (first == ranks) return;
  const int failures = reduced(failed ? 1 : 0, MPI_INT, MPI_SUM);
  const bool of_the_user = reduced(rank == first && users ? 1 : 0, MPI_INT, MPI_MAX) != 0;
  text = broadcast(std::move(text), first);
  if (failures < ranks) text = fmt::format("rank {}: {}", first, text);
  if (of_the_user) throw UserError(text);
  throw std::runtime_error(text);
}

void require_same(const std::vector<std::string>& lines) {
  const int ranks = size_of_world(), rank = rank_of_world();
  if (ranks == 1) return;
  const std::string own = joined(lines);
  const std::uint64_t hash = Fnv().add(own).value();
  if (reduced(hash, MPI_UINT64_T, MPI_MAX) == reduced(hash, MPI_UINT64_T, MPI_MIN)) return;
  const std::string of_first = broadcast(own, 0);
  const int other = reduced(own == of_first ? ranks : rank, MPI_INT, MPI_MIN);
  TERN_REQUIRE(other < ranks, "two texts with the same hash");
  throw UserError(broadcast(rank == other ? difference(rank, own, of_first) : "", other));
}

}  // namespace tern::comm
