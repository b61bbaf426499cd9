#include "prepare/detail/problem_files.hpp"

#include <fmt/format.h>

#include <ostream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "text/bpe_training.hpp"

namespace tern::prepare::detail {

namespace {

using nlohmann::ordered_json;

/// JSON line, without the newline, of a conversation of a question and its answer.
std::string chat_line(const std::string& question, const std::string& answer) {
  return json_text(ordered_json{{"messages",
                                 {ordered_json{{"role", "user"}, {"content", question}},
                                  ordered_json{{"role", "assistant"}, {"content", answer}}}}});
}

}  // namespace

void write_chats(const std::filesystem::path& file, const std::vector<data::Sample>& samples,
                 const std::function<std::string(const data::Sample&)>& answer_of) {
  write_file(file, [&](std::ostream& out) {
    for (const data::Sample& sample : samples)
      out << chat_line(sample.question, answer_of(sample)) << '\n';
  });
}

void write_requests(const std::filesystem::path& file, const std::vector<data::Sample>& samples) {
  write_file(file, [&](std::ostream& out) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      out << json_text(ordered_json{
                 {"text", samples[i].question}, {"id", i}, {"label", samples[i].answer}})
          << '\n';
  });
}

void train_bpe(const NumberBpe& options, std::vector<std::string_view> texts,
               const std::filesystem::path& folder) {
  text::BpeTrainer trainer({options.vocabulary, text::PiecePattern::gpt4, options.threads});
  std::string numbers;
  for (int number = 0; number <= options.largest_number; ++number)
    numbers += fmt::format("{}.", number);
  texts.insert(texts.end(), options.weight, numbers);
  trainer.add(texts);
  trainer.train(folder);
}

int first_split_number(const text::Tokenizer& tokenizer, int largest) {
  for (int number = 0; number <= largest; ++number)
    if (tokenizer.id(std::to_string(number)) < 0) return number;
  return -1;
}

}  // namespace tern::prepare::detail
