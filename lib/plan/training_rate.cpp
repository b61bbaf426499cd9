#include "plan/training_rate.hpp"

#include <algorithm>

#include "block/shared.hpp"
#include "deck/choices.hpp"
#include "deck/objective_kind.hpp"
#include "objective/objective.hpp"
#include "objective/refinement.hpp"
#include "optimizer/kind.hpp"
#include "parameters/model_shard.hpp"
#include "plan/detail/devices.hpp"
#include "plan/detail/operations.hpp"

namespace tern::plan {
namespace {

using detail::Map, detail::Operations, detail::Team;

/// Fraction of an overlapped collective's time that slows the work it overlaps (fully sharded, two
/// H200, 2026-11-22, 350M GPT and Qwen3-4B).
constexpr double exposed = 0.55;
/// Host time between two steps, s.
constexpr double host = 0.17e-3;
/// Fraction of a step that ranks wait for the slowest one (two H200, 2026-11-22).
constexpr double uneven = 0.015;

double number(std::size_t value) { return static_cast<double>(value); }
double number(std::int64_t value) { return static_cast<double>(value); }

/// Work of one pipeline stage.
class Stage {
 public:
  Stage(const deck::Deck& deck, const Operations& operations, const workload::Layout& layout,
        const comm::Extents& extents, const RowContents& contents, int stage)
      : deck_(deck),
        m_(deck.model),
        op_(operations),
        extents_(extents),
        share_{0, static_cast<std::size_t>(extents.tensor), static_cast<std::size_t>(stage),
               static_cast<std::size_t>(extents.pipeline), nullptr},
        rows_(number(layout.per_rank) * number(layout.tokens)),
        scored_(number(layout.per_rank) * scored_positions(deck, contents)),
        full_(optimizer::fully_sharded(deck, extents.data)) {
    const Range held = model::layers_of(m_, share_);
    layers_ = number(held.count);
    heads_ = number(m_.heads) / extents.tensor;
    kv_heads_ = std::max(1.0, number(m_.kv_heads) / extents.tensor);
    ffn_ = number(m_.experts > 0 ? m_.experts_per_token * m_.expert_hidden : m_.ffn_hidden) /
           extents.tensor;
    up_ = gated(deck::activation_of(m_)) ? 2 * ffn_ : ffn_;
    const bool spans = deck::kind_of(deck).diffuses || contents.samples > 1;
    attention_ = {rows_ * heads_, seen_keys(deck, contents), number(layout.tokens),
                  number(m_.head_dim), spans};
  }

  StepTime micro_batch() const {
    const double steps = number(deck::scored_steps(deck_));
    const double inner = number(model::passes_of(m_));
    StepTime pass = (layers_ - 1) * block(rows_);
    pass += block(last_rows());
    pass.passes +=
        op_.pass((inner > 1 ? 18 : 6) * stream(), 9);  // final norm; states and their sums
    StepTime time = steps * inner * pass;
    if (share_.last()) time.head += steps * head();
    if (share_.first()) time.passes += embedding();
    time.passes += op_.pass(0, 10);  // copies of the batch to the device
    if (full_) time.exchange += gather_and_sum(inner * steps);
    if (extents_.pipeline > 1) time.exchange += op_.exchange(stream(), stages(), 2);
    return time;
  }

  /// Work done once per step.
  StepTime update() const {
    StepTime time;
    const double all = parameters(), owned = deck_.parallel.shard == "none" ? all : all / ranks();
    if (!deck::recomputes(deck_.precision))
      time.passes += number(deck::scored_steps(deck_) * model::passes_of(m_)) * layers_ * first();
    time.optimizer = host + op_.pass(4 * (full_ ? owned : all), 4) + op_.pass(4 * owned, 6) +
                     op_.pass((deck_.optimizer.ema > 0 ? 12 : 0) * owned, 1) + change(owned);
    if (extents_.data > 1) time.exchange = exchange(all);
    if (extents_.pipeline > 1 && m_.tie_embeddings)
      time.exchange += op_.exchange(4 * vocabulary() * width(), stages());
    return time;
  }

