/// Sampling of the next token, one team per row, without sorting and without workspace.
/// Probabilities are fixed-point integers (40 fractional bits, the largest is 1), so sums do not
/// depend on their order: the same draw for any team size. The k-th largest logit, and the one at
/// which the nucleus (Holtzman et al. 2020) is full, are found by radix selection, eight bits of
/// the logit at a time.
///
/// Order of tokens: decreasing logit, ties by increasing index. top_k keeps the first k, then top_p
/// the shortest prefix of those whose probability reaches top_p. A logit of -infinity or NaN has
/// probability 0, +infinity takes all of it. A row without a logit above -infinity gives -1.
#include "ops/decode/sampling.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "ops/core/portable/loops.hpp"

namespace tern::ops {
using namespace portable;
namespace {
using detail::Team;
using Weight = std::uint64_t;

constexpr int digit_bits = 8, bins = 1 << digit_bits, segments = 256;
constexpr std::size_t max_vocabulary = std::size_t{1} << 24;  // sums of weights stay below 2^64

/// Unsigned integer that orders as the logit does; -0 is 0, NaN is -infinity.
template <class A>
struct Order {
  using Key = std::conditional_t<sizeof(A) == 8, std::uint64_t, std::uint32_t>;
  static constexpr int bits = 8 * sizeof(A);
  static constexpr Key sign = Key{1} << (bits - 1);

  KOKKOS_INLINE_FUNCTION static Key key(A value) {
    if (!(value == value)) value = -Kokkos::Experimental::infinity_v<A>;
    value += A(0);
    Key word;
    memcpy(&word, &value, sizeof word);
    return word & sign ? ~word : word | sign;
  }
  KOKKOS_INLINE_FUNCTION static A value(Key key) {
    const Key word = key & sign ? key ^ sign : ~key;
    A number;
    memcpy(&number, &word, sizeof number);
    return number;
  }
};

/// Candidate tokens: those above `last`, and the first `ties` of those equal to it.
template <class Key>
struct Kept {
  Key last;
  Weight ties;
};

/// Row b draws with (request, position), or with (ids[b], numbers[b]) where there are numbers.
struct DrawKeys {
  Vector<const std::int32_t> request;
  int position = 0;
  Vector<const std::int32_t> numbers = {};

  KOKKOS_INLINE_FUNCTION Random4 words(std::uint64_t seed, int b) const {
    const bool own = numbers.extent(0) > 0;
    const auto lower = static_cast<std::uint32_t>(request(own ? 2 * b : b));
    const auto upper = own ? static_cast<std::uint32_t>(request(2 * b + 1)) : 0u;
    return philox(seed, Stream::sampling, upper, lower,
                  static_cast<std::uint32_t>(own ? numbers(b) : position));
  }
};

template <class T>
struct SampleKernel {
  using A = Accumulate<T>;
  using Key = typename Order<A>::Key;
  Sampling options;
  Matrix<const T> logits;
  int vocabulary;
  DrawKeys keys;
  Vector<std::int32_t> token;

  struct Row {
    const T* logits;
    Weight* bins;           // (bins) in scratch
    Weight *above, *equal;  // (segments) in scratch
    A largest;
    double temperature;

    KOKKOS_INLINE_FUNCTION Key key(int i) const { return Order<A>::key(static_cast<A>(logits[i])); }
    KOKKOS_INLINE_FUNCTION Weight weight(Key of) const {
      const A logit = Order<A>::value(of);
      if (logit == largest) return Weight{1} << 40;  // also infinity, where the difference is NaN
      const double ratio =
          Kokkos::exp((static_cast<double>(logit) - static_cast<double>(largest)) / temperature);
      return static_cast<Weight>(ratio * 0x1p40 + 0.5);
    }
  };

