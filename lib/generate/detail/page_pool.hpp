/// Pages of a key-value cache: their owners and, for the prefix cache, their contents.
///
/// A full page is identified by its tokens and the page before it, recursively; so two pages are
/// equal only if all tokens from the beginning of the sequence are. Free pages that can still be
/// found are reused last, least recently used first.
#pragma once
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace tern::generate::detail {

class PagePool {
 public:
  using Tokens = std::vector<std::int32_t>;
  /// Content of a page from the beginning of its sequence: equal only for equal tokens. 0 is the
  /// empty prefix, and what can no longer be found.
  using Content = std::uint64_t;

  /// `findable` false: no prefix cache.
  PagePool(std::size_t pages, std::size_t page_tokens, bool findable);

  std::size_t pages() const { return pages_.size(); }
  std::size_t page_tokens() const { return page_tokens_; }
  /// Pages without owner.
  std::size_t available() const { return empty_.size() + unused_.size(); }

  /// The longest cached prefix of `tokens`, at most `most` pages. The caller becomes an owner.
  struct Found {
    std::vector<std::int32_t> pages;
    Content content = 0;
  };
  Found find(const Tokens& tokens, std::size_t most);

  /// A page owned by the caller only. Requires available() > 0.
  std::int32_t take();
  /// Makes `page` findable: it holds tokens [first, first + page_tokens) after `before`. Returns
  /// its content, that of an equal page if there is one.
  Content publish(std::int32_t page, Content before, const Tokens& tokens, std::size_t first);
  /// Releases the caller's ownership of these pages, in token order.
  void release(const std::vector<std::int32_t>& pages);

 private:
  struct Page {
    std::size_t owners = 0;
    Content content = 0, before = 0;  // content 0: cannot be found
    std::uint64_t hash = 0;
    Tokens tokens;
    std::list<std::int32_t>::iterator unused = {};  // its place in unused_, if without owner
  };
  std::uint64_t hash(Content before, const std::int32_t* tokens) const;
  std::int32_t look_up(Content before, const std::int32_t* tokens, std::uint64_t hash) const;
  void forget(Page& page, std::int32_t number);

  std::size_t page_tokens_;
  bool findable_;
  std::vector<Page> pages_;
  std::vector<std::int32_t> empty_;
  std::list<std::int32_t> unused_;  // findable, without owner; least recently used first
  std::unordered_multimap<std::uint64_t, std::int32_t> by_hash_;
  Content last_ = 0;
};

}  // namespace tern::generate::detail
