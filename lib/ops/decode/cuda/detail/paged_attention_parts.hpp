/// Shared by the kernels of paged attention, FlashAttention-2 (Dao 2023) with blocks of four warps
/// and keys gathered from pages. And the work of single rows, with its copies to shared memory: a
/// warp of a block takes every fourth chunk of 16 keys of a split, and copies them itself, so that
/// warps wait for each other only where their results are added.
#pragma once
#include "ops/attention/cuda/any_sm80/forward.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/decode/paged_cache.hpp"

namespace tern::ops::cuda::paged {

using namespace any_sm80;

constexpr int piece_size = piece_bytes / 2;  // numbers, of 16 bits
template <int E>
constexpr int row_bytes = 2 * E;

template <class T>
struct Problem {
  const T* qkv;  // (N, width): queries are the first H E columns
  int width;
  PageMemory keys, values;  // (pages, K, P, E), with codes undo (pages, K, P)
  int page_shift;           // P = 2^page_shift
  int heads, kv_heads;
  float scale;
  const Segment* segments;
  const std::int32_t* tables;

  /// Within (pages, K, P); pages: of the key's sequence.
  __device__ int place_of(const std::int32_t* pages, int kv, int key) const {
    const int inside = key & ((1 << page_shift) - 1);
    return ((pages[key >> page_shift] * kv_heads + kv) << page_shift) + inside;
  }
};

/// Bytes of a number in the cache.
template <bool coded>
constexpr int width = coded ? 1 : 2;

// ---- single rows ----

constexpr int split_chunks = PagedRows::split_keys / tile_rows;  // most per warp

/// A split of a key head.
struct Work {
  Split split;
  int number, kv;

  __device__ int end() const {  // of its keys
    return min(split.first + PagedRows::split_keys, split.position + 1);
  }
  __device__ int key(int warp, int chunk) const {
    return split.first + (chunk * warps + warp) * chunk_rows;
  }
  __device__ int chunks(int warp) const {
    return ((end() - split.first + chunk_rows - 1) / chunk_rows + warps - 1 - warp) / warps;
  }
};

/// Work [next, last): the splits of one key head after the other, so that the short ones at the ends
/// of sequences are spread evenly. Each is read while the one before it is in work.
class SplitWalk {
 public:
  __device__ SplitWalk(const Split* splits, int count, int first, int last)
      : splits_(splits),
        count_(count),
        left_(last - first),
        number_(first % count),
        kv_(first / count) {
    now_ = read();
    next_ = read();
  }
  __device__ bool ended() const { return now_.split.position < 0; }
  __device__ const Work& now() const { return now_; }
  __device__ const Work& next() const { return next_; }  // without keys if there is none
  __device__ void advance() {
    now_ = next_;
    next_ = read();
  }

 private:
  __device__ Work read() {
    if (left_ <= 0) return {{0, -1, 0, 0}, 0, 0};
    --left_;
    const Work work{splits_[number_], number_, kv_};
    if (++number_ == count_) number_ = 0, ++kv_;
    return work;
  }
  const Split* splits_;
  int count_, left_, number_, kv_;  // the last three: not read yet
  Work now_, next_;
};

/// A warp's chunks in shared memory, `batch` of them per slot: of each split those of keys, then
/// those of values, as they are in the cache; of codes with their scales. `slots` slots are being
/// copied or in use.
template <class T, int E, int batch, int slots, bool coded>
class ChunkRing {
  static constexpr int row = width<coded> * E, numbers = chunk_rows * row;

 public:
  static constexpr int slot_bytes = batch * (numbers + (coded ? chunk_rows * 4 : 0));
  static constexpr int bytes = slots * slot_bytes;

  __device__ ChunkRing(const Problem<T>& problem, const SplitWalk& walk, std::uint32_t shared)
      : p_(problem), walk_(walk), begin_(shared), slot_(shared) {
    places_ = places_of(walk_.now());
    enter();
  }

