/// What sampling answers took: "sampling" in evaluation.json.
#pragma once
#include <cstdint>

#include "base/json.hpp"

namespace tern::answer {

struct Sampling {
  std::int64_t tokens = 0;  // sampled ones, end tokens included, padding not
  double seconds = 0;       // with prefill, over all ranks

  nlohmann::ordered_json to_json() const {
    const double rate = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
    return {{"tokens", tokens}, {"seconds", seconds}, {"tokens_per_second", rate}};
  }
};

}  // namespace tern::answer
