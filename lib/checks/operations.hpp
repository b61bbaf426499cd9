/// Checks of the operations on the machine at hand: what a context would run, against the portable
/// operations in double on the same inputs. `diagnose` and the device tests print and judge them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/context.hpp"

namespace tern::checks {

struct CheckResult {
  std::string operation, shape;
  double error;      // the worst output's ||out - ref|| / ||ref||, ref: portable in double
  double reference;  // the same of the portable operation in the storage type that was checked
  double bar;     // bf16: 2 reference + 1e-6 (float sums in another order; 8-bit products: 2^-10),
                  // at most 2e-2, so that a broken reference excuses nothing; float: 1e-5
  bool complete;  // every element was written (outputs start as NaN)
  bool repeats;   // a second run gave the same bits
  bool passed() const { return complete && repeats && error <= bar; }
};

/// Runs every operation that has an accelerated twin, forward and backward, on fresh random inputs
/// drawn from `seed`, at odd and at typical sizes, with T = bf16 (accelerated) or float (portable
/// alone). Allocates a few hundred MiB for the time of each check, and synchronises; some ten
/// seconds.
template <class T>
std::vector<CheckResult> check_operations(const ops::Context& context, std::uint64_t seed);

}  // namespace tern::checks
