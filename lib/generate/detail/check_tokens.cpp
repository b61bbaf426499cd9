#include "generate/detail/check_tokens.hpp"

#include "base/error.hpp"

namespace tern::generate::detail {

void check_tokens(const std::vector<std::int32_t>& tokens, std::size_t number,
                  std::size_t vocabulary) {
  for (const std::int32_t token : tokens)
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary)
      user_error(
          "prompt {} has token {}, outside the model's vocabulary of {}; check that &data "
          "tokenizer is the one that the model was trained with",
          number, token, vocabulary);
}

}  // namespace tern::generate::detail
