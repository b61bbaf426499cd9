/// --export: weights and tokenizer as a Transformers directory.
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "campaign/tasks.hpp"
#include "campaign/weights.hpp"
#include "campaign/writer.hpp"
#include "checkpoint/transformers.hpp"
#include "data/tokenizer_export.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;

/// Where texts of the model begin, and what ends them: of a chat model, an answer.
checkpoint::TransformersTokens tokens_of(const deck::Deck& deck, const data::Tokenizer& tokenizer) {
  const std::int64_t end_of_text = tokenizer.end_of_text();
  if (deck.objective.kind != "supervised") return {end_of_text, end_of_text};
  const auto rules = data::chat_rules(deck.data.chat_template, deck.data.thinking);
  return {end_of_text, data::answer_ends(rules, tokenizer).front()};
}

/// Weights and tokenizer to a folder that gets its name when it is complete.
void export_all(const deck::Deck& deck, const fs::path& directory, Log& log) {
  if (fs::exists(directory) && !(fs::is_directory(directory) && fs::is_empty(directory)))
    user_error("--export {}: exists and is not overwritten; name a new directory",
               directory.string());
  const std::string source = weights_source(deck);
  std::unique_ptr<data::Tokenizer> tokenizer;
  std::string missing;
  try {
    tokenizer = open_tokenizer(deck);
  } catch (const UserError& e) {
    missing = e.what();
  }
  fs::path draft = fs::absolute(directory).lexically_normal();
  if (!draft.has_filename()) draft = draft.parent_path();  // DIR/
  draft += ".partial";
  fs::remove_all(draft);
  export_weights(deck, source, draft,
                 tokenizer ? tokens_of(deck, *tokenizer) : checkpoint::TransformersTokens{}, log);
  const bool supervised = deck.objective.kind == "supervised";
  // Beside weights in a Transformers directory stands its tokenizer, which has been copied.
  const fs::path like = checkpoint::is_transformers(source) ? source : deck.model.load;
  const bool theirs = checkpoint::is_transformers(like) && fs::exists(like / "tokenizer.json") &&
                      (!tokenizer || deck.data.tokenizer == like);
  if (tokenizer && !theirs)
    data::export_tokenizer(
        deck.data.tokenizer, tokenizer_search(deck),
        supervised ? std::optional(data::chat_rules(deck.data.chat_template, deck.data.thinking))
                   : std::nullopt,
        deck.model.context, draft);
  if (!tokenizer && !theirs) log.warning("exported without a tokenizer: {}", missing);
  if (fs::exists(directory)) fs::remove(directory);  // it is empty
  fs::rename(draft, directory);
  log.line("exported to {}", directory.string());
}

}  // namespace

int export_model(const deck::Deck& deck, const std::string& directory, comm::Group& group,
                 Log& log) {
  const std::string& kind = deck.objective.kind;
  if (kind != "causal" && kind != "supervised")
    user_error(
        "--export: no model of Transformers predicts as &objective kind = '{}' does; read the "
        "weights from checkpoint.h5 in {}",
        kind, deck.output.directory);
  if (group.rank() == 0) export_all(deck, directory, log);
  group.barrier();
  return finished;
}

}  // namespace tern::campaign
