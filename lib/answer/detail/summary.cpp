#include "answer/detail/summary.hpp"

#include <fmt/format.h>

#include "base/files.hpp"
#include "plan/devices.hpp"

namespace tern::answer::detail {
namespace {

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string rejects_in_words(const AnswerSummary& s) {
  std::string words;
  for (const auto& [kind, count] : s.rejects)
    words += fmt::format("{}{} {}", words.empty() ? ": " : ", ", count, kind);
  return fmt::format("{} rejects{}", s.requests - s.good, words);
}

double AnswerSummary::rate(std::size_t count) const {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}
double AnswerSummary::prompt_tokens_each() const { return share(prompt_tokens, requests); }
double AnswerSummary::reused_share() const {
  return share(reused_tokens, reused_tokens + computed_tokens);
}
double AnswerSummary::dollars_per_1000() const {
  return dollars_per_gpu_hour * devices * seconds / 3600 / static_cast<double>(requests) * 1000;
}

nlohmann::ordered_json AnswerSummary::to_json() const {
  return {{"name", name},
          {"requests", requests},
          {"good", good},
          {"rejects", rejects},
          {"prompt_tokens", prompt_tokens},
          {"prompt_tokens_each", prompt_tokens_each()},
          {"reused_share", reused_share()},
          {"new_tokens", new_tokens},
          {"seconds", seconds},
          {"sessions", sessions},
          {"devices", devices},
          {"device", device},
          {"requests_per_second", rate(requests)},
          {"prompt_tokens_per_second", rate(prompt_tokens)},
          {"new_tokens_per_second", rate(new_tokens)},
          {"dollars_per_1000", dollars_per_1000()}};
}

AnswerSummary summarize(const deck::Deck& deck, const Journal& parts, int devices) {
  AnswerSummary s;
  s.name = deck.campaign.name;
  s.requests = parts.records.size();
  for (const AnswerRecord& r : parts.records) {
    s.good += r.good() ? 1 : 0;
    if (!r.good()) ++s.rejects[r.reject];
    s.prompt_tokens += r.prompt_tokens;
    s.new_tokens += r.new_tokens;
  }
  s.computed_tokens = parts.computed_tokens;
  s.reused_tokens = parts.reused_tokens;
  s.seconds = parts.seconds;
  s.sessions = parts.sessions;
  s.devices = devices;
  s.device = plan::PlannedDevice().name();
  s.dollars_per_gpu_hour = deck.cost.dollars_per_gpu_hour;
  return s;
}

std::optional<double> measured_rate(const AnswerFiles& files, const std::string& device,
                                    int devices) {
  try {
    const auto object = parse_ordered_json(read_text_or_empty(files.summary()));
    if (object.at("device") != device || object.at("devices") != devices) return std::nullopt;
    const double rate = object.at("requests_per_second");
    return rate > 0 ? std::optional(rate / devices) : std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // missing, or of an interrupted run
  }
}

std::string table(const AnswerSummary& s, const AnswerFiles& files) {
  std::string text = fmt::format(
      "answers\n  {:<14}{}, {} good, {}\n  {:<14}{}, {:.1f} per request, {:.1f}% reused\n"
      "  {:<14}{}, {:.1f} per request\n  {:<14}{:.1f} s on {} device{}{}\n"
      "  {:<14}{:.1f} requests/s, {:.0f} prompt and {:.0f} new tokens/s\n",
      "requests", s.requests, s.good, rejects_in_words(s), "prompt tokens", s.prompt_tokens,
      s.prompt_tokens_each(), 100 * s.reused_share(), "new tokens", s.new_tokens,
      share(s.new_tokens, s.requests), "time", s.seconds, s.devices, s.devices > 1 ? "s" : "",
      s.sessions > 1 ? fmt::format(", started {} times", s.sessions) : "", "rate",
      s.rate(s.requests), s.rate(s.prompt_tokens), s.rate(s.new_tokens));
  if (s.dollars_per_gpu_hour > 0)
    text += fmt::format("  {:<14}${:.2f}, ${:.4f} per 1,000 answers\n", "cost",
                        s.dollars_per_1000() * static_cast<double>(s.requests) / 1000,
                        s.dollars_per_1000());
  return text + fmt::format("  {:<14}{}{}", "written", files.answers.string(),
                            s.good < s.requests ? ", " + files.rejects().string() : "");
}

}  // namespace tern::answer::detail
