// Connections between blocks, and what grows over the first steps.
#include <gtest/gtest.h>

#include "deck/mistakes.hpp"

namespace tern::test {
namespace {

TEST(DeckContradictions, ConnectionsOfBlocks) {
  none("&model skip_connections = .true. input_shortcut = .true. value_embeddings = 6 /");
  none("&model input_shortcut = .true. / &parallel tensor = 4 shard = 'optimizer' /");
  one("&model layers = 2 skip_connections = .true. /",
      "d:1:19: model.skip_connections: 2 layers have no two that are not adjacent; set "
      "layers = 3 or more, or skip_connections = .false.");
  one("&model value_embeddings = 7 /",
      "d:1:8: model.value_embeddings: 7 tables for the first and again for the last of 12 layers; "
      "set value_embeddings = 6 or less");
  one("&model value_embeddings = 1 kv_heads = 2 / &parallel tensor = 4 /",
      "d:1:8: model.value_embeddings: 4 tensor ranks cannot divide the value embeddings of 2 "
      "key-value heads; set tensor = 2 or less, or value_embeddings = 0");
  for (const char* given :
       {"skip_connections = .true.", "input_shortcut = .true.", "value_embeddings = 1"}) {
    const std::string name(given, std::string(given).find(' '));
    one(fmt::format("&model {} inner_steps = 2 / &objective kind = 'refinement' /", given),
        fmt::format("d:1:8: model.{}: recursive models do not support it; set inner_steps = 0, or "
                    "remove it",
                    name));
    one(fmt::format("&model {} / &parallel pipeline = 2 /", given),
        fmt::format("d:1:8: model.{}: a pipeline stage does not have the blocks and tokens of the "
                    "others; set pipeline = 1, or use parallel.tensor",
                    name));
  }
}

TEST(DeckContradictions, GrowingBatch) {
  none("&batch per_rank = 8 global = 64 global_start = 16 growth_steps = 100 /");
  none("&batch per_rank = 0 global = 64 global_start = 16 growth_steps = 100 /");
  one("&batch global = 64 global_start = 16 /",
      "d:1:20: batch.global_start: a growing batch needs global_start and growth_steps; set the "
      "other one too, or both to 0");
  one("&batch global = 64 global_start = 24 growth_steps = 9 /",
      "d:1:20: batch.global_start: 24 does not divide global = 64, to which the batch grows in "
      "multiples; set global_start to a divisor of global");
  one("&batch global = 64 global_start = 4 growth_steps = 9 /",
      "d:1:20: batch.global_start: 4 is not a multiple of per_rank x parallel.data = 8; set "
      "global_start = 8 or a multiple of it");
  one("&batch global_start = 8 growth_steps = 9 /",
      "d:1:8: batch.global_start: the batch grows to batch.global, which is not set; set global "
      "(e.g. global = 256) or a preset");
}

TEST(DeckContradictions, Window) {
  none("&model window = 128 / &generation samples = 0 /");
  none("&model window_start = 128 window_steps = 50 /");
  none("&model window = 1024 window_start = 128 window_steps = 50 /");
  one("&model window = 128 /",
      "d:1:8: model.window: generation attends to all tokens and does not support a window; set "
      "generation.samples = 0 or window = 0");
  one("&model window_start = 128 /",
      "d:1:8: model.window_start: a growing window needs window_start and window_steps; set the "
      "other one too, or both to 0");
  one("&model window_start = 2048 window_steps = 5 /",
      "d:1:8: model.window_start: 2048 is more than the 1024 tokens that the window grows to; "
      "lower it");
  one("&model window_start = 128 window_steps = 5 / &objective kind = 'supervised' /",
      "d:1:8: model.window_start: kind = 'supervised' has an attention mask of its own; set it to "
      "0, or set kind = 'causal'");
}

}  // namespace
}  // namespace tern::test
