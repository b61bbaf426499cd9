/// A second stream whose work overlaps with a context's, and marks that order the two. On the host
/// both are one: kernels run in launch order, and marks do nothing.
#pragma once
#include <memory>

#include "ops/core/context.hpp"

namespace tern::ops {

class SideStream {
 public:
  SideStream();
  /// Kernels and collectives given this context overlap with those of the main one.
  const Context& context() const { return context_; }

 private:
  std::shared_ptr<void> stream_;
  Context context_;
};

/// A point in a stream.
class Mark {
 public:
  Mark();
  /// Marks the end of all work given to the context's stream so far.
  void set(const Context&);
  /// Work given to the context's stream from now on waits for the mark. No-op if never set.
  void await(const Context&) const;

 private:
  std::shared_ptr<void> event_;
};

}  // namespace tern::ops
