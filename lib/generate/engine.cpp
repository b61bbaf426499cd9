#include "generate/engine.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "generate/detail/pass_buffers.hpp"
#include "generate/detail/scheduler.hpp"

namespace tern::generate {
namespace {

model::DecoderOptions decoder_options(const EngineOptions& options,
                                      const model::ModelShard& share) {
  const auto limits = detail::Scheduler::limits(options, Engine<float>::page_tokens);
  return {.rows = limits.rows,
          .positions = options.max_model_len,
          .head_rows = share.tensors > 1 ? limits.drawn : 1,
          .fp8_weights = options.fp8_weights,
          .fp8_inputs = options.fp8_inputs,
          .overlapped = true};
}

EngineOptions resolved(EngineOptions options, const deck::Model& model, std::size_t stages,
                       std::size_t max_pages) {
  if (model.inner_steps > 0 && options.steps == 0)
    user_error(
        "&model inner_steps = {}: a recursive model cannot answer a file of requests; set "
        "&generation prompt instead of input",
        model.inner_steps);
  options.steps = std::max<std::size_t>(1, options.steps);
  options.micro_batches = stages;
  if (deck::position_of(model) == deck::Position::learned &&
      options.max_model_len > static_cast<std::size_t>(model.context))
    user_error(
        "&generation max_model_len = {}, but the model has {} learned positions; set max_model_len "
        "to at most that",
        options.max_model_len, model.context);
  const std::size_t most = options.batch * options.max_model_len;
  options.prefill_tokens = std::min(options.prefill_tokens, most);
  if (options.pages == 0) options.pages = max_pages;
  options.pages = std::min(options.pages, max_pages);
  return options;
}

}  // namespace

template <class T>
std::size_t Engine<T>::max_pages(const EngineOptions& options) {
  return options.batch * ((options.max_model_len + page_tokens - 1) / page_tokens);
}

template <class T>
std::size_t Engine<T>::page_bytes(const deck::Model& model, const model::ModelShard& share,
                                  bool fp8_cache) {
  const model::Dimensions size(model, share);
  const Range layers = model::layers_of(model, share);
  const std::size_t of_token = fp8_cache ? size.E + sizeof(float) : size.E * sizeof(T);
  return 2 * layers.count * size.K * page_tokens * of_token;
}

template <class T>
Engine<T>::Engine(const deck::Model& model, const model::ParameterTree& tree,
                  const model::Parameters<T>& parameters, const EngineOptions& options,
                  Arena& arena)
    : size_(model, tree.share()),
      options_(resolved(options, model, tree.share().stages, max_pages(options))),
      scale_(1 / std::sqrt(static_cast<double>(model.head_dim))),
      cap_(model.logit_cap),
      learned_positions_(deck::position_of(model) == deck::Position::learned),
      scheduler_(std::make_unique<detail::Scheduler>(options_, page_tokens, size_.V)),
      decoder_(model, tree, parameters, decoder_options(options_, tree.share()), arena) {
  const std::size_t layers = decoder_.layers(), places = options_.steps * decoder_.places();
  for (std::size_t place = 0; place < places; ++place) {
    const std::string of_pass = places > layers ? fmt::format("pass {}/", place / layers) : "";
    cache_.push_back(request_cache(arena, fmt::format("{}layer {}/", of_pass, place % layers)));
  }
  const auto limits = detail::Scheduler::limits(options_, page_tokens);
  partial_ = arena.vector<Accumulate<T>>("parts of attention", Term::workspace,
                                         ops::paged_partials(limits.splits, size_.H, size_.E));
  if (tree.share().last()) {
    picked_ = arena.matrix<T>("drawn rows", Term::workspace, limits.drawn, size_.D);
    logits_ = arena.matrix<T>("next logits", Term::workspace, limits.drawn, size_.V);
  }
  buffers_ = std::make_unique<detail::PassBuffers>(limits, arena);
}

template <class T>
ops::PagedCache<T> Engine<T>::request_cache(Arena& arena, const std::string& place) const {
  ops::PagedCache<T> cache{{}, {}, page_tokens};
  const auto request = [&](const char* name, Tensor3<T>& numbers, ops::CodedPages& coded) {
    const std::string label = place + name;
    const std::size_t n = options_.pages, width = page_tokens * size_.E;
    if (options_.fp8_cache)
      coded = {arena.tensor3<std::uint8_t>(label + ", codes", Term::cache, n, size_.K, width),
               arena.tensor3<float>(label + ", scales", Term::cache, n, size_.K, page_tokens)};
    else
      numbers = arena.tensor3<T>(label, Term::cache, n, size_.K, width);
  };
  request("keys", cache.keys, cache.coded_keys);
  request("values", cache.values, cache.coded_values);
  return cache;
}

template <class T>
Engine<T>::~Engine() = default;

template <class T>
void Engine<T>::prepare(const ops::Context& context) {
  decoder_.prepare(context);
}

template <class T>
void Engine<T>::round_weights(const ops::Context& context) {
  TERN_REQUIRE(!busy(), "weights change with requests in work");
  decoder_.round_weights(context);
  context.fence("weights in fp8");  // products may read them early
  rounded_ = true;
}

template <class T>
void Engine<T>::set_sampling(const SamplingOptions& sampling_options) {
  TERN_REQUIRE(!busy(), "sampling changes with requests in work");
  static_cast<SamplingOptions&>(options_) = sampling_options;
  scheduler_->set_sampling(sampling_options);
  replay_.forget();
}

template <class T>
void Engine<T>::submit(Request request) {
  scheduler_->submit(std::move(request));
}

template <class T>
bool Engine<T>::busy() const {
  return scheduler_->busy();
}

template <class T>
Stats Engine<T>::stats() const {
  return scheduler_->stats();
}

template <class T>
std::vector<Answer> Engine<T>::step(const ops::Context& context,
                                    const std::function<void()>& meanwhile) {
  TERN_REQUIRE(rounded_ || !options_.fp8_weights, "weights in fp8 are not rounded");
  scheduler_->plan();
  const bool in_flight = scheduler_->in_flight();
  ops::Context alike = context;
  alike.batch_invariant = true;
  alike.constant_weights = options_.constant_weights;
  if (in_flight) {
    const detail::Pass& own = scheduler_->pass(decoder_.share().stage);
    if (own.rows() > 0)
      run(alike, own);
    else
      decoder_.settle(alike);
    share_drawn(alike);
  }
  if (meanwhile) meanwhile();
  return scheduler_->finish(in_flight ? buffers_->drawn(alike) : nullptr);
}

/// Tokens of the oldest pass in flight, which the last stage has just run, on their way to the
/// hosts of all ranks.
template <class T>
void Engine<T>::share_drawn(const ops::Context& context) const {
  const std::size_t n = scheduler_->pass(options_.micro_batches - 1).drawn.size();
  if (n > 0) decoder_.from_last(context, buffers_->results(n));
  buffers_->download(context, n);
}

/// Only learned positions need the position of each segment.
template <class T>
std::vector<typename model::Decoder<T>::Run> Engine<T>::runs(const detail::Pass& pass) const {
  const Vector<const std::int32_t> tokens = buffers_->tokens();
  if (!learned_positions_) return {{tokens, pass.rows()}};
  std::vector<typename model::Decoder<T>::Run> result;
  for (const ops::Segment& s : pass.segments) {
    const auto rows = static_cast<std::size_t>(s.rows);
    result.push_back({Vector<const std::int32_t>(tokens.data() + s.row, rows), rows, s.position});
  }
  return result;
}

template <class T>
void Engine<T>::run(const ops::Context& context, const detail::Pass& pass) {
  buffers_->upload(context, pass);
  const auto compute = [&] { this->compute(context, pass); };
  const model::ModelShard& share = decoder_.share();
  // Otherwise passes of as many rows differ in positions, or in how layers are exchanged.
  const bool alike = pass.singles == pass.rows() && !learned_positions_ &&
                     context.constant_weights && share.stages == 1 && share.tensors == 1;
  if (alike)
    replay_.run(context, {pass.rows(), pass.drawn.size(), pass.settled}, compute);
  else
    compute();
}

template <class T>
void Engine<T>::compute(const ops::Context& context, const detail::Pass& pass) {
  const ops::PagedRows rows = buffers_->rows();
  const auto attend = [&](std::size_t place, const auto& parameters, const auto& of,
                          const model::MapInput<T>& input) {
    ops::paged_store<T>(context, rows, of.qkv, size_.H, decoder_.attention().head_stage(parameters),
                        cache_[place]);
    ops::paged_attention<T>(context, rows, scale_, of.qkv, cache_[place], partial_, of.result,
                            input.coded);
  };
  const Matrix<const T> finished =
      decoder_.forward(context, {pass.rows(), 1}, runs(pass), attend, options_.steps);
  if (decoder_.share().last() && !pass.drawn.empty()) draw(context, finished, pass.drawn.size());
}

/// Only rows whose next token is drawn go through the head.
template <class T>
void Engine<T>::draw(const ops::Context& context, Matrix<const T> finished, std::size_t rows) {
  const Matrix<T> picked(picked_.data(), rows, size_.D), logits(logits_.data(), rows, size_.V);
  ops::embedding_forward<T>(context, buffers_->drawn_rows(), finished, {}, 1, 0, picked);
  decoder_.last_logits_of(context, picked, logits);
  ops::cap_logits<T>(context, cap_, logits);
  ops::sample_rows<T>(context, options_.sampling, logits,
                      options_.vocabulary > 0 ? options_.vocabulary : size_.V, buffers_->ids(),
                      buffers_->numbers(), buffers_->results(rows));
}

template class Engine<float>;
template class Engine<double>;
template class Engine<bf16>;
template class Engine<fp16>;

}  // namespace tern::generate
