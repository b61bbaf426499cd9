#include "generate/detail/page_pool.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/hashes.hpp"

namespace tern::generate::detail {

PagePool::PagePool(std::size_t pages, std::size_t page_tokens, bool findable)
    : page_tokens_(page_tokens), findable_(findable), pages_(pages) {
  for (std::size_t p = pages; p-- > 0;) empty_.push_back(static_cast<std::int32_t>(p));
}

/// Mixed once more; matches are always compared as well.
std::uint64_t PagePool::hash(Content before, const std::int32_t* tokens) const {
  Fnv hash;
  hash.add_word(before);
  for (std::size_t i = 0; i < page_tokens_; ++i)
    hash.add_word(static_cast<std::uint32_t>(tokens[i]));
  return (hash.value() ^ hash.value() >> 32) * 0x9e3779b97f4a7c15u;
}

std::int32_t PagePool::look_up(Content before, const std::int32_t* tokens,
                               std::uint64_t hash) const {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const Page& page = pages_[static_cast<std::size_t>(at->second)];
    if (page.before == before && std::equal(page.tokens.begin(), page.tokens.end(), tokens))
      return at->second;
  }
  return -1;
}

PagePool::Found PagePool::find(const Tokens& tokens, std::size_t most) {
  Found found;
  if (!findable_) return found;
  while (found.pages.size() < most && (found.pages.size() + 1) * page_tokens_ <= tokens.size()) {
    const std::int32_t* next = tokens.data() + found.pages.size() * page_tokens_;
    const std::int32_t number = look_up(found.content, next, hash(found.content, next));
    if (number < 0) break;
    Page& page = pages_[static_cast<std::size_t>(number)];
    if (page.owners++ == 0) unused_.erase(page.unused);
    found.pages.push_back(number);
    found.content = page.content;
  }
  return found;
}

std::int32_t PagePool::take() {
  TERN_REQUIRE(available() > 0, "no page of {} is left", pages_.size());
  std::int32_t number;
  if (!empty_.empty()) {
    number = empty_.back();
    empty_.pop_back();
  } else {
    number = unused_.front();
    unused_.pop_front();
    forget(pages_[static_cast<std::size_t>(number)], number);
  }
  pages_[static_cast<std::size_t>(number)].owners = 1;
  return number;
}

PagePool::Content PagePool::publish(std::int32_t number, Content before, const Tokens& tokens,
                                    std::size_t first) {
  if (!findable_) return 0;
  TERN_REQUIRE(first + page_tokens_ <= tokens.size(), "{} tokens from {} of {}", page_tokens_,
               first, tokens.size());
  const std::int32_t* held = tokens.data() + first;
  const std::uint64_t h = hash(before, held);
  if (const std::int32_t equal = look_up(before, held, h); equal >= 0)
    return pages_[static_cast<std::size_t>(equal)].content;
  Page& page = pages_[static_cast<std::size_t>(number)];
  page.content = ++last_;
  page.before = before;
  page.hash = h;
  page.tokens.assign(held, held + page_tokens_);
  by_hash_.emplace(h, number);
  return page.content;
}

void PagePool::release(const std::vector<std::int32_t>& pages) {
  // Ends of sequences before their prefixes, which are more likely to be shared.
  for (auto at = pages.rbegin(); at != pages.rend(); ++at) {
    Page& page = pages_[static_cast<std::size_t>(*at)];
    TERN_REQUIRE(page.owners > 0, "page {} has no owner", *at);
    if (--page.owners > 0) continue;
    if (page.content == 0)
      empty_.push_back(*at);
    else
      page.unused = unused_.insert(unused_.end(), *at);
  }
}

void PagePool::forget(Page& page, std::int32_t number) {
  const auto [first, last] = by_hash_.equal_range(page.hash);
  for (auto at = first; at != last; ++at)
    if (at->second == number) {
      by_hash_.erase(at);
      break;
    }
  page.content = 0;
}

}  // namespace tern::generate::detail
