/// Checks of a context's operations on this machine against the portable operations in double on
/// the same inputs. `diagnose` and the device tests print and judge them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/core/context.hpp"

namespace tern::checks {

struct CheckResult {
  std::string operation, shape;
  double error;      // the worst output's ||out - ref|| / ||ref||, ref: portable in double
  double reference;  // the same for the portable operation in the checked storage type
  double
      bar;  // bf16, fp16: 2 reference + 1e-6 (float sums in another order; 8-bit products: 2^-10),
            // at most 2e-2, so that a broken reference excuses nothing; float: 1e-5. Results in
            // fp8, where numbers near a tie round the other way: at most 5e-2; float: 1e-3
  bool complete;  // every element was written (outputs start as NaN)
  bool repeats;   // a second run gave the same bits
  bool passed() const { return complete && repeats && error <= bar; }
};

/// Runs every operation that has a native kernel, forward and backward, on random inputs drawn from
/// `seed`, at odd and typical sizes, with T = bf16 or fp16 (native) or float (portable only). Allocates a
/// few hundred MiB during each check, and synchronizes; half a minute to a minute.
template <class T>
std::vector<CheckResult> check_operations(const ops::Context& context, std::uint64_t seed);

}  // namespace tern::checks
