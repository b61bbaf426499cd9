/// Workspace shared by all native kernels, and the handles and plans that they keep between calls.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "ops/core/context.hpp"

namespace tern::ops {

/// &model attention: the first implementation that serves a call (attention/cuda/attention.cpp), the
/// portable version, or cuDNN for whole sequences.
enum class AttentionChoice { automatic, portable, cudnn };

/// Whether this program is built with cuDNN's frontend.
bool cudnn_built();

/// Made once per campaign by make_context. Used from one host thread and one stream; operations run
/// in the order of that stream, so all of them share one workspace.
class NativeLibrary {
 public:
  /// Requests the workspace from the arena. A measuring arena touches no device. Throws UserError
  /// for cuDNN in a build without it.
  NativeLibrary(Arena& arena, AttentionChoice attention, Products products);

  /// Largest scratch of any operation.
  static constexpr std::size_t workspace_bytes = std::size_t{256} << 20;
  static constexpr std::size_t product_bytes = std::size_t{64} << 20;  // of a cuBLASLt product
  /// Aligned to 256 bytes, as cuBLASLt demands; null while measuring.
  void* workspace() const;
  /// `n` floats at the start of the workspace, valid until the next operation is launched.
  float* scratch(std::size_t n) const;

  AttentionChoice attention() const { return attention_; }
  Products products() const { return products_; }

  /// The library's only object of a type, such as the plans of a family's kernels, made from the
  /// arguments at first use.
  template <class Kept, class... Arguments>
  Kept& get(Arguments&&... arguments) {
    static const std::size_t number = next_number();
    if (kept_.size() <= number) kept_.resize(number + 1);
    if (!kept_[number])
      kept_[number] = std::make_shared<Kept>(std::forward<Arguments>(arguments)...);
    return *static_cast<Kept*>(kept_[number].get());
  }

 private:
  static std::size_t next_number();  // of a type

  Vector<char> workspace_;
  AttentionChoice attention_;
  Products products_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace tern::ops
