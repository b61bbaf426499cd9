/// Short name of an operation or kernel, for people.
#pragma once
#include <string>
#include <string_view>

namespace tern::profile::detail {

/// 'tern::add' -> 'add'. Of a kernel whose type names the operation or function that launched it, that:
/// '...&tern::ops::Dropout<...>::portable...' -> 'dropout'; of another, its name without arguments of
/// functions and templates: 'void cutlass::Kernel<...>(...)' -> 'cutlass::Kernel'.
std::string operation_name(std::string_view name);

}  // namespace tern::profile::detail
