// What a transformer requests from the arena.
#include <algorithm>

#include "base/error.hpp"
#include "model/detail/state.hpp"
#include "model/transformer.hpp"
#include "ops/ops.hpp"

namespace tern::model {
namespace {

/// Cuts matrices one after another out of a piece of memory; with none, counts.
template <class T>
struct Carver {
  T* data = nullptr;
  std::size_t used = 0;
  Matrix<T> matrix(std::size_t rows, std::size_t columns) {
    constexpr std::size_t step = Arena::alignment;  // elements, so bytes too
    Matrix<T> result(data ? data + used : nullptr, rows, columns);
    used += (rows * columns + step - 1) / step * step;
    return result;
  }
};

}  // namespace

std::size_t head_chunk_rows(std::size_t rows, std::size_t vocabulary, std::size_t element_bytes,
                            bool host) {
  constexpr std::size_t host_rows = 256, device_bytes = 128u << 20;
  const std::size_t most =
      host ? host_rows : std::max<std::size_t>(1, device_bytes / (vocabulary * element_bytes));
  const std::size_t chunks = (rows + most - 1) / most;
  return chunks == 0 ? 1 : (rows + chunks - 1) / chunks;
}

template <class T>
void Transformer<T>::allocate_states(Arena& arena) {
  const detail::StateOptions options{blocks_.batch, blocks_.tokens,
                                     blocks_.norm == ops::Norm::layernorm, blocks_.qk_norm,
                                     options_.training};
  if (!options_.training) return allocate_evaluation(arena, options);
  const auto stream = [&](const std::string& name) {
    return arena.matrix<T>(name, Term::activations, blocks_.rows(), blocks_.size.D);
  };
  if (options_.recompute)
    shared_ = detail::request_state<T>(arena, "layers", blocks_.size, options);
  const std::size_t passes = options_.passes * options_.in_flight;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const char* what = options_.passes > 1 ? "pass" : "micro-step";
    const std::string of_pass = passes > 1 ? fmt::format("{} {}/", what, pass) : "";
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const std::string label = fmt::format("{}layer {}", of_pass, l);
      inputs_.push_back(stream(label + "/input"));
      if (options_.recompute) continue;
      states_.push_back(detail::request_state<T>(arena, label, blocks_.size, options));
      states_.back().input = inputs_.back();
    }
    const auto vector = [&](const char* name) {
      return arena.vector<A>(of_pass + name, Term::activations, blocks_.rows());
    };
    Final final{stream(of_pass + "final norm/input"), {}, {}, {}};
    finals_.push_back(final);
    if (!share().last()) continue;
    final.output = stream(of_pass + "final norm/output");
    final.rstd = vector("final norm/rstd");
    if (options.layernorm) final.mean = vector("final norm/mean");
    finals_.back() = final;
  }
}

/// All passes and layers share one state. The states of several passes, which outlive a pass, have
/// places of their own.
template <class T>
void Transformer<T>::allocate_evaluation(Arena& arena, const detail::StateOptions& options) {
  const auto stream = [&](const char* name) {
    return arena.matrix<T>(name, Term::activations, blocks_.rows(), blocks_.size.D);
  };
  shared_ = detail::request_state<T>(arena, "layers", blocks_.size, options);
  shared_.input = shared_.middle = stream("residual stream");
  whole_ = shared_;
  if (options_.passes > 1) {
    latent_ = stream("latent");
    answer_ = stream("answer");
  }
  share_finals();
}

template <class T>
void Transformer<T>::share_finals() {
  const std::size_t N = blocks_.rows();
  finals_.assign(options_.passes,
                 {shared_.input, shared_.normed_ffn, shared_.mean2, shared_.rstd2});
  if (options_.passes == 1) return;
  for (Final& final : finals_) final.output = detail::narrow_rows(latent_, N);
  finals_.back().output = detail::narrow_rows(answer_, N);
}

/// The head's chunk of logits and the blocks' gradients are never alive together: one piece of
/// memory.
template <class T>
void Transformer<T>::allocate_workspace(Arena& arena) {
  std::size_t elements = 0;
  T* memory = nullptr;
  for (const bool carve : {false, true}) {
    if (carve) memory = arena.vector<T>("logits | gradients", Term::workspace, elements).data();
    Carver<T> of_head{memory}, of_block{memory};
    if (share().last()) {
      head_.logits = of_head.matrix(head_rows(), blocks_.size.W);
      if (options_.scored > 0) picked_ = of_head.matrix(options_.scored, blocks_.size.D);
    }
    if (options_.training && share().last()) {
      dfinished_ = of_head.matrix(blocks_.rows(), blocks_.size.D);
      if (options_.scored > 0) dpicked_ = of_head.matrix(options_.scored, blocks_.size.D);
    }
    if (options_.training) {
      blocks_.dattention = of_block.matrix(blocks_.rows(), blocks_.size.H * blocks_.size.E);
      blocks_.dqkv = of_block.matrix(blocks_.rows(), blocks_.size.qkv);
    }
    elements = std::max(of_head.used, of_block.used);
  }
  blocks_.experts.request(arena, blocks_.rows(), options_.passes * layers(), options_.training);
  if (options_.fp8) blocks_.fp8 = {arena, blocks_.fp8_elements(options_.training)};
  if (share().tensors > 1) allocate_exchange(arena);
  if (dropout_ || share().tensors > 1)
    blocks_.branch = arena.matrix<T>("branch", Term::workspace, blocks_.rows(), blocks_.size.D);
  if (!options_.training) return;
  blocks_.dstream =
      arena.matrix<T>("stream gradient", Term::workspace, blocks_.rows(), blocks_.size.D);
  blocks_.delta = arena.matrix<A>("attention delta", Term::workspace,
                                  blocks_.batch * blocks_.size.H, blocks_.tokens);
  blocks_.partial = arena.vector<A>("norm partial sums", Term::workspace,
                                    ops::norm_partials(std::max(blocks_.size.D, blocks_.size.E)));
}

template <class T>
std::size_t Transformer<T>::head_rows() const {
  constexpr bool host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
  if (options_.head_rows > 0) return options_.head_rows;
  return head_chunk_rows(options_.scored > 0 ? options_.scored : blocks_.rows(), blocks_.size.W,
                         sizeof(T), host);
}

/// Where tensor ranks bring the parts of a chunk of logits together.
template <class T>
void Transformer<T>::allocate_exchange(Arena& arena) {
  if (!share().last()) return;
  const std::size_t rows = head_rows(), ranks = share().tensors;
  head_.figures =
      arena.tensor3<A>("figures of rows", Term::workspace, ranks, rows, ops::row_figures);
  head_.lse = arena.vector<A>("log sums of rows", Term::workspace, rows);
  if (!options_.training)
    head_.gathered = arena.vector<T>("gathered logits", Term::workspace, rows * blocks_.size.V);
}

#define INSTANTIATE(T)                                                                    \
  template void Transformer<T>::allocate_states(Arena&);                                  \
  template void Transformer<T>::allocate_evaluation(Arena&, const detail::StateOptions&); \
  template void Transformer<T>::share_finals();                                           \
  template void Transformer<T>::allocate_workspace(Arena&);                               \
  template std::size_t Transformer<T>::head_rows() const;                                 \
  template void Transformer<T>::allocate_exchange(Arena&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)

}  // namespace tern::model