  /// Chunk i of the oldest slot, and the scale of one of its keys or values.
  __device__ std::uint32_t chunk(int i) const { return slot_ + i * numbers; }
  __device__ float scale(int i, int key) const {
    return __uint_as_float(load_word(slot_ + batch * numbers + (i * chunk_rows + key) * 4));
  }
  /// body(c, i) for chunks c of a split's keys, or of its values, of which there are `count`: chunk i
  /// of the oldest slot, whose place the next copy then takes.
  template <class Body>
  __device__ void for_each(int count, const Body& body) {
#pragma unroll
    for (int first = 0; first < split_chunks; first += batch) {
      if (first >= count) break;
      wait_for_copies_but<slots - 1>();
      __syncwarp();
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        if (first + i >= count) break;
        body(first + i, i);
      }
      __syncwarp();
      start();
    }
  }
  /// Whether all keys of the next copy are before the row's own.
  __device__ bool settled() const {
    const Work& work = walk_.now();
    return work.key(lane_.warp, min(chunk_ + batch, chunks_) - 1) + chunk_rows <=
           work.split.position;
  }
  __device__ bool ended() const { return walk_.ended(); }
  /// Starts the next copy, if there is one.
  __device__ void start() {
    if (!ended()) {
      copy();
      advance();
    }
    end_copies();
    slot_ = slot_ + slot_bytes == begin_ + bytes ? begin_ : slot_ + slot_bytes;
  }

 private:
  __device__ void advance() {
    chunk_ += batch;
    if (chunk_ < chunks_) return;
    chunk_ = 0;
    values_ = !values_;
    if (values_) {
      next_places_ = places_of(walk_.next());
    } else {
      walk_.advance();
      places_ = next_places_;
      enter();
    }
  }
  /// Goes to the next split of which the warp has chunks.
  __device__ void enter() {
    chunks_ = walk_.now().chunks(lane_.warp);
    while (chunks_ == 0 && !ended()) {
      walk_.advance();
      places_ = places_of(walk_.now());
      chunks_ = walk_.now().chunks(lane_.warp);
    }
  }
  /// Where the warp's chunk l % split_chunks is within (pages, K, P), for lane l. Pages have whole
  /// chunks.
  __device__ int places_of(const Work& work) const {
    const int key = work.key(lane_.warp, lane_.lane % split_chunks);
    return key < work.end() ? p_.place_of(p_.tables + work.split.table, work.kv, key) : 0;
  }
  /// Zeros in the place of keys beyond the last.
  __device__ void copy() const {
    constexpr int pieces = row / piece_bytes, rows = 32 / pieces;  // per copy of a warp
    const int own_row = lane_.lane / pieces, piece = lane_.lane % pieces;
    const char* data = static_cast<const char*>(values_ ? p_.values.data : p_.keys.data);
    const int left = walk_.now().end() - walk_.now().key(lane_.warp, chunk_);
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      if (i > 0 && chunk_ + i >= chunks_) break;
      const int place = __shfl_sync(0xffffffffu, places_, chunk_ + i);
      const char* from = data + static_cast<std::int64_t>(place) * row + lane_.lane * piece_bytes;
      const int count = left - i * tile_rows - own_row;
#pragma unroll
      for (int r = 0; r < chunk_rows; r += rows)
        copy_16(chunk(i) + piece_offset(r + own_row, piece, row), from + r * row, r < count);
    }
    if constexpr (coded) copy_scales(left);
  }
  __device__ void copy_scales(int left) const {
    constexpr int at_once = 32 / chunk_rows;
    const float* undo = values_ ? p_.values.undo : p_.keys.undo;
#pragma unroll
    for (int i = 0; i < batch; i += at_once) {
      const int own = i + lane_.lane / chunk_rows, key = lane_.lane % chunk_rows;
      const int place = __shfl_sync(0xffffffffu, places_, chunk_ + own);
      if (own < batch)
        copy_4(slot_ + batch * numbers + (own * chunk_rows + key) * 4, undo + place + key,
               key < left - own * tile_rows);
    }
  }

  const Problem<T>& p_;
  const Lane lane_;
  SplitWalk walk_;
  std::uint32_t begin_, slot_;
  int chunk_ = 0, chunks_ = 0, places_ = 0, next_places_ = 0;
  bool values_ = false;
};

}  // namespace tern::ops::cuda::paged
