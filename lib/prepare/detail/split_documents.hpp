/// The documents of an input, each given to training or to validation.
#pragma once
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "prepare/documents.hpp"

namespace tern::prepare::detail {

struct SplitPart {
  DocumentPart part;
  bool valid = false;
  bool first = true;  // a document begins here; the caller's to say
};

/// Document number d is for validation if a hash of d falls below `valid_fraction`: the same for
/// any number of threads, and unchanged for the documents before it when more are appended. Of
/// documents so few that all would fall to one side, that of the least (or greatest) hash is moved
/// to the other. An input that is one single text document is cut in two instead, at an end of
/// line, its end being for validation.
class SplitDocuments {
 public:
  SplitDocuments(const std::vector<std::filesystem::path>& files, InputFormat format,
                 double valid_fraction);
  std::optional<SplitPart> next();
  std::size_t bytes() const { return documents_.bytes(); }

 private:
  SplitPart cut(DocumentPart part);
  bool is_valid(std::uint64_t document) const;

  Documents documents_;
  double valid_fraction_;
  bool single_ = false;
  std::optional<std::uint64_t> moved_;     // document on the other side than its hash says
  std::size_t cut_at_ = 0, consumed_ = 0;  // bytes of the single document
  std::optional<SplitPart> pending_;
};

}  // namespace tern::prepare::detail
