/// Hosts (nodes) of all ranks.
#pragma once
#include <string>
#include <vector>

namespace tern::comm {

struct Hosts {
  std::vector<std::string> names;  // in the order of their lowest ranks
  int most = 1;                    // largest number of ranks on one of them

  int count() const { return static_cast<int>(names.size()); }
  /// "tern1, tern2"; of more than four, the first ones and the number of others.
  std::string text() const;
};

/// Ranks that share memory are on one host. The same on all ranks. Collective over all ranks; MPI
/// must be initialized (Session).
Hosts hosts();

}  // namespace tern::comm
