#include "text/bpe_training.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <unordered_map>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/utf8.hpp"
#include "text/detail/pair_queue.hpp"
#include "text/detail/pretokenizer.hpp"
#include "text/detail/tokenizer_files.hpp"

namespace tern::text {
namespace {

constexpr std::size_t byte_count = 256;
constexpr std::int64_t min_count = 2;  // pairs that occur once are not merged

/// Heterogeneous lookup: finds views without constructing strings.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
using WordCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

void count_words(std::string_view text, const detail::Pretokenizer& pretokenizer,
                 WordCounts& counts) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    pieces.clear();
    if (valid > 0) pretokenizer.split(text.substr(0, valid), pieces);
    for (const std::string_view piece : pieces) {
      const auto found = counts.find(piece);
      if (found != counts.end())
        ++found->second;
      else
        counts.emplace(piece, 1);
    }
    text.remove_prefix(std::min(text.size(), valid + 1));
  }
}

}  // namespace

struct BpeTrainer::Impl {
  BpeTrainingOptions options;
  std::unique_ptr<detail::Pretokenizer> pretokenizer;
  std::vector<WordCounts> counts;  // one per thread

  /// Distinct words with their counts, sorted bytewise. Clears the counts.
  std::vector<std::pair<std::string, std::int64_t>> words() {
    WordCounts sum;
    for (WordCounts& part : counts) {
      for (const auto& [word, count] : part) sum[word] += count;
      part.clear();
    }
    std::vector<std::pair<std::string, std::int64_t>> sorted(sum.begin(), sum.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
};

BpeTrainer::BpeTrainer(const BpeTrainingOptions& options) : impl_(std::make_unique<Impl>()) {
  if (options.vocabulary < byte_count + options.special.size())
    user_error(
        "a BPE vocabulary of {} tokens is too small: the bytes and {} already take {}; raise it",
        options.vocabulary, fmt::join(options.special, ", "), byte_count + options.special.size());
  impl_->options = options;
  impl_->pretokenizer = options.pattern == PiecePattern::gpt2
                            ? detail::gpt2_pretokenizer()
                            : detail::regex_pretokenizer(detail::gpt4_pattern);
  impl_->counts.resize(std::max<std::size_t>(1, options.threads));
}

BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::add(const std::vector<std::string_view>& texts) {
  std::atomic<std::size_t> next{0};
  parallel_for(impl_->counts.size(), impl_->counts.size(), [&](std::size_t thread) {
    for (std::size_t i = next++; i < texts.size(); i = next++)
      count_words(texts[i], *impl_->pretokenizer, impl_->counts[thread]);
  });
}

void BpeTrainer::train(const std::filesystem::path& folder) {
  detail::PairQueue pairs(impl_->words());
  std::vector<std::string> tokens;
  for (std::size_t byte = 0; byte < byte_count; ++byte)
    tokens.push_back(std::string(1, static_cast<char>(byte)));
  std::unordered_map<std::string, std::int32_t> ids;
  for (std::size_t i = 0; i < tokens.size(); ++i) ids[tokens[i]] = static_cast<std::int32_t>(i);

  std::vector<detail::Merge> merges;
  std::set<detail::PairQueue::Pair> joined;
  const auto& special = impl_->options.special;  // last ids
  const std::size_t target = impl_->options.vocabulary - special.size();
  while (tokens.size() < target) {
    const auto [pair, count] = pairs.top();
    if (count < min_count)
      user_error(
          "the text is too small for a vocabulary of {}: it has repeated pairs for only {} tokens; "
          "lower the vocabulary or add text",
          impl_->options.vocabulary, tokens.size() + special.size());
    const std::string bytes = tokens[pair.first] + tokens[pair.second];
    // Another pair may have produced the same bytes before: then the token is the same.
    const auto [place, fresh] = ids.emplace(bytes, static_cast<std::int32_t>(tokens.size()));
    if (fresh) tokens.push_back(bytes);
    // Such a token may meet a former partner again: the merge keeps its rank.
    if (joined.insert(pair).second) merges.push_back({pair.first, pair.second, place->second});
    pairs.merge(pair, place->second);
  }
  std::vector<detail::AddedToken> added;
  for (const std::string& name : special)
    added.push_back({name, static_cast<std::int32_t>(tokens.size() + added.size()), true});
  detail::write_tokenizer_json(folder / "tokenizer.json", tokens, merges, impl_->options.pattern,
                               added);
}

}  // namespace tern::text