 private:
  double width() const { return number(m_.hidden); }
  double vocabulary() const { return number(m_.vocabulary) / extents_.tensor; }
  double ranks() const { return extents_.data; }
  Team data() const { return {extents_.data, extents_.ranks(), extents_.replica()}; }
  Team tensor() const { return {extents_.tensor, extents_.tensor}; }
  /// Two stages, each rank with its counterpart; between nodes if a replica takes more than one.
  Team stages() const { return {2, extents_.replica(), extents_.replica()}; }
  double values_width() const { return kv_heads_ * number(m_.head_dim); }
  double stream() const { return stream(rows_); }  // bytes of the residual stream
  double stream(double rows) const { return rows * width() * op_.bytes(); }

  std::vector<Map> attention_maps() const {
    const double E = number(m_.head_dim);
    return {{width(), (heads_ + 2 * kv_heads_) * E}, {heads_ * E, width()}};
  }
  std::vector<Map> ffn_maps() const { return {{width(), up_}, {ffn_, width()}}; }

  double of_matrices() const {  // parameters per layer
    double sum = 0;
    for (const Map& map : attention_maps()) sum += map.in * map.out;
    const double each = m_.experts > 0 ? number(m_.experts) / number(m_.experts_per_token) : 1;
    for (const Map& map : ffn_maps()) sum += each * map.in * map.out;
    return sum;
  }
  double of_ends() const {  // parameters of embedding and head
    const double one = vocabulary() * width();
    const double values = number(m_.value_embeddings) * number(m_.vocabulary) * values_width();
    return (m_.tie_embeddings || extents_.pipeline > 1 ? one : 2 * one) + values;
  }
  double parameters() const {
    const bool end = share_.first() || share_.last();
    return layers_ * of_matrices() + (end ? of_ends() : 0);
  }

  /// Rows that the last block computes after its attention.
  double last_rows() const {
    model::TransformerOptions options{};
    const std::size_t scored = objective::scored_positions(deck_);
    if (scored < objective::row_positions(deck_)) options.scored = scored;
    options.weights_later = !share_.first() && workload::weights_later(deck_);
    return model::computes_scored_only(m_, share_, options) ? std::min(scored_, rows_) : rows_;
  }

  /// `rows`: of its feed-forward half and the map before it.
  StepTime block(double rows) const {
    StepTime time = forward(rows);
    time += backward(rows);
    if (deck::recomputes(deck_.precision)) {
      time += again(rows);
      time.passes += 2 * first();
    }
    const bool overlapped = model::overlaps(m_, share_.tensors, deck_.precision.compute == "fp8",
                                            m_.dropout, rows < rows_);
    if (extents_.tensor > 1)
      time.exchange += op_.overlapped_exchange(
          2 * stream() * (extents_.tensor - 1) / extents_.tensor, tensor(), 4, !overlapped);
    return time;
  }

  StepTime forward(double rows) const {
    StepTime time;
    time.products =
        op_.forward(attention_maps()[0], rows_) + op_.forward(attention_maps()[1], rows);
    time.products += ffn([&](const Map& map) { return op_.forward(map, rows); }, 1);
    time.attention = op_.forward(attention_);
    // Two norms; the residual stream is copied, and read by the product that adds a branch to it.
    time.passes = op_.pass(5 * stream() + 5 * stream(rows), 4) + heads(2, 3) +
                  op_.pass(gate(rows, 3, applied_by_products() ? 1.5 : 2), 1) + connections(3, 2);
    time.passes += 2 * dropout(rows, in_norms() ? 1 : 3);
    if (rows < rows_) time.passes += op_.pass(4 * stream(rows), 2);
    return time;
  }

  /// Recomputed forward: backward needs the input of a block's last product, not its output.
  StepTime again(double rows) const {
    StepTime time = forward(rows);
    if (m_.experts == 0) time.products -= op_.forward(ffn_maps().back(), rows);
    return time;
  }

