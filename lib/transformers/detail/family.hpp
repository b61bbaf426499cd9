/// A family of Transformers models. Each is one file of families/ and one row of family.cpp.
///
/// What a family requires of &model follows from its config.json: it can hold a model if read()
/// returns from what write() wrote a model that computes the same. A new setting of &model therefore
/// prevents export until a family writes and reads it.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "deck/differences.hpp"
#include "transformers/detail/location.hpp"
#include "transformers/detail/settings.hpp"

namespace tern::transformers::detail {

struct Family {
  const char* architecture;  // in config.json, e.g. "LlamaForCausalLM"
  const char* model_type;    // in config.json, e.g. "llama"
  /// The model that the settings describe; complains about those that are not supported. The caller
  /// reads vocab_size, initializer_range and tie_word_embeddings, whose default is set here.
  deck::Model (*read)(Settings&);
  /// The family's own settings for a model, in the order of the file.
  Json (*write)(const deck::Model&);
  /// Where files may hold a parameter of this shape, (outputs, inputs) or (outputs). Exports use
  /// the first location.
  std::vector<TensorLocation> (*locations)(const std::string& parameter, const Shape& shape,
                                           const deck::Model&);
  /// Whether old files hold this tensor although Transformers computes it: it is ignored.
  bool (*recomputed)(const std::string& tensor);
};

/// All families.
std::span<const Family* const> families();

/// The family that can hold the model. If there is none, throws UserError naming the nearest one and
/// each setting that prevents it.
const Family& family_of(const deck::Model& model);

}  // namespace tern::transformers::detail
