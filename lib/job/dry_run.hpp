/// What a dry run opens to find out whether its run can.
#pragma once
#include "base/error.hpp"
#include "job/options.hpp"

namespace tern::job {

/// Calls `open`, which opens files as a run does. In a dry run a UserError also names the option to
/// plan without them.
template <class Open>
auto opened(const Options& options, const Open& open) {
  try {
    return open();
  } catch (const UserError& e) {
    if (!options.dry_run) throw;
    user_error(
        "{}\nThe run would end here. --without-data plans without data, tokenizer and weights.",
        e.what());
  }
}

}  // namespace tern::job
