#include "data/samples.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "base/utf8.hpp"
#include "base/wildcards.hpp"
#include "data/skeleton.hpp"

namespace tern::data {
namespace {

using nlohmann::json;

constexpr std::string_view answer_mark = "####", socratic_mark = " ** ";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// One record and its place, for messages.
struct Record {
  const json& object;
  std::string place;

  const std::string& text(const char* name) const {
    const auto found = object.find(name);
    if (found == object.end())
      user_error(
          "{}: the record has no \"{}\"; it has {}. Records are {{\"question\", \"answer\"}} or "
          "{{\"question\", \"plan\", \"execution\", \"answer\"}}",
          place, name, names());
    if (!found->is_string())
      user_error("{}: \"{}\" is {}, not a string; make it one", place, name,
                 excerpt(found->dump()));
    if (trimmed(found->get_ref<const std::string&>()).empty())
      user_error("{}: \"{}\" is empty; fill it, or remove the record", place, name);
    return found->get_ref<const std::string&>();
  }

  std::string names() const {
    std::string all;
    for (const auto& [name, value] : object.items())
      all += (all.empty() ? "\"" : ", \"") + excerpt(name) + "\"";
    return all.empty() ? "nothing" : excerpt(all, 400);
  }
};

/// A solution split into its steps and, if present, its answer.
struct Solution {
  std::vector<std::string> steps;
  std::optional<std::string> answer;
};

Solution split_solution(const std::string& text, const Record& record) {
  Solution solution;
  auto lines = trimmed_lines(text);
  if (!lines.empty() && lines.back().starts_with(answer_mark)) {
    solution.answer = final_number(lines.back());
    if (!solution.answer)
      user_error("{}: the last line '{}' contains no number; it must be like '#### 72'",
                 record.place, excerpt(lines.back()));
    lines.pop_back();
  }
  solution.steps.assign(lines.begin(), lines.end());
  return solution;
}

bool is_socratic(const Solution& solution) {
  if (solution.steps.empty()) return false;
  for (const std::string& step : solution.steps)
    if (step.find(socratic_mark) == step.npos) return false;
  return true;
}

/// Moves the sub-questions from the steps into a plan.
std::string take_sub_questions(Solution& solution) {
  std::string plan;
  for (std::string& step : solution.steps) {
    const std::size_t mark = step.find(socratic_mark);
    if (!plan.empty()) plan += '\n';
    plan += trimmed(std::string_view(step).substr(0, mark));
    step = trimmed(std::string_view(step).substr(mark + socratic_mark.size()));
  }
  return plan;
}

std::string number_field(const Record& record) {
  const auto found = record.object.find("answer");
  const bool number = found != record.object.end() && found->is_number();
  const std::string text = number ? found->dump() : record.text("answer");
  const auto answer =
      text.find(answer_mark) == text.npos ? normalized_number(text) : final_number(text);
  if (!answer)
    user_error("{}: \"answer\" is '{}', which is not a single number; use e.g. 72 or \"72\"",
               record.place, excerpt(text));
  return *answer;
}

/// Solution of a record with an "execution".
Solution execution_of(const Record& record) {
  Solution solution = split_solution(record.text("execution"), record);
  if (solution.answer && !record.object.contains("answer")) return solution;
  const std::string answer = number_field(record);
  if (solution.answer && *solution.answer != answer)
    user_error("{}: \"answer\" is {} but the execution ends with '#### {}'; make them agree",
               record.place, answer, *solution.answer);
  solution.answer = answer;
  return solution;
}

Solution answer_of(const Record& record) {
  Solution solution = split_solution(record.text("answer"), record);
  if (!solution.answer)
    user_error(
        "{}: the last line of \"answer\" is not like '#### 72', and the record has no "
        "\"execution\"; add one or the other",
        record.place);
  return solution;
}

std::string plan_of(const Record& record, Solution& solution, PlanRule rule) {
  std::string plan;
  if (is_socratic(solution)) plan = take_sub_questions(solution);
  if (record.object.contains("plan")) plan = trimmed(record.text("plan"));
  if (rule == PlanRule::none) return {};
  if (rule == PlanRule::data && !plan.empty()) return plan;
  plan.clear();
  for (const std::string& step : solution.steps) plan += step + '\n';
  return skeleton(plan);
}

Sample make_sample(const Record& record, PlanRule rule, Notes notes) {
  if (!record.object.is_object()) user_error("{}: not a JSON object", record.place);
  Sample sample;
  sample.question = trimmed(record.text("question"));
  Solution solution =
      record.object.contains("execution") ? execution_of(record) : answer_of(record);
  sample.plan = plan_of(record, solution, rule);
  for (const std::string& step : solution.steps)
    sample.execution += (notes == Notes::drop ? without_notes(step) : step) + '\n';
  sample.execution += fmt::format("{} {}", answer_mark, *solution.answer);
  sample.answer = *solution.answer;
  return sample;
}

json parse(std::string_view text, const std::string& place, const char* remedy) {
  try {
    return parse_json(text);
  } catch (const json::exception& error) {
    user_error("{}: this is not JSON ({}); {}", place, reason(error), remedy);
  }
}

void read_array(std::string_view text, const std::string& name, PlanRule rule, Notes notes,
                std::vector<Sample>& samples) {
  const json array =
      parse(text, name, "make it one JSON array, or start it with another character than '['");
  for (std::size_t i = 0; i < array.size(); ++i)
    samples.push_back(make_sample({array[i], fmt::format("{}[{}]", name, i)}, rule, notes));
}

void read_lines(LineReader& lines, PlanRule rule, Notes notes, std::vector<Sample>& samples) {
  for (const Line& line : lines) {
    if (line.blank()) continue;
    const std::string place = lines.place(line);
    const json object =
        parse(trimmed(line.text), place, "put one object on each line, or all in one JSON array");
    samples.push_back(make_sample({object, place}, rule, notes));
  }
}

}  // namespace

std::optional<std::string> normalized_number(std::string_view text) {
  std::string whole, fraction;
  bool negative = false, point = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == ',' || c == '$') continue;
    if (is_digit(c))
      (point ? fraction : whole) += c;
    else if (c == '-' && !negative && whole.empty() && !point)
      negative = true;
    else if (c == '.' && !point)
      point = true;
    else
      return std::nullopt;
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (whole.empty()) whole = "0";
  if (!fraction.empty()) whole += '.' + fraction;
  return negative && whole != "0" ? '-' + whole : whole;
}

std::optional<std::string> final_number(std::string_view text) {
  const std::size_t mark = text.rfind(answer_mark);
  if (mark == text.npos) return std::nullopt;
  text.remove_prefix(mark + answer_mark.size());
  return normalized_number(text.substr(0, text.find('\n')));
}

std::vector<Sample> read_samples(const std::vector<std::string>& patterns, PlanRule rule,
                                 Notes notes) {
  std::vector<Sample> samples;
  for (const auto& path : expand_wildcards(
           patterns, "file of samples",
           "provide JSON lines like those of GSM8K, or make some with ./prepare arithmetic")) {
    LineReader lines(path);
    const std::string name = path.string();
    const std::size_t before = samples.size();
    const std::string_view text = trimmed(lines.text());
    if (text.empty()) user_error("{}: the file is empty; download or make it again", name);
    if (text.front() == '[')
      read_array(text, name, rule, notes, samples);
    else
      read_lines(lines, rule, notes, samples);
    if (samples.size() == before) user_error("{}: the file contains no samples", name);
  }
  return samples;
}

}  // namespace tern::data
