#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tern::generate::detail {

/// Throws UserError if a token of prompt `number` is outside a model's `vocabulary`.
void check_tokens(const std::vector<std::int32_t>& tokens, std::size_t number,
                  std::size_t vocabulary);

}  // namespace tern::generate::detail
