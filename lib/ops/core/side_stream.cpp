#include "ops/core/side_stream.hpp"

namespace tern::ops {

SideStream::SideStream() : stream_(comm::gpu::make_stream()) {
  context_.space = comm::gpu::space_on<Device>(stream_.get());
}

Mark::Mark() : event_(comm::gpu::make_event()) {}
void Mark::set(const Context& context) { comm::gpu::record(event_.get(), context.handle()); }
void Mark::await(const Context& context) const { comm::gpu::await(event_.get(), context.handle()); }

}  // namespace tern::ops
