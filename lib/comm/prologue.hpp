/// Work before MPI starts: options, decks, help. Fast, and works without a working MPI.
#pragma once
#include <exception>
#include <functional>
#include <optional>

namespace tern::comm {

/// Rank from the environment of mpirun or srun; nullopt if started without a launcher.
std::optional<int> launched_rank();

class Prologue {
 public:
  /// Runs `body`, which returns true if nothing is left to do. On an exception, a process without a
  /// launcher prints the message and ends; a launched rank keeps the exception for rethrow(), since
  /// other ranks may have passed this point and wait for this one.
  explicit Prologue(const std::function<bool()>& body);

  /// Set if the program ends here: 0, or after an exception 1 (UserError) or 70 (anything else).
  std::optional<int> exit_code() const { return exit_code_; }
  /// Rethrows a kept exception; call inside run_ranks.
  void rethrow() const;

 private:
  std::optional<int> exit_code_;
  std::exception_ptr kept_;
};

}  // namespace tern::comm
