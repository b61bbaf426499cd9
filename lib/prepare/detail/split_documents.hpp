/// Split of documents into training and validation.
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
  bool first = true;  // first part of a document; set by the caller
};

/// Document d is for validation if a hash of d is below `valid_fraction`: independent of the number
/// of threads and of documents appended later. If all of a few documents would be on one side, the
/// one with the smallest (or largest) hash moves to the other. A single text document is split at
/// an end of line instead; its end is for validation.
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
  std::optional<std::uint64_t> moved_;     // document moved to the other side
  std::size_t cut_at_ = 0, consumed_ = 0;  // bytes of the single document
  std::optional<SplitPart> pending_;
};

}  // namespace tern::prepare::detail
