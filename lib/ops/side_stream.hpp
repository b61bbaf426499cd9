/// A second stream of work beside a context's, for what may overlap with it, and marks that order
/// the two. On the host both are one: kernels run in the order they are started in, and marks do
/// nothing.
#pragma once
#include <memory>

#include "ops/context.hpp"

namespace tern::ops {

class SideStream {
 public:
  SideStream();
  /// Kernels and collectives given this context run beside those of the main one.
  const Context& context() const { return context_; }

 private:
  std::shared_ptr<void> stream_;  // a cudaStream_t
  Context context_;
};

/// A place in a stream.
class Mark {
 public:
  Mark();
  /// Stands behind all that the context's stream was given so far.
  void set(const Context&);
  /// What the context's stream is given from now on waits for the mark. Nothing if it was never
  /// set.
  void await(const Context&) const;

 private:
  std::shared_ptr<void> event_;  // a cudaEvent_t
};

}  // namespace tern::ops
