#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "report/detail/page.hpp"

namespace tern::report::detail {

struct Pictures {
  std::vector<Picture> all;  // one for each figure; without an element where gnuplot drew none
  std::string trouble;       // why some are missing; empty: none is
};

/// Drawn in `folder`, which is made for it and removed.
Pictures pictures_of(const std::vector<Figure>& figures, const std::filesystem::path& folder);

}  // namespace tern::report::detail
