/// Execution context of the operations: the stream, and the choice of implementations.
#pragma once
#include <memory>

#include "base/device_stream.hpp"
#include "comm/gpu.hpp"
#include "memory/arena.hpp"

namespace tern::ops {

/// Handles, plans and workspace of the libraries that native kernels call (core/cuda/library.hpp).
class NativeLibrary;

/// Mode of writing a result.
enum class Write { overwrite, add };

/// Algorithms of a library's matrix products: its own first choice, a function of the shape, or the
/// fastest, timed once per shape and device (linear/cuda/detail/algorithm_search.hpp).
enum class Products { first, fastest };

/// Source of an fp8 matrix's scale: the largest magnitude of its values (current scaling); the
/// larger of that and the stored one; the stored one, of earlier values, with a factor of two of
/// headroom, beyond which values saturate (delayed scaling); the stored one as it is, which is that
/// of the values. Both schemes: recipes of Transformer Engine.
enum class Scaling { current, largest, earlier, known };
/// The scaling that rounds the same values once more.
constexpr Scaling again(Scaling scaling) {
  return scaling == Scaling::earlier ? scaling : Scaling::known;
}

struct Context : DeviceStream {
  Device space;  // all work of a campaign goes in order through this stream
  std::shared_ptr<NativeLibrary> library;  // null: no native kernels
  Vector<double> partial_sums;             // workspace of sums over whole vectors
  /// Portable products are batch-invariant. Slower than the BLAS, which may choose kernels by the
  /// number of rows.
  bool batch_invariant = false;
  /// Products of float32 matrices on tensor cores, operands rounded to TF32 (8 bits of exponent, 10
  /// of mantissa). The host multiplies in float32 all the same.
  bool tf32 = false;
  /// Of the operations of a pass that end in fp8 (elementwise/fp8_matrix.hpp).
  Scaling scaling = Scaling::current;
  /// No operation in flight writes weights, so products may read them early.
  bool constant_weights = false;

  /// Copy without native kernels: operations run their portable versions.
  Context portable() const {
    Context context = *this;
    context.library.reset();
    return context;
  }

  void fence(const char* where) const override { space.fence(where); }
  void* handle() const override { return comm::gpu::stream_of(space); }
};

/// Context of this build; `accelerated`: with the CUDA libraries, if built with CUDA. Library
/// workspace comes from the arena. `attention` is &model attention: auto | portable | cudnn; throws
/// UserError for anything else, and for cudnn where the build lacks it.
Context make_context(Arena& arena, bool accelerated, const char* attention,
                     Products products = Products::first);

}  // namespace tern::ops