  static std::size_t scratch_bytes() { return (bins + 2 * segments) * sizeof(Weight) + 8; }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int b = team.league_rank();
    auto* scratch = static_cast<Weight*>(
        team.team_scratch(0).get_shmem_aligned((bins + 2 * segments) * sizeof(Weight), 8));
    Row row{&logits(b, 0),      scratch, scratch + bins, scratch + bins + segments, 0,
            options.temperature};
    Key top = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, vocabulary),
        [&](int i, Key& most) { most = Kokkos::max(most, row.key(i)); }, Kokkos::Max<Key>(top));
    row.largest = Order<A>::value(top);
    const bool nothing = row.largest == -Kokkos::Experimental::infinity_v<A>;
    const int chosen = nothing                    ? -1
                       : options.temperature == 0 ? first_equal(team, row, top)
                                                  : draw(team, row, kept(team, row), b);
    Kokkos::single(Kokkos::PerTeam(team), [&] { token(b) = chosen; });
  }

  KOKKOS_FUNCTION int first_equal(const Team& team, const Row& row, Key top) const {
    int first = vocabulary;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, vocabulary),
        [&](int i, int& least) {
          if (row.key(i) == top) least = Kokkos::min(least, i);
        },
        Kokkos::Min<int>(first));
    return first;
  }

  KOKKOS_FUNCTION Kept<Key> kept(const Team& team, const Row& row) const {
    Kept<Key> all{0, 0};  // every key is above 0
    if (options.top_k > 0 && options.top_k < vocabulary) {
      const auto one = [](Key) { return Weight{1}; };
      all = select(team, row, static_cast<Weight>(options.top_k), one);
    }
    if (options.top_p >= 1) return all;
    Weight total = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, vocabulary),
        [&](int i, Weight& sum) {
          const Key key = row.key(i);
          if (key > all.last) sum += row.weight(key);
        },
        total);
    if (all.ties > 0) total += all.ties * row.weight(all.last);
    const double reach = Kokkos::ceil(options.top_p * static_cast<double>(total));
    const Weight target = reach < 1 ? 1 : Kokkos::min(total, static_cast<Weight>(reach));
    return select(team, row, target, [&](Key key) { return row.weight(key); });
  }

  /// Shortest prefix of the order whose weights reach target.
  template <class F>
  KOKKOS_FUNCTION Kept<Key> select(const Team& team, const Row& row, Weight target,
                                   const F& weight) const {
    Key last = 0;      // the digits found so far
    Weight above = 0;  // weight of all tokens above them
    for (int shift = Order<A>::bits - digit_bits; shift >= 0; shift -= digit_bits) {
      count_digits(team, row, last, shift, weight);
      Kept<Key> found{0, 0};
      Kokkos::single(
          Kokkos::PerTeam(team),
          [&](Kept<Key>& result) {
            int digit = bins - 1;
            Weight before = above;
            for (; digit > 0 && before + row.bins[digit] < target; --digit)
              before += row.bins[digit];
            result = {static_cast<Key>(last | static_cast<Key>(digit) << shift), before};
          },
          found);
      last = found.last;
      above = found.ties;
      team.team_barrier();  // the bins are cleared next
    }
    const Weight each = weight(last);
    return {last, (target - above + each - 1) / each};
  }

  /// bins[d] = weight of the tokens with digit d at `shift` and the digits of `last` above it.
  template <class F>
  KOKKOS_FUNCTION void count_digits(const Team& team, const Row& row, Key last, int shift,
                                    const F& weight) const {
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, bins), [&](int d) { row.bins[d] = 0; });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, vocabulary), [&](int i) {
      const Key key = row.key(i);
      if (((key ^ last) >> shift) >= bins) return;
      Weight* bin = row.bins + ((key >> shift) & (bins - 1));
      if constexpr (detail::on_host)
        *bin += weight(key);  // a team of one
      else
        Kokkos::atomic_add(bin, weight(key));  // integers: any order gives the same sum
    });
    team.team_barrier();
  }

  /// First token, in vocabulary order, at which the cumulative kept weight exceeds a uniform number
  /// times the total.
  KOKKOS_FUNCTION int draw(const Team& team, const Row& row, const Kept<Key>& keep, int b) const {
    const int length = (vocabulary + segments - 1) / segments;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, segments), [&](int s) {
      Weight above = 0, equal = 0;
      const int end = Kokkos::min(vocabulary, (s + 1) * length);
      for (int i = s * length; i < end; ++i) {
        const Key key = row.key(i);
        if (key > keep.last) above += row.weight(key);
        equal += key == keep.last;
      }
      row.above[s] = above;
      row.equal[s] = equal;
    });
    team.team_barrier();
    int chosen = -1;
    Kokkos::single(
        Kokkos::PerTeam(team), [&](int& result) { result = walk(row, keep, b, length); }, chosen);
    return chosen;
  }

  KOKKOS_FUNCTION int walk(const Row& row, const Kept<Key>& keep, int b, int length) const {
    const Weight tie = keep.ties > 0 ? row.weight(keep.last) : 0;
    const auto sum = [&](Weight above, Weight equal) {
      return above + tie * Kokkos::min(equal, keep.ties);
    };
    Weight above = 0, equal = 0;
    for (int s = 0; s < segments; ++s) above += row.above[s], equal += row.equal[s];
    const Weight total = sum(above, equal);
    const Random4 words = keys.words(options.seed, b);
    const double uniform =
        static_cast<double>(((static_cast<std::uint64_t>(words.word[0]) << 32) | words.word[1]) >>
                            11) *
        0x1p-53;
    const Weight drawn =
        Kokkos::min(total - 1, static_cast<Weight>(uniform * static_cast<double>(total)));
    above = equal = 0;
    int s = 0;
    while (sum(above + row.above[s], equal + row.equal[s]) <= drawn)
      above += row.above[s], equal += row.equal[s], ++s;
    for (int i = s * length;; ++i) {
      const Key key = row.key(i);
      if (key > keep.last) above += row.weight(key);
      equal += key == keep.last;
      if (sum(above, equal) > drawn) return i;
    }
  }
};