  StepTime backward(double rows) const {
    StepTime time;
    time.products =
        op_.backward(attention_maps()[0], rows_) + op_.backward(attention_maps()[1], rows);
    time.products += ffn([&](const Map& map) { return op_.backward(map, rows); }, 2);
    time.attention = op_.backward(attention_);
    time.passes = op_.pass(4 * stream() + 4 * stream(rows), 6) +
                  heads(undone_by_attention() ? 0 : 2, 3) +
                  op_.pass(gate(rows, 5, applied_by_products() ? 1.9 : 3), 1) + connections(6, 6);
    time.passes += 2 * dropout(rows, in_norms() && !deck::recomputes(deck_.precision) ? 1 : 2);
    if (rows < rows_) time.passes += op_.pass(6 * stream(rows) + 2 * stream(), 5);
    return time;
  }

  /// Of the first micro-batch of a step, in fp8.
  double first() const {
    double time = 0;
    std::vector<Map> maps = attention_maps();
    if (m_.experts == 0)
      for (const Map& map : ffn_maps()) maps.push_back(map);
    for (const Map& map : maps) time += op_.first(map, rows_);
    return time;
  }

  template <class Product>
  double ffn(const Product& product, double products) const {
    double time = 0;
    for (const Map& map : ffn_maps())
      time += m_.experts > 0 ? op_.expert_product(products * 2 * rows_ * map.in * map.out)
                             : product(map);
    return time;
  }
  /// Streams read and written for a block's connections; half of the blocks are skipped to.
  double connections(double shortcut, double skip) const {
    const double streams =
        (m_.input_shortcut ? shortcut : 0) + (m_.skip_connections ? skip / 2 : 0);
    return streams > 0 ? op_.pass(streams * stream(), 2) : 0;
  }
  /// Of the stream, if the deck drops any: `streams` read and written.
  double dropout(double rows, double streams) const {
    return deck_.model.dropout > 0 ? op_.dropout(rows * width(), streams) : 0;
  }
  bool in_half() const {
    return deck_.precision.compute == "bf16" || deck_.precision.compute == "fp16";
  }
  /// GELU, by the products before and after it (ops::linear_activation_forward).
  bool applied_by_products() const {
    return in_half() && deck::activation_of(m_) == Activation::gelu;
  }
  /// Dropout, by the norms (model::BlockShared::fuses_next_dropout).
  bool in_norms() const { return op_.bytes() == 2 && extents_.tensor == 1; }
  /// A rotation, by attention's backward (ops/cuda/attention.cpp).
  bool undone_by_attention() const {
    const bool narrow = m_.head_dim == 64, wide = m_.head_dim == 128 && !attention_.spans;
    return in_half() && !m_.qk_norm && (narrow || wide);
  }
  /// RoPE and norms of heads: `rotated` and `normed` passes over queries and keys.
  double heads(double rotated, double normed) const {
    const double bytes = rows_ * (heads_ + kv_heads_) * number(m_.head_dim) * op_.bytes();
    return (deck::position_of(m_) == deck::Position::rope ? op_.pass(rotated * bytes) : 0) +
           (m_.qk_norm ? op_.pass(normed * bytes, 3) : 0);
  }
  /// Bytes of the activation; gated ones read or write twice as much on one side.
  double gate(double rows, double with_gate, double plain) const {
    return (gated(deck::activation_of(m_)) ? with_gate : plain) * rows * ffn_ * op_.bytes();
  }

  /// Logits are computed in chunks, read for the loss, and replaced with gradients in place. In fp8,
  /// gradients are rounded in a second pass, if one rank has the whole vocabulary.
  double head() const {
    const Map map{width(), vocabulary()};
    const double forward = op_.product(2 * scored_ * map.in * map.out, map.in);
    const double passes = op_.pass(3 * scored_ * map.out * op_.bytes(), 6);
    if (extents_.tensor == 1) return forward + op_.backward(map, scored_) + passes;
    return 3 * forward + passes +
           op_.exchange(2 * stream() * (extents_.tensor - 1) / extents_.tensor, tensor());
  }

  double embedding() const {
    const double values = 2 * number(m_.value_embeddings) * rows_ * values_width() * op_.bytes();
    return op_.pass(6 * stream(), 6) + 2 * dropout(rows_, 2) +
           (values > 0 ? op_.pass(8 * values, 6) : 0);
  }

