#include "generate/generator.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "generate/detail/check_tokens.hpp"

namespace tern::generate {
namespace {

std::size_t pass_rows(std::size_t batch, std::size_t max_tokens, std::size_t prefill_rows) {
  return std::max(batch, std::min(max_tokens, prefill_rows));
}

}  // namespace

template <class T>
Generator<T>::Generator(const deck::Model& model, const model::ParameterTree& tree,
                        const model::Parameters<T>& parameters, std::size_t batch,
                        std::size_t max_tokens, std::size_t steps, Arena& arena)
    : size_(model, tree.share()),
      batch_(batch),
      max_tokens_(max_tokens),
      steps_(steps),
      scale_(1 / std::sqrt(static_cast<double>(model.head_dim))),
      cap_(model.logit_cap),
      decoder_(model, tree, parameters,
               {pass_rows(batch, max_tokens, prefill_rows), max_tokens,
                tree.share().tensors > 1 ? batch : 1},
               arena) {
  TERN_REQUIRE(batch > 0 && max_tokens > 0 && steps > 0, "batch {}, max_tokens {}, steps {}", batch,
               max_tokens, steps);
  if (deck::position_of(model) == deck::Position::learned && max_tokens > static_cast<std::size_t>(model.context))
    user_error(
        "{} tokens a sequence, but the model has {} learned positions: shorten the prompt or "
        "lower &generation max_tokens",
        max_tokens, model.context);
  const std::size_t passes = steps * model::passes_of(model);
  for (std::size_t place = 0; place < passes * decoder_.layers(); ++place) {
    const std::string of_pass =
        passes > 1 ? fmt::format("pass {}/", place / decoder_.layers()) : "";
    const auto request = [&](const char* name) {
      return arena.matrix<T>(
          fmt::format("{}layer {}/{}", of_pass, place % decoder_.layers(), name), Term::cache,
          batch * max_tokens, size_.K * size_.E);
    };
    keys_.push_back(request("keys"));
    values_.push_back(request("values"));
  }
  logits_ = arena.matrix<T>("next logits", Term::workspace, batch, size_.V);
  tokens_ =
      arena.vector<std::int32_t>("tokens", Term::data, pass_rows(batch, max_tokens, prefill_rows));
  requests_ = arena.vector<std::int32_t>("requests", Term::data, batch);
}

template <class T>
void Generator<T>::check(const std::vector<std::int32_t>& prompt, std::size_t number) const {
  if (prompt.empty())
    user_error("prompt {} is empty: give at least one token (end of text begins a document)",
               number);
  if (prompt.size() >= max_tokens_)
    user_error("prompt {} has {} tokens, and a sequence may have {}: no room for a new one", number,
               prompt.size(), max_tokens_);
  detail::check_tokens(prompt, number, size_.V);
}

template <class T>
Heads<T> Generator<T>::cached(const Matrix<T>& cache, const Run& run, std::size_t tokens) const {
  const std::size_t width = size_.K * size_.E;
  return Heads<T>(cache.data() + run.slot * max_tokens_ * width,
                  Kokkos::LayoutStride(run.sequences, max_tokens_ * width, tokens, width, size_.K,
                                       size_.E, size_.E, 1));
}

/// Cache and attention of one run; the run's rows of qkv are (sequences, tokens).
template <class T>
void Generator<T>::attend(const ops::Context& context, std::size_t cache,
                          const typename model::Decoder<T>::AttentionParameters& parameters,
                          const typename model::Decoder<T>::AttentionRows& of, const Run& run) {
  const std::size_t H = size_.H, K = size_.K, E = size_.E, rows = run.sequences * run.tokens;
  const Matrix<T> fused = as_matrix(of.qkv.data() + run.row * size_.qkv, rows, size_.qkv);
  typename model::Decoder<T>::AttentionRows own{};
  own.qkv = fused;
  decoder_.attention().place_heads(context, parameters, own, {run.sequences, run.tokens},
                                   {static_cast<int>(run.length)});
  const auto part = [&](std::size_t first, std::size_t heads) {
    return heads_of(fused, first * E, run.sequences, run.tokens, heads, E);
  };
  const std::size_t end = run.length + run.tokens;
  const Heads<T> k = cached(keys_[cache], run, end), v = cached(values_[cache], run, end);
  const auto fresh = [&](const Heads<T>& all) {
    return Heads<T>(
        all.data() + run.length * K * E,
        Kokkos::LayoutStride(run.sequences, max_tokens_ * K * E, run.tokens, K * E, K, E, E, 1));
  };
  Kokkos::deep_copy(context.space, fresh(k), part(H, K));
  Kokkos::deep_copy(context.space, fresh(v), part(H + K, K));
  const Matrix<T> result = as_matrix(of.result.data() + run.row * H * E, rows, H * E);
  ops::Pattern pattern;
  pattern.query_offset = static_cast<int>(run.length);
  ops::attention_forward<T>(context, pattern, scale_, part(0, H), k, v,
                            heads_of(result, 0, run.sequences, run.tokens, H, E),
                            as_matrix(of.lse.data() + run.row * H, run.sequences * H, run.tokens));
}

/// One forward pass over the rows of all runs, which extends their cached sequences.
template <class T>
Matrix<const T> Generator<T>::pass(const ops::Context& context,
                                   const std::vector<std::int32_t>& tokens,
                                   const std::vector<Run>& runs) {
  const HostVector<const std::int32_t> host(tokens.data(), tokens.size());
  Kokkos::deep_copy(context.space, Vector<std::int32_t>(tokens_.data(), tokens.size()), host);
  std::vector<typename model::Decoder<T>::Run> rows;
  for (const Run& run : runs)
    rows.push_back(
        {Vector<const std::int32_t>(tokens_.data() + run.row, run.sequences * run.tokens),
         run.tokens, static_cast<int>(run.length)});
  return decoder_.forward(
      context, {tokens.size(), 1}, rows,
      [&](std::size_t place, const auto& parameters, const auto& of) {
        for (const Run& run : runs) attend(context, place, parameters, of, run);
      },
      steps_);
}

template <class T>
void Generator<T>::prefill(const ops::Context& context, Sequence& sequence,
                           const std::vector<std::int32_t>& prompt) {
  while (sequence.length < prompt.size()) {
    const std::size_t rows = std::min(prefill_rows, prompt.size() - sequence.length);
    const auto first = prompt.begin() + static_cast<std::ptrdiff_t>(sequence.length);
    const std::vector<std::int32_t> piece(first, first + static_cast<std::ptrdiff_t>(rows));
    const Matrix<const T> finished =
        pass(context, piece, {{0, sequence.slot, 1, rows, sequence.length}});
    sequence.length += rows;
    if (sequence.length == prompt.size())
      decoder_.logits_of(
          context, Matrix<const T>(finished.data() + (rows - 1) * size_.D, 1, size_.D),
          as_matrix(logits_.data() + sequence.slot * size_.V, 1, size_.V));
    context.fence("prefill");  // `piece` must outlive its copy
  }
}

template <class T>
void Generator<T>::decode(const ops::Context& context, const std::vector<Sequence>& sequences) {
  std::vector<std::int32_t> tokens;
  std::vector<Run> runs;
  for (const Sequence& s : sequences) {
    const bool joins = !runs.empty() && runs.back().length == s.length &&
                       runs.back().slot + runs.back().sequences == s.slot;
    if (joins)
      ++runs.back().sequences;
    else
      runs.push_back({tokens.size(), s.slot, 1, 1, s.length});
    tokens.push_back(s.next);
  }
  const Matrix<const T> finished = pass(context, tokens, runs);
  decoder_.logits_of(context, finished, as_matrix(logits_.data(), tokens.size(), size_.V));
  context.fence("decode");
}

/// Draws `next` of each sequence from its row of logits.
template <class T>
void Generator<T>::sample(const ops::Context& context, const GenerationOptions& options,
                          std::vector<Sequence>& sequences, std::size_t drawn) {
  const std::size_t n = sequences.size();
  std::vector<std::int32_t> host(n);
  const HostVector<std::int32_t> view(host.data(), n);
  for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<std::int32_t>(sequences[i].prompt);
  const Vector<std::int32_t> requests(requests_.data(), n), tokens(tokens_.data(), n);
  Kokkos::deep_copy(context.space, requests, view);
  ops::cap_logits<T>(context, cap_, as_matrix(logits_.data(), n, size_.V));
  ops::sample<T>(context, options.sampling, as_matrix(logits_.data(), n, size_.V),
                 options.vocabulary > 0 ? options.vocabulary : size_.V, requests,
                 static_cast<int>(drawn), tokens);
  context.fence("requests read");
  Kokkos::deep_copy(context.space, view, tokens);
  context.fence("sampled tokens");
  for (std::size_t i = 0; i < n; ++i) {
    if (host[i] < 0)
      user_error(
          "prompt {}: the model's logits are not finite; its weights may come from a run that "
          "diverged: name an earlier checkpoint by &generation checkpoint",
          sequences[i].prompt + 1);
    sequences[i].next = host[i];
  }
}

template <class T>
std::vector<std::vector<std::int32_t>> Generator<T>::generate(
    const ops::Context& context, const std::vector<std::vector<std::int32_t>>& prompts,
    const GenerationOptions& options) {
  for (std::size_t i = 0; i < prompts.size(); ++i) check(prompts[i], i);
  std::vector<std::vector<std::int32_t>> results(prompts.size());
  if (options.max_new == 0) return results;
  for (std::size_t first = 0; first < prompts.size(); first += batch_) {
    std::vector<Sequence> active;
    for (std::size_t i = first; i < std::min(first + batch_, prompts.size()); ++i) {
      active.push_back({i, i - first, 0, 0});
      prefill(context, active.back(), prompts[i]);
    }
    for (std::size_t drawn = 0; !active.empty(); ++drawn) {
      sample(context, options, active, drawn);
      const auto finished = [&](const Sequence& s) {
        if (s.next == options.stop) return true;
        std::vector<std::int32_t>& result = results[s.prompt];
        result.push_back(s.next);
        return result.size() == options.max_new ||
               prompts[s.prompt].size() + result.size() == max_tokens_;
      };
      active.erase(std::remove_if(active.begin(), active.end(), finished), active.end());
      if (active.empty()) break;
      decode(context, active);
      for (Sequence& s : active) ++s.length;
    }
  }
  return results;
}

template class Generator<float>;
template class Generator<double>;
template class Generator<bf16>;

}  // namespace tern::generate
