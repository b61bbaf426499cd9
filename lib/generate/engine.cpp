#include "generate/engine.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "generate/detail/pass_buffers.hpp"
#include "generate/detail/scheduler.hpp"

namespace tern::generate {
namespace {

model::TransformerOptions transformer_options(const EngineOptions& options,
                                              const model::Share& share) {
  model::TransformerOptions result{options.batch + options.prefill_tokens, 1};
  result.training = false;
  result.positions = options.max_model_len;
  result.head_rows = share.tensors > 1 ? options.batch : 1;  // of the logits that ranks gather
  return result;
}

EngineOptions resolved(EngineOptions options, const deck::Model& model, std::size_t most_pages) {
  if (model.inner_steps > 0)
    user_error(
        "&model inner_steps = {}: a recursive model is not served by the generation engine; use "
        "&generation prompt, whose generator runs it",
        model.inner_steps);
  if (model.position == "learned" &&
      options.max_model_len > static_cast<std::size_t>(model.context))
    user_error(
        "&generation max_model_len = {}, but the model has {} learned positions: set max_model_len "
        "to at most that",
        options.max_model_len, model.context);
  const std::size_t most = options.batch * options.max_model_len;
  options.prefill_tokens = std::min(options.prefill_tokens, most);
  if (options.pages == 0) options.pages = most_pages;
  options.pages = std::min(options.pages, most_pages);
  if (options.vocabulary == 0) options.vocabulary = static_cast<std::size_t>(model.vocabulary);
  return options;
}

}  // namespace

template <class T>
std::size_t Engine<T>::most_pages(const EngineOptions& options) {
  return options.batch * ((options.max_model_len + page_tokens - 1) / page_tokens);
}

template <class T>
std::size_t Engine<T>::page_bytes(const deck::Model& model, const model::Share& share) {
  const model::Dimensions size(model, share);
  const model::Layers layers = model::layers_of(model, share);
  return 2 * (layers.end - layers.first) * size.K * page_tokens * size.E * sizeof(T);
}

template <class T>
Engine<T>::Engine(const deck::Model& model, const model::ParameterTree& tree,
                  const model::Parameters<T>& parameters, const EngineOptions& options,
                  Arena& arena)
    : size_(model, tree.share()),
      options_(resolved(options, model, most_pages(options))),
      scale_(1 / std::sqrt(static_cast<double>(model.head_dim))),
      cap_(model.logit_cap),
      learned_positions_(model.position == "learned"),
      scheduler_(std::make_unique<detail::Scheduler>(options_, page_tokens, size_.V)),
      transformer_(model, tree, parameters, transformer_options(options_, tree.share()), arena) {
  for (std::size_t l = 0; l < transformer_.layers(); ++l) {
    const auto request = [&](const char* name) {
      return arena.tensor3<T>(fmt::format("layer {}/{}", l, name), Term::cache, options_.pages,
                              size_.K, page_tokens * size_.E);
    };
    const Tensor3<T> keys = request("keys"), values = request("values");
    cache_.push_back({keys, values, page_tokens});
  }
  const auto limits = detail::Scheduler::limits(options_, page_tokens);
  partial_ = arena.vector<Accumulate<T>>("parts of attention", Term::workspace,
                                         ops::paged_partials(limits.splits, size_.H, size_.E));
  picked_ = arena.matrix<T>("drawn rows", Term::workspace, options_.batch, size_.D);
  logits_ = arena.matrix<T>("next logits", Term::workspace, options_.batch, size_.V);
  buffers_ = std::make_unique<detail::PassBuffers>(limits, options_.batch, arena);
}

template <class T>
Engine<T>::~Engine() = default;

template <class T>
void Engine<T>::prepare(const ops::Context& context) {
  transformer_.prepare(context);
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
Figures Engine<T>::figures() const {
  return scheduler_->figures();
}

template <class T>
std::vector<Answer> Engine<T>::step(const ops::Context& context) {
  const detail::Pass& pass = scheduler_->plan();
  if (pass.rows() == 0) return scheduler_->finish(nullptr);
  ops::Context alike = context;
  alike.row_invariant = alike.constant_weights = true;
  run(alike, pass);
  return scheduler_->finish(buffers_->drawn(alike));
}

template <class T>
void Engine<T>::embed(const ops::Context& context, const detail::Pass& pass) {
  const Vector<const std::int32_t> tokens = buffers_->tokens();
  if (!learned_positions_) return transformer_.embed_rows(context, 0, tokens, pass.rows(), 0);
  for (const ops::Segment& s : pass.segments) {
    const auto row = static_cast<std::size_t>(s.row), rows = static_cast<std::size_t>(s.rows);
    transformer_.embed_rows(context, row, Vector<const std::int32_t>(tokens.data() + row, rows),
                            rows, s.position);
  }
}

template <class T>
void Engine<T>::run(const ops::Context& context, const detail::Pass& pass) {
  buffers_->upload(context, pass);
  const ops::PagedRows rows = buffers_->rows();
  transformer_.reshape(pass.rows(), 1);
  embed(context, pass);
  for (std::size_t l = 0; l < transformer_.layers(); ++l) {
    const Matrix<T> fused =
        transformer_.project_qkv(context, l, model::Transformer<T>::HeadNorm::later);
    const Matrix<T> qkv(fused.data(), pass.rows(), size_.qkv);
    const Matrix<T> result(transformer_.attention_result().data(), pass.rows(), size_.H * size_.E);
    ops::paged_store<T>(context, rows, qkv, size_.H, transformer_.head_stage(l), cache_[l]);
    ops::paged_attention<T>(context, rows, scale_, qkv, cache_[l], partial_, result);
    transformer_.end_block(context, l, {});
  }
  if (!pass.drawn.empty()) draw(context, pass.drawn.size());
}

/// Only the rows whose next token is drawn go through the head.
template <class T>
void Engine<T>::draw(const ops::Context& context, std::size_t rows) {
  const Matrix<const T> finished = transformer_.finish(context);
  const Matrix<T> picked(picked_.data(), rows, size_.D), logits(logits_.data(), rows, size_.V);
  ops::embedding_forward<T>(context, buffers_->drawn_rows(), finished, {}, 1, 0, picked);
  transformer_.logits_of(context, picked, logits);
  ops::cap_logits<T>(context, cap_, logits);
  ops::sample_rows<T>(context, options_.sampling, logits, options_.vocabulary, buffers_->ids(),
                      buffers_->numbers(), buffers_->results());
}

template class Engine<float>;
template class Engine<double>;
template class Engine<bf16>;

}  // namespace tern::generate
