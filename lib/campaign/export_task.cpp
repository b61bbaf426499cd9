/// --export: weights and tokenizer as a Transformers directory.
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "campaign/tasks.hpp"
#include "campaign/writer.hpp"
#include "deck/objective_kind.hpp"
#include "job/exit_code.hpp"
#include "text/deck_tokenizer.hpp"
#include "text/tokenizer_export.hpp"
#include "transformers/directory.hpp"
#include "weights/weights.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;

/// Tokens that begin and end the model's texts; for a chat model, that end an answer.
transformers::TransformersTokens tokens_of(const deck::Deck& deck,
                                           const text::Tokenizer& tokenizer) {
  const std::int64_t end_of_text = tokenizer.end_of_text();
  if (!deck::kind_of(deck).answers) return {end_of_text, end_of_text};
  const auto rules = text::chat_rules(deck.data.chat_template, deck.data.thinking);
  return {end_of_text, text::answer_ends(rules, tokenizer).front()};
}

/// Removes the folder unless it has been renamed.
class Draft {
 public:
  explicit Draft(const fs::path& folder) : folder_(folder) {}
  ~Draft() { remove_quietly(folder_); }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

 private:
  const fs::path& folder_;
};

/// Writes weights and tokenizer to a folder that is renamed into place when complete.
void export_all(const deck::Deck& deck, const fs::path& directory, Log& log) {
  if (fs::exists(directory) && !(fs::is_directory(directory) && fs::is_empty(directory)))
    user_error("--export {}: exists and is not overwritten; name a new directory",
               directory.string());
  const std::string source = weights::weights_source(deck);
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::string missing;
  try {
    tokenizer = text::open_tokenizer(deck);
  } catch (const UserError& e) {
    missing = e.what();
  }
  fs::path draft = fs::absolute(directory).lexically_normal();
  if (!draft.has_filename()) draft = draft.parent_path();  // trailing slash
  // A name of its own: a folder that is there is another's.
  draft += ".partial-" + unique_token();
  const Draft unless_published(draft);
  weights::export_weights(
      deck, source, draft,
      tokenizer ? tokens_of(deck, *tokenizer) : transformers::TransformersTokens{}, log);
  const bool answers = deck::kind_of(deck).answers;
  // A Transformers directory has its tokenizer next to the weights; it has been copied.
  const fs::path like = transformers::is_transformers(source) ? source : deck.model.load;
  const bool theirs = transformers::is_transformers(like) && fs::exists(like / "tokenizer.json") &&
                      (!tokenizer || deck.data.tokenizer == like);
  if (tokenizer && !theirs)
    text::export_tokenizer(
        deck.data.tokenizer, text::tokenizer_search(deck),
        answers ? std::optional(text::chat_rules(deck.data.chat_template, deck.data.thinking))
                : std::nullopt,
        deck.model.context, draft);
  if (!tokenizer && !theirs) log.warning("exported without a tokenizer: {}", missing);
  if (fs::exists(directory)) fs::remove(directory);  // empty
  fs::rename(draft, directory);
  log.line("exported to {}", directory.string());
}

}  // namespace

int export_model(const deck::Deck& deck, const std::string& directory, comm::Group& group,
                 Log& log) {
  if (!deck::kind_of(deck).exportable)
    user_error(
        "--export: no model of Transformers predicts as &objective kind = '{}' does; read the "
        "weights from checkpoint.h5 in {}",
        deck.objective.kind, deck.output.directory);
  if (group.rank() == 0) export_all(deck, directory, log);
  group.barrier();
  return job::finished;
}

}  // namespace tern::campaign
