#include "answer/answer_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "answer/interval.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/lines.hpp"
#include "text/chat.hpp"

namespace tern::answer {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ReferenceAnswer {
  std::string text, answer;
};

ReferenceAnswer reference_of(const ordered_json& object, std::string_view line,
                             const std::string& place) {
  const text::Conversation chat = text::parse_conversation(line, place);
  if (chat.messages.size() != 2 || !object.contains("id"))
    user_error(
        "{}: not an answer with an \"id\"; set &evaluation reference to a file of answers of "
        "another run",
        place);
  return {chat.messages[0].content, chat.messages[1].content};
}

std::unordered_map<std::string, ReferenceAnswer> read_reference(const fs::path& path) {
  if (!fs::is_regular_file(path))
    user_error("{}: no such file; set &evaluation reference to a file of answers of another run",
               path.string());
  std::unordered_map<std::string, ReferenceAnswer> answers;
  LineReader lines(path);
  for (const Line& line : lines) {
    if (line.text.empty()) continue;
    const auto object = try_ordered_json(line.text);
    ReferenceAnswer answer = reference_of(object, line.text, lines.place(line));
    answers.emplace(plain_text(object.at("id")), std::move(answer));
  }
  return answers;
}

void compare(AnswerScores& scores, const std::vector<ChatRequest>& requests,
             const std::vector<detail::AnswerRecord>& records, const fs::path& path) {
  const auto reference = read_reference(path);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::string id = plain_text(requests[i].id);
    const auto found = reference.find(id);
    if (found == reference.end()) continue;
    if (found->second.text != requests[i].text)
      user_error(
          "{}: the answer with id {} is to another text than in &generation input; use answers to "
          "the same file",
          path.string(), id);
    ++scores.compared;
    scores.agreeing += records[i].good() && records[i].text == found->second.answer ? 1 : 0;
  }
  if (scores.compared == 0)
    user_error(
        "{}: answers none of the requests of &generation input; use answers to the same file",
        path.string());
}

double share(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.1f}%", 100 * share(part, whole));
}

std::string with_interval(std::size_t part, std::size_t whole) {
  if (whole == 0) return "-";
  const Interval i = wilson(static_cast<std::int64_t>(part), static_cast<std::int64_t>(whole));
  return fmt::format("{} ({:.1f} to {:.1f})", percent(part, whole), 100 * i.low, 100 * i.high);
}

std::string row(const AnswerScores& g, std::size_t width) {
  if (!g.missing.empty()) return fmt::format("\n  {:<{}}  {}", g.name, width, g.missing);
  return fmt::format("\n  {:<{}}  {:>22}  {:>9}  {:>7}  {:>9.1f}  {:>9.0f}  {:>13.1f}  {:>9}",
                     g.name, width, with_interval(g.correct, g.labeled),
                     percent(g.agreeing, g.compared), percent(g.good, g.requests),
                     g.requests_per_second, g.tokens_per_second, g.prompt_tokens_each,
                     g.dollars_per_1000 > 0 ? fmt::format("${:.4f}", g.dollars_per_1000) : "-");
}

}  // namespace

AnswerScores judge(const std::vector<ChatRequest>& requests,
                   const std::vector<detail::AnswerRecord>& records, const detail::AnswerSummary& s,
                   const fs::path& reference) {
  TERN_REQUIRE(requests.size() == records.size());
  AnswerScores scores;
  scores.name = s.name;
  scores.requests = s.requests;
  scores.good = s.good;
  scores.requests_per_second = s.rate(s.requests);
  scores.tokens_per_second = s.rate(s.prompt_tokens + s.new_tokens);
  scores.prompt_tokens_each = s.prompt_tokens_each();
  scores.dollars_per_1000 = s.dollars_per_1000();
  scores.sampling = {static_cast<std::int64_t>(s.new_tokens), s.seconds};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].label.is_null()) continue;
    ++scores.labeled;
    scores.correct += records[i].good() && records[i].text == plain_text(requests[i].label) ? 1 : 0;
  }
  if (!reference.empty()) compare(scores, requests, records, reference);
  return scores;
}

void write_evaluation(const AnswerScores& g, const fs::path& directory) {
  ordered_json object = {{"name", g.name},
                         {"requests", g.requests},
                         {"good", g.good},
                         {"labeled", g.labeled},
                         {"correct", g.correct},
                         {"compared", g.compared},
                         {"agreeing", g.agreeing},
                         {"requests_per_second", g.requests_per_second},
                         {"tokens_per_second", g.tokens_per_second},
                         {"prompt_tokens_each", g.prompt_tokens_each},
                         {"dollars_per_1000", g.dollars_per_1000},
                         {"sampling", g.sampling.to_json()}};
  const auto add = [&](const char* name, std::size_t part, std::size_t whole) {
    if (whole > 0)
      add_fraction(object, name, static_cast<std::int64_t>(part), static_cast<std::int64_t>(whole));
  };
  add("exact_match", g.correct, g.labeled);                       // as of problems
  if (g.labeled > 0) object["accuracy"] = object["exact_match"];  // its earlier name
  add("agreement", g.agreeing, g.compared);
  const fs::path path = directory / "evaluation.json";
  if (!replace_file(path, json_text(object, 2) + '\n'))
    user_error("{}: cannot be written; check free space and permissions", path.string());
}

AnswerScores read_evaluation(const fs::path& directory) {
  AnswerScores scores;
  scores.name = directory.filename().empty() ? directory.parent_path().filename().string()
                                             : directory.filename().string();
  const fs::path path = directory / "evaluation.json";
  if (!fs::exists(path)) {
    scores.missing = fmt::format("{} is missing; evaluate that run first", path.string());
    return scores;
  }
  try {
    const auto object = parse_ordered_json(read_text_or_empty(path));
    object.at("name").get_to(scores.name);
    object.at("requests").get_to(scores.requests);
    object.at("good").get_to(scores.good);
    // Runs of earlier versions have `labelled`.
    object.at(object.contains("labelled") ? "labelled" : "labeled").get_to(scores.labeled);
    object.at("correct").get_to(scores.correct);
    object.at("compared").get_to(scores.compared);
    object.at("agreeing").get_to(scores.agreeing);
    object.at("requests_per_second").get_to(scores.requests_per_second);
    object.at("tokens_per_second").get_to(scores.tokens_per_second);
    object.at("prompt_tokens_each").get_to(scores.prompt_tokens_each);
    object.at("dollars_per_1000").get_to(scores.dollars_per_1000);
  } catch (const nlohmann::json::exception&) {
    scores.missing = fmt::format("{} cannot be read; evaluate that run again", path.string());
  }
  return scores;
}

std::string scores_table(const std::vector<AnswerScores>& rows) {
  std::size_t width = 4;
  for (const AnswerScores& g : rows) width = std::max(width, g.name.size());
  std::string text = fmt::format("gap\n  {:<{}}  {:>22}  {:>9}  {:>7}  {:>9}  {:>9}  {:>13}  {:>9}",
                                 "run", width, "accuracy (95%)", "agreement", "valid", "answers/s",
                                 "tokens/s", "prompt tokens", "$ / 1,000");
  for (const AnswerScores& g : rows) text += row(g, width);
  return text;
}

}  // namespace tern::answer
