#include "generate/detail/pass_buffers.hpp"

#include <cstring>

#include "base/error.hpp"

namespace tern::generate::detail {
namespace {

constexpr std::size_t line = 64;  // elements: every section begins aligned

}  // namespace

PassBuffers::PassBuffers(const Scheduler::Limits& limits, Arena& arena) {
  const std::array<std::size_t, parts> sizes{
      limits.rows,       limits.rows,         limits.rows,      limits.rows,
      limits.drawn,      2 * limits.drawn,    limits.drawn,     4 * limits.segments,
      4 * limits.splits, limits.segments + 1, 2 * limits.tiles, limits.tables};
  for (std::size_t p = 0; p < parts; ++p)
    first_[p + 1] = first_[p] + (sizes[p] + line - 1) / line * line;
  device_ = arena.vector<std::int32_t>("rows of a pass", Term::data, first_[parts]);
  results_ = arena.vector<std::int32_t>("drawn tokens", Term::data, limits.drawn);
  if (arena.measuring()) return;
  host_ = Pinned("rows of a pass", first_[parts]);
  drawn_tokens_ = Pinned("drawn tokens", limits.drawn);
}

template <class V>
void PassBuffers::write(Part part, const std::vector<V>& values) {
  TERN_REQUIRE(values.size() * sizeof(V) <= (first_[part + 1] - first_[part]) * sizeof(int),
               "{} values of part {}", values.size(), int(part));
  if (!values.empty()) std::memcpy(&host_(first_[part]), values.data(), values.size() * sizeof(V));
}

void PassBuffers::upload(const ops::Context& context, const Pass& pass) {
  write(token_part, pass.tokens);
  write(position_part, pass.positions);
  write(table_of_part, pass.table_of);
  write(place_part, pass.places);
  write(drawn_part, pass.drawn);
  write(id_part, pass.ids);
  write(number_part, pass.numbers);
  write(segment_part, pass.segments);
  write(split_part, pass.splits);
  write(first_split_part, pass.first_splits);
  write(tile_part, pass.tiles);
  write(table_part, pass.tables);
  rows_ = pass.rows(), drawn_ = pass.drawn.size(), singles_ = pass.singles;
  segments_ = pass.segments.size(), splits_ = pass.splits.size(), tiles_ = pass.tiles.size();
  tables_ = pass.tables.size(), settled_ = pass.settled;
  const std::size_t n = first_[table_part] + tables_;
  Kokkos::deep_copy(
      context.space, Vector<std::int32_t>(device_.data(), n),
      Kokkos::View<const std::int32_t*, Kokkos::SharedHostPinnedSpace, Unmanaged>(host_.data(), n));
}

ops::PagedRows PassBuffers::rows() const {
  const auto records = [&]<class V>(Part part, std::size_t n, V) {
    return Vector<const V>(reinterpret_cast<const V*>(section(part, n).data()), n);
  };
  return {singles_,
          records(segment_part, segments_, ops::Segment()),
          section(table_part, tables_),
          section(position_part, rows_),
          section(table_of_part, rows_),
          section(place_part, rows_),
          records(split_part, splits_, ops::Split()),
          section(first_split_part, singles_ + 1),
          records(tile_part, tiles_, ops::Piece()),
          settled_};
}

void PassBuffers::download(const ops::Context& context, std::size_t n) {
  if (n == 0) return;
  Kokkos::deep_copy(context.space,
                    Kokkos::View<std::int32_t*, Kokkos::SharedHostPinnedSpace, Unmanaged>(
                        drawn_tokens_.data(), n),
                    results(n));
}

const std::int32_t* PassBuffers::drawn(const ops::Context& context) const {
  context.fence("drawn tokens");
  return drawn_tokens_.data();
}

}  // namespace tern::generate::detail
