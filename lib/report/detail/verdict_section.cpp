#include "report/detail/verdict_section.hpp"

#include <fmt/format.h>

#include "report/detail/page.hpp"

namespace tern::report::detail {
namespace {

std::string finding_table(const Verdict& verdict) {
  std::string out =
      "<div class=\"wide\"><table "
      "class=\"verdict\">\n<tr><th>finding<th>verdict<th>found<th>expected<th>advice</tr>\n";
  for (const Finding& f : verdict.findings)
    out += fmt::format("<tr><td>{}<td class=\"{}\">{}<td>{}<td>{}<td>{}</tr>\n", escaped(f.name),
                       grade_name(f.grade), grade_name(f.grade), escaped(f.found),
                       escaped(f.expected), escaped(f.advice));
  return out + "</table></div>\n";
}

std::string comparison_table(const Verdict& verdict) {
  constexpr std::string_view why =
      "Refinement by itself can result from a bad first answer; the last answer's loss compared "
      "with "
      "another run's cannot. ";
  if (verdict.compared.empty())
    return fmt::format(
        "<p>{}No run to compare with: &amp;evaluation compare_with names them.</p>\n", why);
  std::string out = fmt::format(
      "<p>{}</p>\n<table class=\"verdict\">\n<tr><th>compared run<th>validation loss</tr>\n", why);
  for (const ComparedRun& b : verdict.compared)
    out += fmt::format("<tr><td>{}<td>{}</tr>\n", escaped(b.name),
                       escaped(in_words(b, "this run's last answer")));
  return out + "</table>\n";
}

}  // namespace

std::string verdict_section(const Verdict& verdict, std::int64_t last_step) {
  const std::string since = last_step > verdict.step
                                ? fmt::format("; the run has continued to step {}", last_step)
                                : std::string();
  return fmt::format(
      "<h2>Verdict: <span class=\"{}\">{}</span></h2>\n<p class=\"about\">recursive refinement, "
      "preset {}, at step {}{}</p>\n{}{}",
      verdict.succeeded() ? "good" : "failure", verdict.word(), escaped(verdict.preset),
      verdict.step, since, finding_table(verdict), comparison_table(verdict));
}

}  // namespace tern::report::detail
