#include "generate/detail/block_cache.hpp"

#include "base/error.hpp"

namespace tern::generate::detail {
namespace {

template <class T>
struct Store {
  const T* both;
  std::int64_t row_stride, width;
  Vector<const std::int32_t> places;
  T *keys, *values;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = i / (2 * width), e = i % (2 * width), place = places(row);
    if (place < 0) return;
    T* to = e < width ? keys + place * width + e : values + place * width + e - width;
    *to = both[row * row_stride + e];
  }
};

template <class T>
struct Exchange {
  Matrix<T> data;
  std::int64_t a, b, count;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t part = i / count, e = i % count;
    const T kept = data(part, a + e);
    data(part, a + e) = data(part, b + e);
    data(part, b + e) = kept;
  }
};

template <class F>
void for_each(const ops::Context& context, const char* name, std::size_t n, const F& body) {
  using Policy = Kokkos::RangePolicy<Device, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(name, Policy(context.space, 0, static_cast<std::int64_t>(n)), body);
}

}  // namespace

template <class T>
BlockCache<T>::BlockCache(std::size_t layers, std::size_t slots, std::size_t tokens,
                          std::size_t heads, std::size_t head_size, Arena& arena)
    : slots_(slots),
      tokens_(tokens),
      heads_(heads),
      head_size_(head_size),
      data_(arena.matrix<T>("keys and values", Term::cache, 2 * layers,
                            slots * tokens * heads * head_size)) {}

template <class T>
void BlockCache<T>::store(const ops::Context& context, std::size_t layer, const T* both,
                          std::size_t row_stride, Vector<const std::int32_t> places) const {
  const std::size_t width = heads_ * head_size_;
  T* keys = data_.data() + 2 * layer * data_.extent(1);
  for_each(context, "tern::store_keys_and_values", places.extent(0) * 2 * width,
           Store<T>{both, static_cast<std::int64_t>(row_stride), static_cast<std::int64_t>(width),
                    places, keys, keys + data_.extent(1)});
}

template <class T>
void BlockCache<T>::exchange(const ops::Context& context, std::size_t a, std::size_t b,
                             std::size_t tokens) const {
  TERN_REQUIRE(a < slots_ && b < slots_ && tokens <= tokens_, "slots {}, {} of {}, {} tokens of {}",
               a, b, slots_, tokens, tokens_);
  const std::size_t width = heads_ * head_size_, count = tokens * width;
  if (a == b || count == 0) return;
  for_each(context, "tern::exchange_slots", data_.extent(0) * count,
           Exchange<T>{data_, static_cast<std::int64_t>(a * tokens_ * width),
                       static_cast<std::int64_t>(b * tokens_ * width),
                       static_cast<std::int64_t>(count)});
}

template <class T>
Heads<const T> BlockCache<T>::heads(std::size_t part, std::size_t first, std::size_t sequences,
                                    std::size_t tokens) const {
  const std::size_t width = heads_ * head_size_;
  return Heads<const T>(data_.data() + part * data_.extent(1) + first * tokens_ * width,
                        Kokkos::LayoutStride(sequences, tokens_ * width, tokens, width, heads_,
                                             head_size_, head_size_, 1));
}

template class BlockCache<float>;
template class BlockCache<double>;
template class BlockCache<bf16>;
template class BlockCache<fp16>;

}  // namespace tern::generate::detail
