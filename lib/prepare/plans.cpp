#include "prepare/plans.hpp"

#include <ostream>
#include <unordered_map>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "data/samples.hpp"
#include "data/skeleton.hpp"
#include "prepare/detail/output_folder.hpp"
#include "text/chat.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* prompt =
    "Below are a problem and its solution. Write a plan for someone who has not seen the solution: "
    "what to find out, in which order. One to five short sentences on one line, without numbers "
    "and "
    "without the answer. Write the plan and nothing else.\n\n{text}\n";

std::string request_of(const data::Sample& sample) {
  return fmt::format("Problem: {}\n\nSolution:\n{}", sample.question,
                     data::without_notes(sample.execution));
}

void write_requests(const fs::path& folder, const std::vector<data::Sample>& samples) {
  write_file(folder / "requests.jsonl", [&](std::ostream& out) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      out << json_text(ordered_json{{"text", request_of(samples[i])}, {"id", i}}) << '\n';
  });
  write_file(folder / "prompt.txt", [&](std::ostream& out) { out << prompt; });
}

/// Plans by the number of the problem.
using Plans = std::unordered_map<std::size_t, std::string>;

Plans read_plans(const fs::path& file, const std::vector<data::Sample>& samples) {
  LineReader lines(file, "pass --answers answers.jsonl of the run that wrote the plans");
  Plans plans;
  for (const Line& line : lines) {
    if (line.blank()) continue;
    const std::string place = lines.place(line);
    const ordered_json object = try_ordered_json(line.text);
    const text::Conversation chat = text::parse_conversation(line.text, place);
    const bool known = object.contains("id") && object["id"].is_number_unsigned() &&
                       object["id"].get<std::size_t>() < samples.size();
    if (!known || chat.messages.size() != 2 ||
        chat.messages[0].content != request_of(samples[object["id"].get<std::size_t>()]))
      user_error(
          "{}: no answer to a request for these problems; give --input the file of problems that "
          "the requests were made from",
          place);
    const auto id = object["id"].get<std::size_t>();
    if (!plans.emplace(id, chat.messages[1].content).second)
      user_error("{}: a second plan for problem {}; remove one", place, id);
  }
  return plans;
}

bool is_part_of_number(char c) { return (c >= '0' && c <= '9') || c == '.' || c == ','; }

/// Whether a plan says the answer, as a number of its own.
bool tells(const std::string& plan, const std::string& answer) {
  for (std::size_t at = 0; at < plan.size();) {
    std::size_t end = at;
    while (end < plan.size() && is_part_of_number(plan[end])) ++end;
    if (end > at && data::normalized_number(plan.substr(at, end - at)) == answer) return true;
    at = std::max(end, at + 1);
  }
  return false;
}

PlansSummary write_samples(const fs::path& file, const std::vector<data::Sample>& samples,
                           const Plans& plans) {
  PlansSummary summary;
  write_file(file, [&](std::ostream& out) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const data::Sample& sample = samples[i];
      const auto found = plans.find(i);
      ordered_json record{{"question", sample.question}};
      if (found != plans.end() && tells(found->second, sample.answer)) {
        ++summary.telling;
      } else if (found != plans.end()) {
        record["plan"] = found->second;
        ++summary.planned;
      }
      record["execution"] = sample.execution;
      record["answer"] = sample.answer;
      out << json_text(record) << '\n';
    }
  });
  return summary;
}

ordered_json meta_of(const PlansOptions& options, const PlansSummary& summary) {
  ordered_json meta = {{"input", options.input.string()}, {"problems", summary.problems}};
  if (!options.answers.empty())
    meta.update({{"answers", options.answers.string()},
                 {"planned", summary.planned},
                 {"telling", summary.telling}});
  return meta;
}

}  // namespace

PlansSummary prepare_plans(const PlansOptions& options, Log& log) {
  if (options.output.empty()) user_error("no output folder is named; give --output data/NAME");
  const bool asks = options.answers.empty();
  const std::vector<data::Sample> samples =
      data::read_samples({options.input.string()}, data::PlanRule::none);
  PlansSummary summary;
  std::vector<fs::path> inputs{options.input};
  if (!asks) inputs.push_back(options.answers);
  detail::OutputFolder folder(options.output, options.force, inputs);
  if (asks)
    write_requests(folder.path(), samples);
  else
    summary = write_samples(folder.path() / "samples.jsonl", samples,
                            read_plans(options.answers, samples));
  summary.problems = samples.size();
  folder.publish(meta_of(options, summary));
  if (asks)
    log.line("{} is ready: {} requests for plans, and the prompt", options.output.string(),
             summary.problems);
  else
    log.line(
        "{} is ready: {} problems, {} with a plan of the model; {} plans say the answer and "
        "are left out",
        options.output.string(), summary.problems, summary.planned, summary.telling);
  return summary;
}

}  // namespace tern::prepare
