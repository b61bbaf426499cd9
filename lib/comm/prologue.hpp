/// What a program does before MPI starts: options, decks, help. It takes no time then, and works
/// where MPI does not.
#pragma once
#include <exception>
#include <functional>
#include <optional>

namespace tern::comm {

/// The rank that mpirun or srun gave this process, by its environment; nothing if it was started
/// alone.
std::optional<int> launched_rank();

class Prologue {
 public:
  /// Runs `body`, which returns true if it has done all there is to do. An exception ends a process
  /// that was started alone: its message is printed. One of several ranks keeps it for rethrow(),
  /// since the others may have got past it and wait for this one.
  explicit Prologue(const std::function<bool()>& body);

  /// Set if the program ends here: 0, or 1 (UserError) or 70 (anything else) after an exception.
  std::optional<int> exit_code() const { return exit_code_; }
  /// Within run_ranks.
  void rethrow() const;

 private:
  std::optional<int> exit_code_;
  std::exception_ptr kept_;
};

}  // namespace tern::comm
