#pragma once
#include <string>

namespace tern {

/// This machine's network name; "unknown host" if the system does not tell.
std::string host_name();

}  // namespace tern
