// Construction of a transformer and its requests from the arena.
#include <algorithm>

#include "base/error.hpp"
#include "model/detail/layer_stack.hpp"
#include "ops/ops.hpp"
#include "parameters/full_sharding.hpp"

namespace tern::model::detail {

template <class T>
LayerStack<T>::LayerStack(const deck::Model& model, const ParameterTree& tree,
                          const Parameters<T>& parameters, const TransformerOptions& asked,
                          Arena& arena)
    : options(asked),
      size(model, tree.share()),
      first_layer(layers_of(model, tree.share()).first),
      full_sharding(parameters.full_sharding),
      shared(model, tree.share(), asked.training || asked.overlapped,
             {asked.training, asked.fp8, asked.fp8_weights, asked.fp8_inputs}, parameters, arena),
      block(model, tree.share(), shared),
      norm(model, shared),
      recursion(model, tree, parameters, asked, shared, arena),
      connections(model, tree, parameters, asked, arena),
      values(model, tree, parameters, asked, arena),
      computes_scored_only_(model::computes_scored_only(model, tree.share(), asked)) {
  TERN_REQUIRE(passes() == 1 || (asked.in_flight == 1 && share().stages == 1),
               "{} passes over a pipeline of {} stages", passes(), share().stages);
  TERN_REQUIRE(asked.connected == 1 || (asked.training && passes() > 1),
               "{} connected steps of {} passes", asked.connected, passes());
  TERN_REQUIRE(
      !asked.weights_later || (asked.training && passes() == 1 && !asked.recompute && !asked.fp8 &&
                               !block.has_experts() && tree.share().tensors == 1),
      "weights_later with several passes or tensor ranks, recomputation, fp8 or experts");
  TERN_REQUIRE(!asked.training || parameters.gradient.extent(0) > 0, "training without gradients");
  const Binder<T> binder(tree, parameters);
  embedding = Embedding<T>::bind(model, binder, share());
  const Range held = layers_of(model, share());
  for (std::size_t l = held.first; l < held.end(); ++l)
    layers_.push_back(
        block.bind(binder, shared.precision, block_name(static_cast<std::int64_t>(l))));
  if (full_sharding && asked.training && all_matrices_are_maps(tree)) {
    shared.precision.overwrite_weight_gradients();
    full_sharding->expect_overwritten_gradients();
  }
  visits_ = visits_of(model, layers());
  final_norm = binder.gain("model/norm");
  if (share().last()) head.map = Head<T>::bind(model, binder);
  head.first = share().tensor * size.W;
  block.attention.request_table(arena, asked.positions > 0 ? asked.positions : asked.tokens);
  if (asked.training)
    allocate_training(arena);
  else
    allocate_evaluation(arena);
  carve_workspace(arena);
  allocate_workspace(arena, model);
}

template <class T>
bool LayerStack<T>::all_matrices_are_maps(const ParameterTree& tree) const {
  std::size_t declared = 0;
  for (const Parameter& p : tree.parameters())
    if (p.layer >= 0 && p.matrix()) declared += p.count;
  return shared.precision.weights() == declared;
}

template <class T>
void LayerStack<T>::allocate_training(Arena& arena) {
  const std::size_t N = sequences().rows();
  const std::size_t all = passes() * std::max(options.in_flight, options.connected);
  const auto stream = [&](const std::string& name) {
    return arena.matrix<T>(name, Term::activations, N, size.D);
  };
  if (options.recompute) shared_ = block.request(arena, "layers", sequences(), true);
  for (std::size_t pass = 0; pass < all; ++pass) {
    const char* what = passes() > 1 ? "pass" : "micro-batch";
    const std::string of_pass = all > 1 ? fmt::format("{} {}/", what, pass) : "";
    for (std::size_t l = 0; l < layers(); ++l) {
      const std::string label = fmt::format("{}layer {}", of_pass, l);
      inputs_.push_back(stream(label + "/input"));
      if (options.recompute) continue;
      saved_.push_back(block.request(arena, label, sequences(), true));
      saved_.back().input = inputs_.back();
    }
    if (options.weights_later)
      last_dqkv_.push_back(
          arena.matrix<T>(of_pass + "last layer/qkv gradient", Term::activations, N, size.qkv));
    if (results() == 1 && !recursion.answers(pass % passes())) continue;
    finals_.push_back({stream(of_pass + "final norm/input"), {}, {}});
    if (!share().last()) continue;
    finals_.back().output = stream(of_pass + "final norm/output");
    finals_.back().saved = norm.request(arena, of_pass + "final norm", N);
  }
}

/// All passes and layers share one Saved.
template <class T>
void LayerStack<T>::allocate_evaluation(Arena& arena) {
  const auto stream = [&](const char* name) {
    return arena.matrix<T>(name, Term::activations, sequences().rows(), size.D);
  };
  shared_ = block.request(arena, "layers", sequences(), false);
  shared_.input = shared_.middle = stream("residual stream");
  if (results() == 1) return;
  latent_ = stream("latent");
  answer_ = stream("answer");
}

/// The head's chunk of logits and the blocks' gradients are never live together: they share memory.
template <class T>
void LayerStack<T>::carve_workspace(Arena& arena) {
  const std::size_t N = sequences().rows();
  std::size_t elements = 0;
  T* memory = nullptr;
  for (const bool carve : {false, true}) {
    if (carve) memory = arena.vector<T>("logits | gradients", Term::workspace, elements).data();
    Carver<T> of_head{memory}, of_block{memory};
    if (share().last()) {
      head.logits = of_head.matrix(head_rows(), size.W);
      if (options.scored > 0 && !computes_scored_only_)
        picked = of_head.matrix(options.scored, size.D);
    }
    if (options.training && share().last()) {
      if (options.connected == 1) dfinished = {of_head.matrix(N, size.D)};
      if (options.scored > 0 && !computes_scored_only_)
        dpicked = of_head.matrix(options.scored, size.D);
    }
    if (options.training)
      block.attention.carve_workspace(of_block, sequences(), options.weights_later);
    elements = std::max(of_head.used, of_block.used);
  }
}

template <class T>
void LayerStack<T>::allocate_workspace(Arena& arena, const deck::Model& model) {
  const std::size_t N = sequences().rows();
  const bool training = options.training, dropout = model.dropout > 0 && training;
  block.request_workspace(arena, sequences(), visits_.size(), training, options.weights_later);
  const bool whole_head = share().last() && share().tensors == 1;
  shared.precision.request(arena,
                           {N, !full_sharding, whole_head ? head_rows() : 0, {size.D, size.W}});
  head.fp8 = shared.precision.head();
  if (training) shared.dstream = shared.precision.request_scale(arena, "stream gradient");
  if (share().tensors > 1 && share().last())
    head.request_exchange(arena, head_rows(), share().tensors, size.V, training);
  shared.fuses_next_dropout =
      dropout && share().tensors == 1 && !options.recompute && !options.weights_later;
  if (dropout || share().tensors > 1)
    shared.branch = arena.matrix<T>("branch", Term::workspace, N, size.D);
  if (!training) return;
  if (share().tensors == 2) {
    const auto slots =
        arena.matrix<T>("other rank's parts", Term::workspace, comm::PartExchange::slots,
                        shared.sums.slot_rows(N, options.tokens) * size.D);
    if (!arena.measuring() && share().mesh) shared.sums.exchange_through(slots);
  }
  if (!options.weights_later)
    dstream = arena.matrix<T>("stream gradient", Term::workspace, N, size.D);
  for (std::size_t step = 0; options.connected > 1 && step < options.connected; ++step)
    dfinished.push_back(
        arena.matrix<T>(fmt::format("step {} gradient", step), Term::workspace, N, size.D));
  shared.partial = arena.vector<A>("norm partial sums", Term::workspace,
                                   ops::norm_partials(std::max(size.D, size.E)));
}

template <class T>
std::size_t LayerStack<T>::head_rows() const {
  constexpr bool host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
  if (options.head_rows > 0) return options.head_rows;
  return ops::head_chunk_rows(options.scored > 0 ? options.scored : sequences().rows(), size.W,
                              sizeof(T), host);
}

#define INSTANTIATE(T)                                                         \
  template LayerStack<T>::LayerStack(const deck::Model&, const ParameterTree&, \
                                     const Parameters<T>&, const TransformerOptions&, Arena&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::model::detail
