/// Memory is planned, not discovered. A campaign requests all its device memory here by name. The
/// same code runs twice: with a measuring arena, which only adds up sizes and returns null views,
/// and with an allocating one, which carves views out of one allocation of the measured size. So
/// the plan that --dry-run prints is what the run uses, to the byte.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "memory/views.hpp"

namespace tern {

/// Terms of the memory plan.
enum class Term { parameters, gradients, optimizer, activations, workspace, data, cache };
const char* term_name(Term term);

class Arena {
 public:
  struct Request {
    std::string name;
    Term term;
    std::size_t bytes;  // before alignment
    std::size_t offset;
  };

  /// Measuring arena: adds up sizes, returns null views.
  Arena() = default;
  /// Allocating arena of `bytes` of device memory (plus `alignment`), zero-filled. Throws UserError
  /// if the device has less.
  explicit Arena(std::size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool measuring() const { return block_ == nullptr; }
  /// Bytes requested so far, each request rounded up to 256 bytes.
  std::size_t bytes() const { return used_; }
  /// The same for one term.
  std::size_t bytes(Term term) const;
  const std::vector<Request>& requests() const { return requests_; }

  template <class T>
  Vector<T> vector(std::string name, Term term, std::size_t n) {
    return Vector<T>(static_cast<T*>(take(std::move(name), term, n * sizeof(T))), n);
  }
  template <class T>
  Matrix<T> matrix(std::string name, Term term, std::size_t rows, std::size_t columns) {
    return Matrix<T>(static_cast<T*>(take(std::move(name), term, rows * columns * sizeof(T))), rows,
                     columns);
  }
  template <class T>
  Tensor3<T> tensor3(std::string name, Term term, std::size_t a, std::size_t b, std::size_t c) {
    return Tensor3<T>(static_cast<T*>(take(std::move(name), term, a * b * c * sizeof(T))), a, b, c);
  }

  static constexpr std::size_t alignment = 256;

 private:
  void* take(std::string name, Term term, std::size_t bytes);

  std::vector<Request> requests_;
  std::size_t used_ = 0, capacity_ = 0;
  void* block_ = nullptr;
  char* first_ = nullptr;  // aligned start within block_
};

/// Free and total memory of this rank's device (host memory on the host).
struct DeviceCapacity {
  std::size_t free_bytes, total_bytes;
};
DeviceCapacity device_capacity();

/// Rounds up to the arena's alignment.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}

}  // namespace tern
