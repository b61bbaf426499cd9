#include "transformers/detail/settings.hpp"

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace tern::transformers::detail {

Settings::Settings(Json values, std::filesystem::path file)
    : values_(std::move(values)), file_(std::move(file)) {}

const Json& Settings::at(const std::string& name) const {
  static const Json none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : *found;
}

std::int64_t Settings::positive(const char* name, const Json& value) {
  if (value.is_number_integer() && value.get<std::int64_t>() > 0) return value.get<std::int64_t>();
  complain(name, "is not a positive number");
  return 1;
}

std::int64_t Settings::count(const char* name) { return positive(name, at(name)); }

std::int64_t Settings::count_or(const char* name, std::int64_t otherwise) {
  return has(name) ? positive(name, at(name)) : otherwise;
}

double Settings::number(const std::string& name, double otherwise) {
  if (!has(name)) return otherwise;
  if (!at(name).is_number()) return complain(name, "is not a number"), otherwise;
  return at(name).get<double>();
}

bool Settings::flag(const char* name, bool otherwise) {
  if (!has(name)) return otherwise;
  if (!at(name).is_boolean()) return complain(name, "is not true or false"), otherwise;
  return at(name).get<bool>();
}

void Settings::flatten(const std::string& name) {
  const Json object = at(name);
  for (const auto& [below, value] : object.items())
    values_[fmt::format("{}.{}", name, below)] = value;
}

/// Complains about any rotary setting in the flattened object `name` other than the base.
void Settings::require_plain_rope(const std::string& name) {
  for (const char* type : {"rope_type", "type"}) {
    const std::string full = fmt::format("{}.{}", name, type);
    if (given(full) && at(full) != "default") complain(full, "is not supported (only \"default\")");
  }
  for (const auto& [key, value] : at(name).items())
    if (value.is_object())
      complain(fmt::format("{}.{}", name, key), "is not supported (one base for all layers)");
  allow(name + ".partial_rotary_factor", {1.0, 1});
}

double Settings::rope_base() {
  std::string base = "rope_theta";
  number(base, 0);  // checked, even if overridden below
  for (const std::string name : {"rope_parameters", "rope_scaling"}) {
    if (!has(name)) continue;
    if (!at(name).is_object()) {
      complain(name, "is not an object");
      continue;
    }
    flatten(name);
    require_plain_rope(name);
    if (has(name + ".rope_theta")) base = name + ".rope_theta";
  }
  allow("partial_rotary_factor", {1.0, 1});
  const double value = number(base, 10000.0);
  if (!(value > 0)) complain(base, "is not above 0");
  return value;
}

void Settings::allow(const std::string& name, const std::vector<Json>& allowed) {
  if (!has(name)) return;
  for (const Json& value : allowed)
    if (at(name) == value) return;
  complain(name, fmt::format("is not supported (Tern supports {})", json_text(Json(allowed))));
}

void Settings::complain(const std::string& name, const std::string& what) {
  const auto found = values_.find(name);
  complaints_ +=
      fmt::format("\n  {} = {} {}", excerpt(name),
                  found == values_.end() ? "(missing)" : excerpt(json_text(*found), 200), what);
}

void Settings::finish() const {
  if (!complaints_.empty())
    user_error("{} describes a model that Tern cannot load:{}", file_.string(), complaints_);
}

}  // namespace tern::transformers::detail
