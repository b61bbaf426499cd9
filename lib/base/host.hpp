#pragma once
#include <string>

namespace tern {

/// Of this machine, as the network knows it; "unknown host" where the system does not tell.
std::string host_name();

}  // namespace tern
