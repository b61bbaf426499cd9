/// Files of lib/report/page and of the plotting library dygraphs, embedded by cmake/Embed.cmake.
#pragma once
#include <string_view>

namespace tern::report::detail {

std::string_view pictures_css();
std::string_view report_css();
std::string_view report_js();
/// Both empty in a build without dygraphs: the page then has still pictures only.
std::string_view dygraphs_css();
std::string_view dygraphs_js();

}  // namespace tern::report::detail
