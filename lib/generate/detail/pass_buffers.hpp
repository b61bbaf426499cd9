/// Transfer of a pass's integers to the device and of its drawn tokens back: one copy each way,
/// from and to page-locked memory, at constant addresses.
#pragma once
#include <array>

#include "generate/detail/scheduler.hpp"
#include "memory/arena.hpp"

namespace tern::generate::detail {

class PassBuffers {
 public:
  PassBuffers(const Scheduler::Limits& limits, Arena& arena);

  /// Starts the copy. The previous one must have completed: wait for drawn() after each pass.
  void upload(const ops::Context& context, const Pass& pass);

  // Views of the uploaded values.
  ops::PagedRows rows() const;
  Vector<const std::int32_t> tokens() const { return section(token_part, rows_); }
  Vector<const std::int32_t> drawn_rows() const { return section(drawn_part, drawn_); }
  Vector<const std::int32_t> ids() const { return section(id_part, 2 * drawn_); }
  Vector<const std::int32_t> numbers() const { return section(number_part, drawn_); }

  /// Where n drawn tokens of a pass are written.
  Vector<std::int32_t> results(std::size_t n) const {
    return Vector<std::int32_t>(results_.data(), n);
  }
  /// Starts their copy to the host.
  void download(const ops::Context& context, std::size_t n);
  /// The downloaded tokens; waits for the device.
  const std::int32_t* drawn(const ops::Context& context) const;

 private:
  using Pinned = Kokkos::View<std::int32_t*, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;
  enum Part {
    token_part,
    position_part,
    table_of_part,
    place_part,
    drawn_part,
    id_part,
    number_part,
    segment_part,
    split_part,
    first_split_part,
    tile_part,
    table_part,  // last, since only its used part is copied
    parts
  };
  Vector<const std::int32_t> section(Part part, std::size_t n) const {
    return Vector<const std::int32_t>(device_.data() + first_[part], n);
  }
  template <class V>
  void write(Part part, const std::vector<V>& values);

  std::array<std::size_t, parts + 1> first_{};  // where each part begins
  Vector<std::int32_t> device_, results_;
  Pinned host_, drawn_tokens_;
  bool settled_ = false;
  std::size_t rows_ = 0, drawn_ = 0, singles_ = 0, segments_ = 0, splits_ = 0, tiles_ = 0,
              tables_ = 0;
};

}  // namespace tern::generate::detail
