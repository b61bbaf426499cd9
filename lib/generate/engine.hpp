/// Continuous batching: requests join and leave between passes. A pass mixes decoding rows, one per
/// request past its prompt, with prefill chunks, up to prefill_tokens rows of them. Keys and values
/// are in pages of a shared cache (Kwon et al. 2023, "Efficient memory management for large
/// language model serving with PagedAttention"). Full pages are found again by content, so a prefix
/// that requests share is computed once. When pages run out, the request admitted last is preempted
/// and recomputed later.
///
/// A token is drawn with (seed, request id, token number). In float32 and double all kernels are
/// batch-invariant, so a request's tokens are a function of its prompt, its id and the options
/// only: not of the batch, the order of requests, prefill chunks, the prefix cache or preemption.
/// In bf16 all kernels are batch-invariant except matrix products, whose algorithm depends on the
/// number of rows; and attention uses different kernels for one and for several rows of a sequence,
/// which matters to prompts chunked differently and to recomputed tokens. There texts may diverge
/// where two tokens are equally likely to within rounding.
///
/// The stages of a pipeline work at the same time, each on a pass of its own: as many micro-batches
/// of requests as there are stages take turns, and the last stage's tokens go to all. Passes have
/// accordingly fewer requests, so `batch` should be larger than on one stage.
///
/// The constructor requests all device memory from the arena. Ranks that share a model (tensor
/// ranks and stages) get the same requests in the same order, take the same steps and return the
/// same answers; submit() is local, step() collective over the replica.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/decoder.hpp"
#include "ops/core/replay.hpp"
#include "ops/ops.hpp"

namespace tern::generate {

struct Request {
  std::uint64_t id;  // unique among the requests in work
  std::vector<std::int32_t> prompt;
  std::size_t max_new;  // maximum tokens after the prompt
};

enum class FinishReason {
  stop,       // a stop token, or `stopped` returned true
  length,     // max_new tokens
  refused,    // cannot be answered; `reason` says why and what to change
  not_finite  // logits are not finite; `reason` says so
};

struct Answer {
  std::uint64_t id;
  std::vector<std::int32_t> tokens;  // without the stop token; with the one at which `stopped` held
  FinishReason finish_reason;
  std::string reason;  // empty unless refused or not_finite
};

/// How tokens are drawn and when a text ends.
struct SamplingOptions {
  ops::Sampling sampling;
  std::size_t vocabulary = 0;  // tokens at or above it (padding) are never drawn; 0: the model's
  std::vector<std::int32_t> stop_tokens;
  /// Whether the text ends, called after each new token with all of them; empty: never. For stop
  /// sequences that are no single token.
  std::function<bool(const std::vector<std::int32_t>& new_tokens)> stopped;
};

struct EngineOptions : SamplingOptions {
  std::size_t batch = 32;             // maximum requests in work
  std::size_t max_model_len = 2048;   // maximum tokens per request, prompt included
  std::size_t prefill_tokens = 2048;  // maximum prefill rows per pass
  std::size_t pages = 0;              // page_tokens each; 0: batch x max_model_len tokens
  std::size_t micro_batches = 1;      // which divide `batch` and take turns: the engine sets it
  bool prefix_cache = true;           // only if weights never change
  bool constant_weights = true;       // weights are constant between steps, no layers gathered
  std::size_t steps = 0;              // per token, of a recursive model
  bool fp8_weights = false;           // of the blocks' linear maps: DecoderOptions
  bool fp8_inputs = false;            // of the same maps, with fp8_weights
  bool fp8_cache = false;             // keys and values in E4M3: ops/paged_cache.hpp
};

/// Totals since construction, except where stated.
struct Stats {
  std::size_t submitted = 0, answered = 0, refused = 0;  // requests; refused ones count as answered
  std::size_t waiting = 0, running = 0;                  // now
  std::size_t prompt_tokens = 0;    // admitted requests'; = computed + reused when first admitted
  std::size_t computed_tokens = 0;  // prompt rows, recomputed ones included
  std::size_t reused_tokens = 0;    // found in the cache, recomputed ones included
  std::size_t new_tokens = 0;       // drawn, stop tokens included
  std::size_t passes = 0, preemptions = 0;
  std::size_t pages = 0;         // total
  std::size_t pages_in_use = 0;  // held by running requests, now; shared ones once
  std::size_t peak_pages = 0;    // maximum of pages_in_use
};

namespace detail {
class Scheduler;
struct Pass;
class PassBuffers;
}  // namespace detail

template <class T>
class Engine {
 public:
  static constexpr std::size_t page_tokens = 16;

  /// Keeps views of `parameters`, not the object. Throws UserError for fewer learned positions than
  /// max_model_len, and for a recursive model without options.steps; each pass of each step has its
  /// own keys and values.
  Engine(const deck::Model& model, const model::ParameterTree& tree,
         const model::Parameters<T>& parameters, const EngineOptions& options, Arena& arena);
  ~Engine();

  /// Pages for batch x max_model_len tokens: the maximum in use.
  static std::size_t max_pages(const EngineOptions& options);
  /// Bytes per page over all layers of a share of a model that is not recursive.
  static std::size_t page_bytes(const deck::Model& model, const model::ModelShard& share = {},
                                bool fp8_cache = false);

  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context& context);
  /// With fp8_weights: rounds them, in `parameters` as well. Call before the first step, and when
  /// they have changed, with no request in work. Waits for the device.
  void round_weights(const ops::Context& context);

  /// Sets how tokens are drawn from now on. No request may be in work.
  void set_sampling(const SamplingOptions& sampling_options);

  /// Queues a request; computes nothing. The next step() refuses it if it cannot be answered: an
  /// empty prompt, a token outside the vocabulary, or more tokens, with max_new, than max_model_len
  /// or the whole cache. Requests are admitted in order of submission.
  void submit(Request request);
  /// Whether any request awaits its answer.
  bool busy() const;
  /// Starts one pass. Returns the requests that it finished, in a pipeline of S stages those that the
  /// pass S - 1 steps before finished, and the requests refused since the last step. Waits for the
  /// device once, for the new tokens. `meanwhile` is called once per step, before that wait: work of
  /// the host while the device runs the pass. It may submit requests.
  std::vector<Answer> step(const ops::Context& context,
                           const std::function<void()>& meanwhile = {});

  Stats stats() const;
  std::size_t max_model_len() const { return options_.max_model_len; }
  std::size_t vocabulary() const { return size_.V; }  // the model's

 private:
  ops::PagedCache<T> request_cache(Arena& arena, const std::string& place) const;
  void run(const ops::Context&, const detail::Pass&);
  void compute(const ops::Context&, const detail::Pass&);
  std::vector<typename model::Decoder<T>::Run> runs(const detail::Pass&) const;
  void draw(const ops::Context&, Matrix<const T> finished, std::size_t rows);
  void share_drawn(const ops::Context&) const;

  model::Dimensions size_;
  EngineOptions options_;
  double scale_, cap_;
  bool learned_positions_;
  bool rounded_ = false;  // weights, if in fp8
  std::unique_ptr<detail::Scheduler> scheduler_;
  model::Decoder<T> decoder_;
  std::vector<ops::PagedCache<T>> cache_;  // one per place of each step
  Vector<Accumulate<T>> partial_;          // partial results of attention
  // On the last stage, per request of a pass.
  Matrix<T> picked_;  // (requests, D) finished rows to draw from
  Matrix<T> logits_;  // (requests, V)
  std::unique_ptr<detail::PassBuffers> buffers_;
  ops::Replay replay_;  // of passes that only decode
};

}  // namespace tern::generate
