/// Broadcast of strings.
#pragma once
#include <string>

#include "comm/comm.hpp"

namespace tern::comm {

/// Returns `root`'s text on every rank. Collective.
inline std::string broadcast_text(std::string text, Group& group, int root = 0) {
  std::size_t size = text.size();
  group.broadcast(&size, sizeof size, root);
  text.resize(size);
  group.broadcast(text.data(), size, root);
  return text;
}

}  // namespace tern::comm
