#include "report/detail/kept_file.hpp"

namespace tern::report::detail {

bool KeptFile::append(std::string_view piece) {
  if (refused_.size() + piece.size() <= most)
    refused_ += piece;
  else
    lost_ = true;
  if (!file_.append(refused_)) return false;
  refused_.clear();
  return true;
}

bool KeptFile::sync() {
  const bool written = append({});
  return file_.sync() && written && !lost_;
}

}  // namespace tern::report::detail
