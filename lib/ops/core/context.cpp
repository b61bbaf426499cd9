#include "ops/core/context.hpp"

#include <string_view>

#include "base/error.hpp"
#if defined(TERN_NATIVE_OPERATIONS)
#include "ops/core/cuda/library.hpp"
#endif

namespace tern::ops {

namespace {
/// Partial sums of a sum over a whole vector: several per multiprocessor of a large device.
constexpr std::size_t sum_parts = 1024;
}  // namespace

Context make_context(Arena& arena, bool accelerated, const char* attention,
                     [[maybe_unused]] Products products) {
  const std::string_view choice = attention;
  if (choice != "auto" && choice != "portable" && choice != "cudnn")
    user_error("&model attention = '{}' is unknown; set attention = 'auto', 'portable' or 'cudnn'",
               choice);
  Context context;
  context.partial_sums = arena.vector<double>("partial sums", Term::workspace, sum_parts);
#if defined(TERN_NATIVE_OPERATIONS)
  const AttentionChoice chosen = choice == "cudnn"      ? AttentionChoice::cudnn
                                 : choice == "portable" ? AttentionChoice::portable
                                                        : AttentionChoice::automatic;
  if (accelerated) context.library = std::make_shared<NativeLibrary>(arena, chosen, products);
#else
  (void)accelerated;
  if (choice == "cudnn")
    user_error(
        "&model attention = 'cudnn' needs a CUDA build; set attention = 'auto' or 'portable'");
#endif
  return context;
}

}  // namespace tern::ops
