/// Text of a UserError.
#pragma once
#include <functional>
#include <string>

#include "base/error.hpp"

namespace tern::test {

/// Message that `action` is refused with; "taken" if it is not.
inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace tern::test
