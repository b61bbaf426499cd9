/// Agreement of all ranks on what may fail, or differ, on some. Collective over all ranks.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tern::comm {

/// Runs `body`, which is not collective, on all ranks. If it throws on any, all ranks throw what it
/// threw on the lowest of these, as a UserError if that was the user's.
void together(const std::function<void()>& body);

/// UserError on all ranks unless `lines` are the same on all; names the first that differs.
void require_same(const std::vector<std::string>& lines);

}  // namespace tern::comm
