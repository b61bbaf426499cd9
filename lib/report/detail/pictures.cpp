#include "report/detail/pictures.hpp"

#include "base/files.hpp"
#include "report/detail/gnuplot.hpp"

namespace tern::report::detail {
namespace {

// All pictures of a run take about a second of a processor.
constexpr Limit limit{std::chrono::minutes(2), std::chrono::minutes(10)};

const char* reason(Ending ending) {
  switch (ending) {
    case Ending::success:
      return "";
    case Ending::not_found:
      return "gnuplot was not found (Debian, Ubuntu: gnuplot-nox)";
    case Ending::timed_out:
      return "gnuplot hung and was ended";
    default:
      return "gnuplot failed";
  }
}

}  // namespace

Pictures pictures_of(const std::vector<Figure>& figures, const std::filesystem::path& folder) {
  // May be of an interrupted report, or a link: gnuplot writes into a folder just made.
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  Pictures pictures;
  if (!figures.empty()) pictures.trouble = reason(draw(figures, folder, limit));
  for (const Figure& figure : figures)
    pictures.all.push_back(
        {figure.plot.section,
         inline_svg(read_text_or_empty(folder / (figure.plot.file + ".svg")), figure.plot.title)});
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return pictures;
}

}  // namespace tern::report::detail
