/// Memory of this host's other GPUs, allocated by other processes, and words in device memory through
/// which streams of two processes wait for each other. CUDA only: other builds share nothing.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tern::comm::gpu {

/// What another process needs to open memory. Sent over MPI as bytes.
struct SharedMemory {
  bool valid = false;
  std::array<char, 64> handle{};  // of the allocation
  std::size_t first = 0;          // byte of it
};

/// Handle of memory from cudaMalloc; not valid if the runtime cannot share it.
SharedMemory share(void* memory);
/// Null if this GPU cannot reach it.
std::shared_ptr<void> open(const SharedMemory&);

/// Copies between GPUs, in the order of the stream, without waiting. Needs no multiprocessor.
void start_copy(void* to, const void* from, std::size_t bytes, void* stream);
/// Writes the word, of any GPU, once all work given to the stream so far has ended.
void write_word(std::uint32_t* word, std::uint32_t value, void* stream);
/// Work given to the stream from now on waits until the word, of this GPU, has the value.
void await_word(std::uint32_t* word, std::uint32_t value, void* stream);

}  // namespace tern::comm::gpu
