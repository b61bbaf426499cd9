/// Continuous batching: requests join and leave between passes. A pass of the model is a mix of
/// decoding rows, one of each request that has its prompt behind it, and of pieces of prompts, up
/// to prefill_tokens rows in all. Keys and values lie in pages of a common cache (Kwon et al. 2023,
/// "Efficient memory management for large language model serving with PagedAttention"). Full pages
/// are found again by what they hold, so a beginning that requests share is computed once. Where
/// pages run out, the youngest request is put back and its text recomputed later.
///
/// A token is drawn with (seed, request id, number of the token). In float32 (and double) every row
/// of a pass is computed alike whatever rows are beside it, so the tokens of a request are a
/// function of its prompt, its id and the options alone: not of the batch, the order of requests,
/// the pieces of prompts, the prefix cache or being put back. In bf16 each kernel gives a row the
/// same bits whatever is beside it, but for the matrix products, whose algorithm follows from the
/// number of rows; and one row of a sequence is attended by another kernel than several, which
/// matters to prompts cut elsewhere and to tokens that are recomputed. There texts may part where
/// two tokens are equally likely to within rounding.
///
/// All device memory is requested from the arena by the constructor. Ranks that share a model (its
/// tensor ranks and stages) are given the same requests in the same order, then take the same steps
/// and get the same answers; submit() is local, step() collective over the replica.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/decoder.hpp"
#include "ops/ops.hpp"

namespace tern::generate {

struct Request {
  std::uint64_t id;  // of its own among those that are in work
  std::vector<std::int32_t> prompt;
  std::size_t max_new;  // tokens after the prompt, at most
};

enum class Ending {
  stop,       // a stop token, or what `stopped` found
  length,     // max_new tokens
  refused,    // cannot be answered; `reason` says why and what to change
  not_finite  // the model's logits are; `reason` says so
};

struct Answer {
  std::uint64_t id;
  std::vector<std::int32_t> tokens;  // without the stop token; with the one at which `stopped` held
  Ending ending;
  std::string reason;  // empty unless refused or not_finite
};

/// How tokens are drawn, and when a text is at its end.
struct Drawing {
  ops::Sampling sampling;
  std::size_t vocabulary = 0;  // tokens at or above it (padding) are never drawn; 0: the model's
  std::vector<std::int32_t> stop_tokens;
  /// Whether the text is at its end, called after each new token with all of them; empty: never.
  /// For stop sequences that no token stands for.
  std::function<bool(const std::vector<std::int32_t>& new_tokens)> stopped;
};

struct EngineOptions : Drawing {
  std::size_t batch = 32;             // requests in work at once, at most
  std::size_t max_model_len = 2048;   // tokens of a request, prompt included, at most
  std::size_t prefill_tokens = 2048;  // rows of a pass that are not decoding ones, at most
  std::size_t pages = 0;  // of the cache, of Engine::page_tokens; 0: batch x max_model_len tokens
  bool prefix_cache = true;      // only for weights that never change
  bool constant_weights = true;  // between steps, and no layer is gathered while one runs
  std::size_t steps = 0;         // of a recursive model for each token
};

/// Since the engine was made, but for the numbers of the present.
struct Figures {
  std::size_t submitted = 0, answered = 0, refused = 0;  // requests; refused: of those answered
  std::size_t waiting = 0, running = 0;                  // now
  std::size_t prompt_tokens = 0;    // of requests that began; = computed + reused at first begin
  std::size_t computed_tokens = 0;  // rows of prompts, recomputed ones included
  std::size_t reused_tokens = 0;    // found in the cache, recomputed ones included
  std::size_t new_tokens = 0;       // drawn ones, stop tokens included
  std::size_t passes = 0, put_back = 0;
  std::size_t pages = 0;         // in all
  std::size_t pages_in_use = 0;  // by running requests, now; shared ones once
  std::size_t most_pages = 0;    // the largest pages_in_use so far
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

  /// Keeps views of `parameters`, not the object. UserError for learned positions fewer than
  /// max_model_len, and for a recursive model unless options.steps says how many it takes; each
  /// pass of each step has keys and values of its own.
  Engine(const deck::Model& model, const model::ParameterTree& tree,
         const model::Parameters<T>& parameters, const EngineOptions& options, Arena& arena);
  ~Engine();

  /// Pages that batch x max_model_len tokens take: more are never used.
  static std::size_t most_pages(const EngineOptions& options);
  /// Bytes of the arena that one page takes, in all layers of a share of a model that is not
  /// recursive.
  static std::size_t page_bytes(const deck::Model& model, const model::Share& share = {});

  /// Fills what is constant. Once, after the arena allocates.
  void prepare(const ops::Context& context);

  /// From now on tokens are drawn so; while no request is in work.
  void draw_as(const Drawing& drawing);

  /// Takes a request up; nothing is computed. One that cannot be answered is refused by the next
  /// step(), alone: an empty prompt, a token outside the vocabulary, or more tokens, with max_new,
  /// than max_model_len or the whole cache. Requests begin in the order of their submission.
  void submit(Request request);
  /// Whether any request awaits its answer.
  bool busy() const;
  /// One pass. Returns the requests that it finished, and those that were refused since the last.
  /// Waits for the device once, for the new tokens.
  std::vector<Answer> step(const ops::Context& context);

  Figures figures() const;
  std::size_t max_model_len() const { return options_.max_model_len; }
  std::size_t vocabulary() const { return size_.V; }  // of the model

 private:
  void run(const ops::Context&, const detail::Pass&);
  std::vector<typename model::Decoder<T>::Run> runs(const detail::Pass&) const;
  void draw(const ops::Context&, Matrix<const T> finished, std::size_t rows);

  model::Dimensions size_;
  EngineOptions options_;
  double scale_, cap_;
  bool learned_positions_;
  std::unique_ptr<detail::Scheduler> scheduler_;
  model::Decoder<T> decoder_;
  std::vector<ops::PagedCache<T>> cache_;  // one a place of each step
  Vector<Accumulate<T>> partial_;          // of attention
  Matrix<T> picked_;                       // (batch, D) finished rows that are drawn from
  Matrix<T> logits_;                       // (batch, V)
  std::unique_ptr<detail::PassBuffers> buffers_;
};

}  // namespace tern::generate
