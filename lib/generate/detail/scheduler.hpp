/// Scheduler of the engine's passes: which requests are in work, which of their tokens are rows of
/// the pass, and in which pages they are. On the host only, and a function of the requests and the
/// drawn tokens only.
///
/// In a pipeline of S stages S micro-batches of requests take turns, so that every stage works on
/// one of them: S passes are in flight between plan() and finish().
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "generate/detail/page_pool.hpp"
#include "generate/engine.hpp"
#include "ops/ops.hpp"

namespace tern::generate::detail {

/// One request in work.
struct Sequence {
  Request request;
  std::vector<std::int32_t> tokens;  // prompt and new tokens
  std::size_t stored = 0;            // tokens in the cache after the planned pass
  std::vector<std::int32_t> pages;
  std::size_t hashed_pages = 0;  // pages that can be found
  PagePool::Content content = 0;
  bool admitted_before = false;  // it has been admitted before
  bool prefilling = true;        // its prompt, or its tokens at preemption, are being computed

  std::size_t open() const { return tokens.size() - stored; }
  bool decodes() const { return open() == 1; }
  std::size_t drawn() const { return tokens.size() - request.prompt.size(); }
};

/// Rows of a pass, as ops::PagedRows takes them.
struct Pass {
  std::vector<std::int32_t> tokens, positions, table_of, places;  // (N)
  std::vector<ops::Segment> segments;
  std::vector<std::int32_t> tables;
  std::vector<ops::Split> splits;
  std::vector<std::int32_t> first_splits{0};
  std::vector<ops::Piece> tiles;
  std::size_t singles = 0;
  bool settled = false;  // as in ops::PagedRows
  // For rows whose next token is drawn: row, halves of the request's id, token number.
  std::vector<std::int32_t> drawn, ids, numbers;

  std::size_t rows() const { return tokens.size(); }
  void clear();
};

class Scheduler {
 public:
  /// `options` have pages and micro_batches set.
  Scheduler(const EngineOptions& options, std::size_t page_tokens, std::size_t vocabulary);

  void submit(Request request);
  /// Sets how texts end from now on.
  void set_sampling(const SamplingOptions& sampling_options) {
    static_cast<SamplingOptions&>(options_) = sampling_options;
  }
  bool busy() const { return !waiting_.empty() || running() > 0 || !answers_.empty(); }
  /// Rows of the next pass; none if only refused requests are left, or if the micro-batch whose
  /// turn it is has no requests.
  const Pass& plan();
  /// The pass in flight that was planned `age` calls of plan() ago, age < micro_batches. Passes not
  /// planned yet have no rows.
  const Pass& pass(std::size_t age) const { return micro_batches_[turn(age)].pass; }
  /// Whether any pass in flight has rows.
  bool in_flight() const;
  /// Call after each plan() with the drawn tokens of the oldest pass in flight: returns finished
  /// and refused requests.
  std::vector<Answer> finish(const std::int32_t* drawn);
  Stats stats() const;

  /// Maximum elements of each kind per pass.
  struct Limits {
    std::size_t rows, segments, tables, splits, tiles, drawn;
  };
  static Limits limits(const EngineOptions& options, std::size_t page_tokens);

 private:
  using Owned = std::unique_ptr<Sequence>;
  struct MicroBatch {
    std::size_t most = 0;            // requests
    std::vector<Owned> running;      // in order of admission
    Pass pass;                       // in flight
    std::vector<Sequence*> drawing;  // by drawn row of the pass
  };
  /// Index of the micro-batch that was planned `age` calls of plan() ago.
  std::size_t turn(std::size_t age) const {
    const std::size_t n = micro_batches_.size();
    return (plans_ + n - age) % n;
  }
  MicroBatch& current() { return micro_batches_[turn(0)]; }
  std::size_t running() const;
  std::string refusal(const Request& request) const;
  bool extend(std::size_t index, std::size_t rows);
  bool has_page(const Sequence& sequence) const;
  void preempt();
  bool admit();
  bool prompts_first();
  void schedule(Sequence& sequence, std::size_t rows);
  void lay_out();
  void add_segment(Sequence& sequence, std::size_t rows);
  bool ends(Sequence& sequence, std::int32_t token, Answer& answer) const;
  std::size_t pages_for(std::size_t tokens) const;

  EngineOptions options_;
  std::size_t vocabulary_;
  PagePool pool_;
  std::deque<Owned> waiting_;
  std::vector<MicroBatch> micro_batches_;
  std::size_t plans_ = 0;  // calls of plan()
  struct Scheduled {
    Sequence* sequence;
    std::size_t rows;
  };
  std::vector<Scheduled> scheduled_;  // rows of the planned pass
  std::vector<Answer> answers_;       // answers without a pass: refused requests, or max_new = 0
  Stats stats_;
};

}  // namespace tern::generate::detail
