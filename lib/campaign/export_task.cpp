/// --export: weights and tokenizer as a Transformers directory.
#include <filesystem>
#include <optional>

#include "answer/prompt.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "campaign/tasks.hpp"
#include "deck/objective_kind.hpp"
#include "job/exit_code.hpp"
#include "text/deck_tokenizer.hpp"
#include "text/tokenizer_export.hpp"
#include "transformers/directory.hpp"
#include "weights/weights.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;

/// Tokens that begin and end the model's texts; if it `learned` conversations, that end an answer.
transformers::TransformersTokens tokens_of(const deck::Deck& deck, const text::Tokenizer& tokenizer,
                                           bool learned) {
  transformers::TransformersTokens tokens{tokenizer.end_of_text(), tokenizer.end_of_text()};
  if (!learned) return tokens;
  const auto ends = answer::end_tokens(deck, answer::prompt_rules(deck), tokenizer);
  tokens.end = ends.front();
  tokens.ends.assign(ends.begin(), ends.end());
  tokens.trained = true;
  return tokens;
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
  const std::string source = weights::weights_source(deck, &log);
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::string missing;
  try {
    tokenizer = text::open_tokenizer(deck);
  } catch (const UserError& e) {
    missing = e.what();
  }
  // Conversations that a run learned are written as it wrote them; weights of a Transformers directory
  // keep the format that they came with, and so does a model trained further on texts.
  const bool learned = deck::kind_of(deck).answers && !transformers::is_transformers(source);
  if (learned && !tokenizer)
    user_error("--export names the end tokens and the chat template of training: {}", missing);
  text::TextFormat format;
  if (learned) format.chat = text::chat_rules(deck.data.chat_template, deck.data.thinking);
  format.tokenizers_own =
      transformers::is_transformers(source) || transformers::is_transformers(deck.model.load);
  fs::path draft = fs::absolute(directory).lexically_normal();
  if (!draft.has_filename()) draft = draft.parent_path();  // trailing slash
  // A name of its own: a folder that is there is another's.
  draft += ".partial-" + unique_token();
  const Draft unless_published(draft);
  weights::export_weights(
      deck, source, draft,
      tokenizer ? tokens_of(deck, *tokenizer, learned) : transformers::TransformersTokens{}, log);
  // A Transformers directory has its tokenizer next to the weights; it has been copied.
  const fs::path like = transformers::is_transformers(source) ? source : deck.model.load;
  const bool theirs = transformers::is_transformers(like) && fs::exists(like / "tokenizer.json") &&
                      (!tokenizer || deck.data.tokenizer == like);
  if (tokenizer && !theirs)
    text::export_tokenizer(deck.data.tokenizer, text::tokenizer_search(deck), format,
                           deck.model.context, draft);
  if (theirs && learned) text::write_format(*tokenizer, format, draft);
  if (learned)
    log.line("chat template and end token are those of training, chat_template = '{}'{}",
             deck.data.chat_template, theirs ? fmt::format(", not of {}", like.string()) : "");
  if (!tokenizer && !theirs) log.warning("exported without a tokenizer: {}", missing);
  if (fs::exists(directory)) fs::remove(directory);  // empty
  fs::rename(draft, directory);
  log.result("exported to {}", directory.string());
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
