/// The implementation of linear maps that a context's operations take, in words for a log.
#pragma once
#include <string>

#include "ops/linear/linear.hpp"

namespace tern::ops {
namespace detail {
std::string native_products(Products);
std::string blas();
}  // namespace detail

/// Linear maps in T. `products`: those the context was made with.
template <class T>
std::string product_implementation(const Context& context, [[maybe_unused]] Products products) {
  if (has_native<LinearForward<T>>() && context.library) return detail::native_products(products);
  if (!std::is_same_v<T, Accumulate<T>>) return std::string("portable (") + Device::name() + ")";
  return detail::blas();
}

}  // namespace tern::ops
