#include "prepare/detail/split_documents.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace tern::prepare::detail {
namespace {

constexpr std::uint64_t split_seed = 0x5917;  // fixed: the split is a property of the data

/// In [0, 1).
double hash_of(std::uint64_t document) {
  return philox(split_seed, Stream::data_order, document, 0, 0).word[0] * 0x1p-32;
}

/// If two or more documents are all on one side, the one with the hash nearest to the other side.
std::optional<std::uint64_t> document_to_move(const std::vector<std::filesystem::path>& files,
                                              InputFormat format, double fraction) {
  Documents documents(files, format);
  std::uint64_t count = 0, least = 0, greatest = 0;
  while (const auto part = documents.next()) {
    if (!part->last) continue;
    const std::uint64_t d = part->document;
    if (hash_of(d) < hash_of(least)) least = d;
    if (hash_of(d) > hash_of(greatest)) greatest = d;
    ++count;
    if (hash_of(least) < fraction && hash_of(greatest) >= fraction) return std::nullopt;
  }
  if (count < 2) return std::nullopt;
  return hash_of(least) >= fraction ? least : greatest;
}

bool is_single_text(const std::vector<std::filesystem::path>& files, InputFormat format) {
  if (files.size() != 1) return false;
  Documents documents(files, format);
  while (const auto part = documents.next())
    if (part->json || part->line > 0 || part->document > 0) return false;
  return true;
}

}  // namespace

SplitDocuments::SplitDocuments(const std::vector<std::filesystem::path>& files, InputFormat format,
                               double valid_fraction)
    : documents_(files, format), valid_fraction_(valid_fraction) {
  if (!(valid_fraction >= 0 && valid_fraction < 1))
    user_error("a validation fraction of {} is not in [0, 1)", valid_fraction);
  single_ = valid_fraction > 0 && is_single_text(files, format);
  if (valid_fraction > 0 && !single_) moved_ = document_to_move(files, format, valid_fraction);
  const auto size = static_cast<double>(documents_.bytes());
  cut_at_ = static_cast<std::size_t>(size * (1 - valid_fraction));
}

std::optional<SplitPart> SplitDocuments::next() {
  if (pending_) return std::exchange(pending_, std::nullopt);
  auto part = documents_.next();
  if (!part) return std::nullopt;
  if (single_) return cut(*std::move(part));
  const bool valid = is_valid(part->document);
  return SplitPart{*std::move(part), valid};
}

bool SplitDocuments::is_valid(std::uint64_t document) const {
  return (hash_of(document) < valid_fraction_) != (moved_ == document);
}

SplitPart SplitDocuments::cut(DocumentPart part) {
  const std::size_t begin = consumed_, size = part.raw.size();
  consumed_ += size;
  if (begin >= cut_at_) return {std::move(part), true};
  const std::size_t newline =
      cut_at_ < begin + size ? part.raw.find('\n', cut_at_ - begin) : std::string_view::npos;
  if (newline == std::string_view::npos) {
    if (cut_at_ < begin + size) cut_at_ = begin + size;  // longer line: split after the part
    if (cut_at_ == begin + size) part.last = true;
    return {std::move(part), false};
  }
  SplitPart rest{part, true};
  rest.part.raw = part.raw.substr(newline + 1);
  cut_at_ = begin + newline + 1;
  if (!rest.part.raw.empty()) pending_ = std::move(rest);
  part.raw = part.raw.substr(0, newline + 1);
  part.last = true;
  return {std::move(part), false};
}

}  // namespace tern::prepare::detail
