#include "answer/detail/progress.hpp"

namespace tern::answer::detail {
namespace {

double percent(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string time_in_words(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02d} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02d} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

void BulkProgress::at(std::size_t done, const generate::Figures& f) {
  if (!log_.prints() || since_last_.seconds() < seconds_between_lines) return;
  const double seconds = since_last_.restart();
  const auto rate = [&](std::size_t now, std::size_t before) {
    return static_cast<double>(now - before) / seconds;
  };
  const double pace = static_cast<double>(done) / timer_.seconds();
  log_.line(
      "{}{}/{} requests, {:.1f}/s, {:.0f} prompt and {:.0f} new tokens/s, {:.0f}% of prompts "
      "reused, cache {:.0f}% in use, {} left",
      replicas_ > 1 ? fmt::format("replica {} of {}: ", replica_ + 1, replicas_) : "", done,
      requests_, rate(done, last_done_), rate(f.prompt_tokens, last_.prompt_tokens),
      rate(f.new_tokens, last_.new_tokens),
      percent(f.reused_tokens, f.reused_tokens + f.computed_tokens),
      percent(f.pages_in_use, f.pages),
      done > 0 ? time_in_words(static_cast<double>(requests_ - done) / pace) : "unknown time");
  last_ = f;
  last_done_ = done;
}

}  // namespace tern::answer::detail
