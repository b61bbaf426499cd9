/// Names in a deck as types: the one place where such text is compared.
#pragma once
#include "base/activation.hpp"
#include "deck/deck.hpp"

namespace tern::deck {

enum class Norm { rmsnorm, layernorm };
/// How the order of tokens enters: rotation of queries and keys, a learned embedding, or not.
enum class Position { rope, learned, none };

/// A name that is none of the choices, which read() has refused, throws InternalError.
Activation activation_of(const Model& model);
Norm norm_of(const Model& model);
Position position_of(const Model& model);
/// Whether each block's forward is run again in its backward.
bool recomputes(const Precision& precision);

}  // namespace tern::deck
