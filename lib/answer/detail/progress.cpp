#include "answer/detail/progress.hpp"

#include <algorithm>

#include "words/numbers.hpp"

namespace tern::answer::detail {
namespace {

std::string percent(std::size_t part, std::size_t whole) {
  const double all = static_cast<double>(std::max<std::size_t>(1, whole));
  return fmt::format("{:.0f}%", 100 * static_cast<double>(part) / all);
}

std::string time_in_words(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02d} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02d} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

void AnswerProgress::begin_table() {
  begun_ = true;
  if (replicas_ > 1)
    log_.line("progress of replica {} of {}, which has {}", replica_ + 1, replicas_,
              counted(static_cast<std::int64_t>(requests_), "request"));
  log_.begin_table("requests", {{"requests/s", 10},
                                {"prompt tokens/s", 15},
                                {"new tokens/s", 12},
                                {"reused", 6},
                                {"cache", 5},
                                {"left", 12}});
}

std::string AnswerProgress::left(std::size_t done) const {
  if (done == 0) return "-";
  const double pace = static_cast<double>(done) / timer_.seconds();
  return time_in_words(static_cast<double>(requests_ - done) / pace);
}

void AnswerProgress::at(std::size_t done, const generate::Stats& f) {
  if (!log_.prints()) return;
  log_.progress("{} of {} requests answered, {} left", done, requests_, left(done));
  if (since_last_.seconds() < seconds_between_rows) return;
  if (!begun_) begin_table();
  const double seconds = since_last_.restart();
  const auto rate = [&](std::size_t now, std::size_t before) {
    return rounded(static_cast<double>(now - before) / seconds);
  };
  log_.row(static_cast<std::int64_t>(done),
           {rate(done, last_done_), rate(f.prompt_tokens, last_.prompt_tokens),
            rate(f.new_tokens, last_.new_tokens),
            percent(f.reused_tokens, f.reused_tokens + f.computed_tokens),
            percent(f.pages_in_use, f.pages), left(done)});
  last_ = f;
  last_done_ = done;
}

}  // namespace tern::answer::detail
