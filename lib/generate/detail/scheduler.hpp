/// What each pass of the engine computes: which requests are in work, which of their tokens are
/// rows of the pass, and in which pages they lie. All on the host, and a function of the requests
/// and the tokens drawn alone.
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
  std::vector<std::int32_t> tokens;  // prompt and new ones
  std::size_t stored = 0;            // of them, in the cache after the pass that is planned
  std::vector<std::int32_t> pages;
  std::size_t published = 0;  // pages that can be found
  PagePool::Content content = 0;
  bool begun = false;       // it has been in work before
  bool catching_up = true;  // its prompt, or what it had when it was put back, is being computed

  std::size_t drawn() const { return tokens.size() - request.prompt.size(); }
};

/// The rows of a pass, as ops::PagedRows wants them.
struct Pass {
  std::vector<std::int32_t> tokens, positions, table_of, places;  // (N)
  std::vector<ops::Segment> segments;
  std::vector<std::int32_t> tables;
  std::vector<ops::Piece> splits, tiles;
  std::size_t singles = 0;
  // Of the rows whose next token is drawn: row, halves of the request's id, number of the token.
  std::vector<std::int32_t> drawn, ids, numbers;

  std::size_t rows() const { return tokens.size(); }
  void clear();
};

class Scheduler {
 public:
  /// `options` with pages.
  Scheduler(const EngineOptions& options, std::size_t page_tokens, std::size_t vocabulary);

  void submit(Request request);
  /// From now on texts end so.
  void end_as(const Drawing& drawing) { static_cast<Drawing&>(options_) = drawing; }
  bool busy() const { return !waiting_.empty() || !running_.empty() || !answers_.empty(); }
  /// The rows of the next pass; none if no request is left but refused ones.
  const Pass& plan();
  /// After the pass, with its drawn tokens: the requests that it finished and the refused ones.
  std::vector<Answer> finish(const std::int32_t* drawn);
  Figures figures() const;

  /// The most numbers that a pass can hold of each kind.
  struct Limits {
    std::size_t rows, segments, tables, splits, tiles;
  };
  static Limits limits(const EngineOptions& options, std::size_t page_tokens);

 private:
  using Owned = std::unique_ptr<Sequence>;
  std::string refusal(const Request& request) const;
  bool extend(std::size_t index, std::size_t rows);
  void put_back();
  bool admit();
  void schedule(Sequence& sequence, std::size_t rows);
  void lay_out();
  void add_segment(Sequence& sequence, std::size_t rows);
  bool ends(Sequence& sequence, std::int32_t token, Answer& answer) const;
  std::size_t pages_for(std::size_t tokens) const;

  EngineOptions options_;
  std::size_t vocabulary_;
  PagePool pool_;
  std::deque<Owned> waiting_;
  std::vector<Owned> running_;  // in the order of submission, as waiting_ is behind them
  struct Scheduled {
    Sequence* sequence;
    std::size_t rows;
  };
  std::vector<Scheduled> scheduled_;  // of the pass that is planned
  std::vector<Sequence*> drawing_;    // by drawn row
  Pass pass_;
  std::vector<Answer> answers_;  // of refused requests
  Figures figures_;
};

}  // namespace tern::generate::detail
