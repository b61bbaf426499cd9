#include "objective/detail/token_shards.hpp"

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "words/numbers.hpp"

namespace tern::objective::detail {

data::DataSet open_shards(const deck::Deck& deck, const std::vector<std::string>& files) {
  data::DataSet set;
  set.shards =
      std::make_unique<data::Shards>(files, static_cast<std::size_t>(deck.model.vocabulary),
                                     static_cast<std::size_t>(deck.data.threads));
  return set;
}

data::DataSet with_windows(data::DataSet set, const deck::Deck& deck,
                           const std::vector<std::string>& files) {
  if (set.source->rows() == 0)
    user_error(
        "&data {} holds {} tokens, too few for one sequence of &model context = {} + 1: add data "
        "or shorten the context",
        fmt::join(files, ", "), set.shards->tokens(), deck.model.context);
  set.size = {set.source->rows(), set.source->rows()};
  set.summary = token_count(static_cast<std::int64_t>(set.shards->tokens()));
  return set;
}

}  // namespace tern::objective::detail
