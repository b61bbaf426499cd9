#include "base/host.hpp"

#include <unistd.h>

namespace tern {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

}  // namespace tern
