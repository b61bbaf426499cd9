/// The pages of a key-value cache: who has them, and which can be found again by what they hold.
///
/// A full page is known by its tokens and the page before it, which is known the same way; so two
/// pages are taken for equal only if all their tokens from the beginning of the sequence on are.
/// Pages that nobody has but that can be found are taken back last, the least recently used first.
#pragma once
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace tern::generate::detail {

class PagePool {
 public:
  using Tokens = std::vector<std::int32_t>;
  /// What a page holds, from the beginning of its sequence on: equal only for equal tokens. 0 is
  /// the empty beginning, and what can no longer be found.
  using Content = std::uint64_t;

  /// `findable` false: no page is ever found again.
  PagePool(std::size_t pages, std::size_t page_tokens, bool findable);

  std::size_t pages() const { return pages_.size(); }
  std::size_t page_tokens() const { return page_tokens_; }
  /// Pages that nobody has.
  std::size_t available() const { return empty_.size() + unused_.size(); }

  /// The longest beginning of `tokens` that is there, at most `most` pages. The caller has them.
  struct Found {
    std::vector<std::int32_t> pages;
    Content content = 0;
  };
  Found find(const Tokens& tokens, std::size_t most);

  /// A page for the caller alone. There must be one available.
  std::int32_t take();
  /// From now on `page` can be found: it holds tokens [first, first + page_tokens) behind `before`.
  /// Returns its content, which is that of an equal page if there is one already.
  Content publish(std::int32_t page, Content before, const Tokens& tokens, std::size_t first);
  /// The caller no longer has these pages, in the order of their tokens.
  void release(const std::vector<std::int32_t>& pages);

 private:
  struct Page {
    std::size_t owners = 0;
    Content content = 0, before = 0;  // content 0: cannot be found
    std::uint64_t hash = 0;
    Tokens tokens;
    std::list<std::int32_t>::iterator unused = {};  // its place there, if it has no owner
  };
  std::uint64_t hash(Content before, const std::int32_t* tokens) const;
  std::int32_t look_up(Content before, const std::int32_t* tokens, std::uint64_t hash) const;
  void forget(Page& page, std::int32_t number);

  std::size_t page_tokens_;
  bool findable_;
  std::vector<Page> pages_;
  std::vector<std::int32_t> empty_;
  std::list<std::int32_t> unused_;  // findable, without owner; the least recently used first
  std::unordered_multimap<std::uint64_t, std::int32_t> by_hash_;
  Content last_ = 0;
};

}  // namespace tern::generate::detail
