/// What every operation needs beside its views: the stream of work, and which implementation to
/// take.
#pragma once
#include <memory>

#include "memory/arena.hpp"

namespace tern::ops {

namespace cuda {
class Library;  // cuBLASLt and cuDNN handles, plans and their workspace
}

/// What an operation does to its result.
enum class Write { overwrite, add };

struct Context {
  Device space;  // all work of a campaign goes in order through this stream
  std::shared_ptr<cuda::Library> library;  // null: no native twins
  Vector<double> partial_sums;             // workspace of the sums over whole vectors
  /// Portable products give a row of x the same bits whatever rows are beside it. Slower than the
  /// BLAS, which may change kernels with the number of rows.
  bool row_invariant = false;
  /// No operation that is still in flight writes weights, so that products may read them early.
  bool constant_weights = false;

  /// The same without native twins: operations are their portable definitions.
  Context portable() const {
    Context context = *this;
    context.library.reset();
    return context;
  }

  void fence(const char* where) const { space.fence(where); }
  /// The stream as a cudaStream_t for comm; null on the host.
  void* stream() const {
#if defined(KOKKOS_ENABLE_CUDA)
    return space.cuda_stream();
#else
    return nullptr;
#endif
  }
};

/// The context of this build: with `accelerated`, the CUDA libraries where they exist. Library
/// workspace is requested from the arena. `attention` is &model attention: auto | portable | cudnn.
Context make_context(Arena& arena, bool accelerated, const char* attention);

}  // namespace tern::ops
