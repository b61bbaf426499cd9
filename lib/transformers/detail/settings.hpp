/// Settings of a config.json.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace tern::transformers::detail {

using Json = nlohmann::ordered_json;

/// Settings by name; collects all complaints about them.
class Settings {
 public:
  Settings(Json values, std::filesystem::path file);

  /// Null if missing.
  const Json& at(const std::string& name) const;
  bool has(const std::string& name) const { return !at(name).is_null(); }
  /// Whether the setting is present, even as null.
  bool given(const std::string& name) const { return values_.contains(name); }

  // Values; a wrong type is a complaint.
  std::int64_t count(const char* name);  // above 0; missing: a complaint
  std::int64_t count_or(const char* name, std::int64_t otherwise);
  double number(const std::string& name, double otherwise);
  bool flag(const char* name, bool otherwise);
  /// Base of the rotary angles: rope_parameters in Transformers 5, rope_theta in older versions.
  /// Complains about any other rotary setting.
  double rope_base();

  /// Complains unless the setting is missing or one of `allowed`.
  void allow(const std::string& name, const std::vector<Json>& allowed);
  void complain(const std::string& name, const std::string& what);
  /// Throws UserError with all complaints.
  void finish() const;

 private:
  std::int64_t positive(const char* name, const Json& value);
  /// Also makes members of the object `name` available as "name.member".
  void flatten(const std::string& name);
  void require_plain_rope(const std::string& name);

  Json values_;
  std::filesystem::path file_;
  std::string complaints_;
};

}  // namespace tern::transformers::detail