template <class T>
void require_options(const Sampling& options, Matrix<const T> logits, std::size_t vocabulary) {
  TERN_REQUIRE(vocabulary > 0 && vocabulary <= logits.extent(1) && vocabulary <= max_vocabulary,
               "vocabulary {}, logits {}", vocabulary, logits.extent(1));
  TERN_REQUIRE(options.temperature >= 0 && options.top_k >= 0, "temperature {}, top_k {}",
               options.temperature, options.top_k);
}

template <class T>
void launch(const Context& context, const Sampling& options, Matrix<const T> logits,
            std::size_t vocabulary, const DrawKeys& keys, Vector<std::int32_t> token) {
  const int rows = static_cast<int>(logits.extent(0));
  if (rows == 0) return;
  Kokkos::TeamPolicy<Device> policy(context.space, rows, detail::on_host ? 1 : 256);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(SampleKernel<T>::scratch_bytes())));
  Kokkos::parallel_for("tern::sample", policy,
                       SampleKernel<T>{options, logits, static_cast<int>(vocabulary), keys, token});
}

}  // namespace

template <class T>
void Sample<T>::check() const {
  require_options<T>(options, logits, vocabulary);
}

template <class T>
void Sample<T>::portable(const Context& context, const Sample& call) {
  launch<T>(context, call.options, call.logits, call.vocabulary, {call.request, call.position},
            call.token);
}

template <class T>
void SampleRows<T>::check() const {
  const std::size_t rows = logits.extent(0);
  TERN_REQUIRE(ids.extent(0) == 2 * rows && numbers.extent(0) == rows && token.extent(0) >= rows,
               "{} rows, {} halves of ids, {} numbers", rows, ids.extent(0), numbers.extent(0));
  require_options<T>(options, logits, vocabulary);
}

template <class T>
void SampleRows<T>::portable(const Context& context, const SampleRows& call) {
  launch<T>(context, call.options, call.logits, call.vocabulary, {call.ids, 0, call.numbers},
            call.token);
}

TERN_INSTANTIATE_PORTABLE(Sample)
TERN_INSTANTIATE_PORTABLE(SampleRows)

}  // namespace tern::ops
