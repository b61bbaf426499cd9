#include "checkpoint/detail/evaluation.hpp"

#include <cerrno>

#include "base/files.hpp"
#include "base/json.hpp"

namespace tern::checkpoint::detail {

void write_evaluation(const std::filesystem::path& folder, std::int64_t step,
                      const std::map<std::string, double>& numbers) {
  nlohmann::ordered_json object = {{"step", step}};
  for (const auto& [name, value] : numbers) object[name] = value;
  if (std::filesystem::is_symlink(folder))
    throw FileError("write to", folder, "it is a symbolic link", ELOOP);
  write_durably(folder / evaluation_file, json_text(object, 2) + "\n");
}

std::map<std::string, double> read_evaluation(const std::filesystem::path& folder,
                                              std::int64_t step) {
  std::error_code missing;
  if (!std::filesystem::exists(folder / evaluation_file, missing)) return {};
  std::map<std::string, double> numbers;
  try {
    const auto object = try_json(read_text(folder / evaluation_file));
    if (!object.is_object() || object.value("step", nlohmann::json()) != step) return {};
    for (const auto& [name, value] : object.items())
      if (value.is_number() && name != "step") numbers[name] = value.get<double>();
  } catch (const FileError&) {
    return {};
  }
  return numbers;
}

}  // namespace tern::checkpoint::detail
