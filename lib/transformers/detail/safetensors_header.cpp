#include "transformers/detail/safetensors_header.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/json.hpp"

namespace tern::transformers::detail {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::size_t longest_header = 100'000'000;  // limit of the reference implementation

/// Bits per element; 0 for an unknown type.
std::size_t bits_of(const std::string& dtype) {
  static const std::map<std::string, std::size_t> bits{
      {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"F8_E8M0", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16},    {"BF16", 16},
      {"I32", 32},    {"U32", 32}, {"F32", 32}, {"I64", 64},    {"U64", 64},
      {"F64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  const auto found = bits.find(dtype);
  return found == bits.end() ? 0 : found->second;
}

/// An object with a key twice is an error.
json header_in(std::string_view text) {
  try {
    return parse_json_of_distinct_keys(text);
  } catch (const json::exception& error) {
    user_error("its header cannot be read: {}", reason(error));
  }
}

std::size_t unsigned_of(const json& value, const std::string& name, const char* what) {
  if (!value.is_number_unsigned()) user_error("tensor '{}' has no valid {}", name, what);
  return value.get<std::size_t>();
}

const json& member(const json& entry, const std::string& name, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end()) user_error("tensor '{}' has no {}", name, key);
  return *found;
}

std::size_t product(std::size_t a, std::size_t b, const std::string& name) {
  std::size_t result;
  if (__builtin_mul_overflow(a, b, &result)) user_error("tensor '{}' is larger than memory", name);
  return result;
}

/// Offsets are still relative to the end of the header.
StoredArray parse_array(const json& entry, const std::string& name) {
  if (!entry.is_object()) user_error("tensor '{}' is not described by an object", name);
  const json& dtype = member(entry, name, "dtype");
  const json& shape = member(entry, name, "shape");
  const json& offsets = member(entry, name, "data_offsets");
  if (!dtype.is_string() || bits_of(dtype.get<std::string>()) == 0)
    user_error("tensor '{}' has the unknown dtype {}", name, json_text(dtype));
  if (!shape.is_array()) user_error("tensor '{}' has no valid shape", name);
  if (!offsets.is_array() || offsets.size() != 2)
    user_error("tensor '{}' has no valid data_offsets", name);
  StoredArray array{dtype.get<std::string>(), {}, 1, 0, 0};
  for (const json& extent : shape) {
    array.shape.push_back(unsigned_of(extent, name, "shape"));
    array.elements = product(array.elements, array.shape.back(), name);
  }
  array.begin = unsigned_of(offsets[0], name, "data_offsets");
  array.end = unsigned_of(offsets[1], name, "data_offsets");
  const std::size_t bits = product(array.elements, bits_of(array.dtype), name);
  if (bits % 8 != 0 || array.end < array.begin || array.end - array.begin != bits / 8)
    user_error("tensor '{}' needs {} bytes by its shape, and its data_offsets are [{}, {}]", name,
               bits / 8, array.begin, array.end);
  return array;
}

/// Each byte of the data belongs to exactly one tensor.
void check_tiling(const std::map<std::string, StoredArray>& arrays, std::size_t size) {
  std::vector<const std::pair<const std::string, StoredArray>*> order;
  for (const auto& array : arrays) order.push_back(&array);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::size_t end = 0;
  for (const auto* array : order) {
    if (array->second.begin != end)
      user_error("tensor '{}' starts at byte {} of the data, not where the one before ends ({})",
                 array->first, array->second.begin, end);
    end = array->second.end;
  }
  if (end != size)
    user_error("its tensors need {} bytes of data, and it has {}: is it truncated?", end, size);
}

}  // namespace

std::map<std::string, StoredArray> parse_safetensors(const File& file) {
  const std::size_t size = file.size();
  std::uint64_t length = 0;
  if (size >= length_bytes) file.read(&length, length_bytes, 0);
  if (size < length_bytes || length > longest_header || length > size - length_bytes)
    user_error("it is not a safetensors file, or truncated ({} bytes, header of {})", size, length);
  const std::size_t data = length_bytes + length;
  std::string text(length, '\0');
  text.resize(file.read(text.data(), text.size(), length_bytes));
  const json header = header_in(text);
  if (!header.is_object()) user_error("its header is not a JSON object");
  std::map<std::string, StoredArray> arrays;
  for (const auto& [name, entry] : header.items())
    if (name != "__metadata__") arrays.emplace(name, parse_array(entry, name));
  check_tiling(arrays, size - data);
  for (auto& [name, array] : arrays) {
    array.begin += data;
    array.end += data;
  }
  return arrays;
}

}  // namespace tern::transformers::detail