  /// Per pass, two all-gathers of each layer and a reduce-scatter of its gradients, overlapped;
  /// the gradients are added to the rank's part. With experts, their windows are zeroed.
  double gather_and_sum(double passes) const {
    const double part = of_matrices() * (ranks() - 1) / ranks();
    const double collectives =
        2 * op_.exchange(part * op_.bytes(), data()) + op_.exchange(part * 4, data());
    const double zeroed = m_.experts > 0 ? op_.pass(4 * of_matrices()) : 0;
    const double kernels = zeroed + op_.pass(12 * of_matrices() / ranks());
    return passes * layers_ * (exposed * collectives + kernels);
  }

  double exchange(double all) const {
    const double part = (full_ ? of_ends() : all) * (ranks() - 1) / ranks();
    if (deck_.parallel.shard == "none") return op_.exchange(2 * 4 * part, data());
    return op_.exchange(4 * part, data()) + op_.exchange(op_.bytes() * part, data());
  }

  double change(double owned) const {
    const double E = number(m_.head_dim), D = width(), whole = parameters();
    const optimizer::Cost cost = optimizer::kind(deck_.optimizer)
                                     .cost({owned,
                                            layers_ * of_matrices() / whole * owned,
                                            op_.bytes() < 4 ? op_.bytes() : 0,
                                            {{D, heads_ * E},
                                             {D, kv_heads_ * E},
                                             {D, kv_heads_ * E},
                                             {heads_ * E, D},
                                             {D, ffn_},
                                             {ffn_, D},
                                             {D, up_ - ffn_}},
                                            layers_ * owned / whole});
    double time = 0;
    for (const optimizer::Cost::Pass& pass : cost.passes)
      time += op_.pass(pass.bytes, pass.kernels);
    return time + op_.newton_schulz(cost.product_flops, cost.groups);
  }

  const deck::Deck& deck_;
  const deck::Model& m_;
  const Operations& op_;
  comm::Extents extents_;
  model::ModelShard share_;
  double rows_, scored_;
  detail::Attention attention_;
  bool full_;
  double layers_, heads_, kv_heads_, ffn_, up_;
};

}  // namespace

StepTime& StepTime::operator+=(const StepTime& other) {
  products += other.products;
  attention += other.attention;
  passes += other.passes;
  head += other.head;
  optimizer += other.optimizer;
  exchange += other.exchange;
  waiting += other.waiting;
  return *this;
}

StepTime operator*(double factor, StepTime time) {
  for (double* part : {&time.products, &time.attention, &time.passes, &time.head, &time.optimizer,
                       &time.exchange, &time.waiting})
    *part *= factor;
  return time;
}

std::optional<StepTime> step_time(const deck::Deck& deck, const workload::Layout& layout,
                                  const comm::Extents& extents, const RowContents& contents,
                                  const PlannedDevice& device) {
  if (!device.rates()) return std::nullopt;
  const Operations operations(deck, device, extents.ranks());
  StepTime slowest, update;
  double through = 0;  // one micro-batch through all stages
  for (int stage = 0; stage < extents.pipeline; ++stage) {
    const Stage one(deck, operations, layout, extents, contents, stage);
    const StepTime micro = one.micro_batch(), after = one.update();
    through += micro.total();
    // One stage's gradients of weights per stage are hidden; they are a third of the products.
    if (extents.pipeline > 1 && workload::weights_later(deck)) through -= micro.products / 3;
    if (micro.total() > slowest.total()) slowest = micro;
    if (after.total() > update.total()) update = after;
  }
  StepTime time = number(layout.accumulation) * slowest;
  time.waiting = through - slowest.total() + (extents.ranks() > 1 ? uneven * time.total() : 0);
  time += update;
  return time;
}

std::optional<double> estimated_rate(const deck::Deck& deck, const workload::Layout& layout,
                                     const comm::Extents& extents, const RowContents& contents,
                                     const PlannedDevice& device) {
  const auto time = step_time(deck, layout, extents, contents, device);
  if (!time) return std::nullopt;
  return layout.steps.mean() * contents.tokens() / time->total();
}

}  // namespace tern::plan
