#include "prepare/documents.hpp"

#include <cctype>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "base/utf8.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view separator = "<|endoftext|>";
constexpr std::size_t part_bytes = std::size_t{1} << 22;

InputFormat format_of(const fs::path& file, InputFormat asked) {
  if (asked != InputFormat::automatic) return asked;
  if (holds_json_lines(file)) return InputFormat::jsonl;
  const std::string ending = file.extension().string();
  if (ending == ".json")
    user_error(
        "{}: a .json file is not text; put one JSON object on each line and name it .jsonl, or "
        "pass --format jsonl if it is such a file",
        file.string());
  for (const char* compressed : {".gz", ".xz", ".zst", ".bz2", ".zip", ".parquet", ".tar"}) {
    if (ending == compressed)
      user_error("{}: {} files are not read; unpack it to text or JSON lines first", file.string(),
                 ending);
  }
  return InputFormat::text;
}

std::string_view without_newlines(std::string_view text) {
  while (!text.empty() && (text.front() == '\n' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// End of the first part of `text`: after a letter, before a space and another letter.
std::size_t part_end(std::string_view text) {
  for (std::size_t i = part_bytes; i + 1 < text.size(); ++i)
    if (text[i] == ' ' && is_letter(text[i - 1]) && is_letter(text[i + 1])) return i;
  return text.size();
}

/// A file and the read position in it.
struct Input {
  const fs::path& path;
  InputFormat format;
  LineReader lines;
  std::string_view rest = lines.text();  // of a text: not yet split into documents
  std::string_view document = {};        // remainder of the current text document
};

}  // namespace

struct Documents::Impl {
  std::vector<fs::path> files;
  std::vector<InputFormat> formats;
  std::size_t bytes = 0, opened = 0;
  std::uint64_t count = 0;  // documents returned completely
  std::optional<Input> input;

  bool open_next() {
    if (opened == files.size()) return false;
    input.emplace(Input{files[opened], formats[opened], LineReader(files[opened])});
    ++opened;
    return true;
  }

  DocumentPart part(std::string_view raw, std::size_t line) const {
    const bool json = input->format == InputFormat::jsonl;
    return {raw, input->lines.owner(), &input->path, line, count, true, json};
  }

  std::optional<DocumentPart> next_line() {
    while (const auto line = input->lines.next()) {
      const std::string_view text = without_newlines(line->text);
      if (text.find_first_not_of(" \t") == text.npos) continue;
      DocumentPart found = part(text, line->number);
      ++count;
      return found;
    }
    return std::nullopt;
  }

  std::optional<DocumentPart> next_text() {
    while (input->document.empty()) {
      if (input->rest.empty()) return std::nullopt;
      const std::size_t end = std::min(input->rest.find(separator), input->rest.size());
      const bool whole = end == input->rest.size();
      // A file without separators is unchanged; newlines around a separator belong to it.
      const bool first = input->rest.data() == input->lines.text().data();
      input->document = input->rest.substr(0, end);
      if (!(whole && first)) input->document = without_newlines(input->document);
      input->rest.remove_prefix(whole ? end : end + separator.size());
    }
    const std::size_t size =
        input->document.size() <= part_bytes ? input->document.size() : part_end(input->document);
    DocumentPart found = part(input->document.substr(0, size), 0);
    input->document.remove_prefix(size);
    found.last = input->document.empty();
    if (found.last) ++count;
    return found;
  }
};

Documents::Documents(std::vector<fs::path> files, InputFormat format)
    : impl_(std::make_unique<Impl>()) {
  if (files.empty()) user_error("no input files given; pass --input");
  for (const fs::path& file : files) {
    std::error_code error;
    if (!fs::exists(file)) user_error("{}: no such file", file.string());
    if (!fs::is_regular_file(file))
      user_error("{}: is not a regular file; copy its contents to a regular file", file.string());
    const std::size_t size = fs::file_size(file, error);
    if (error) user_error("{}: {}", file.string(), error.message());
    if (size == 0) user_error("{}: the file is empty", file.string());
    impl_->formats.push_back(format_of(file, format));
    impl_->bytes += size;
  }
  impl_->files = std::move(files);
}

Documents::~Documents() = default;

std::size_t Documents::bytes() const { return impl_->bytes; }

std::optional<DocumentPart> Documents::next() {
  while (impl_->input || impl_->open_next()) {
    auto part = impl_->input->format == InputFormat::text ? impl_->next_text() : impl_->next_line();
    if (part) return part;
    impl_->input.reset();
  }
  return std::nullopt;
}

std::string_view text_of(const DocumentPart& part, const std::string& field, std::string& storage) {
  if (!part.json) return part.raw;
  const auto place = [&] { return fmt::format("{}:{}", part.file->string(), part.line); };
  nlohmann::json object;
  try {
    object = parse_json(part.raw);
  } catch (const nlohmann::json::exception& error) {
    user_error("{}: the line is not JSON: {}", place(), reason(error));
  }
  if (!object.is_object()) user_error("{}: the line is not a JSON object", place());
  const auto found = object.find(field);
  if (found == object.end()) {
    std::string names;
    for (const auto& [name, value] : object.items())
      names += (names.empty() ? "'" : ", '") + excerpt(name) + "'";
    user_error(
        "{}: the object has no field '{}' but {}; name the field that holds the text with "
        "--field",
        place(), field, names.empty() ? "none" : excerpt(names, 400));
  }
  if (!found->is_string()) user_error("{}: the field '{}' is not a string", place(), field);
  storage = std::move(found->get_ref<std::string&>());
  return storage;
}

}  // namespace tern::prepare
