#include "memory/views.hpp"
#include "profile/detail/host_tracer.hpp"

namespace tern::profile::detail {

#if defined(TERN_DEVICE_TRACER)
std::unique_ptr<Tracer> make_device_tracer(std::string& trouble);  // cuda/cupti.cpp
#else
std::unique_ptr<Tracer> make_device_tracer(std::string& trouble) {
  trouble = "this build has no tracer for its GPU";
  return nullptr;
}
#endif

std::unique_ptr<Tracer> make_tracer(std::string& trouble) {
  return on_host ? make_host_tracer() : make_device_tracer(trouble);
}

}  // namespace tern::profile::detail
