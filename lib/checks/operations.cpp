#include "checks/operations.hpp"

#include "checks/detail/families.hpp"
#include "ops/ops.hpp"

namespace tern::checks {

template <class T>
std::vector<CheckResult> check_operations(const ops::Context& context, std::uint64_t seed) {
  using Storage = Checker::Storage;
  constexpr Storage storage = std::is_same_v<T, bf16>   ? Storage::bf16
                              : std::is_same_v<T, fp16> ? Storage::fp16
                                                        : Storage::single;
  Checker checker(context, storage, seed);
  check_linear(checker);
  if (storage != Storage::fp16 && ops::fp8_available(context)) check_fp8(checker);
  check_norm(checker);
  check_attention(checker);
  check_activation(checker);
  check_elementwise(checker);
  check_embedding(checker);
  check_connection(checker);
  check_loss(checker);
  check_optimizer(checker);
  check_paged_cache(checker);
  check_experts(checker);
  return checker.results();
}

template std::vector<CheckResult> check_operations<bf16>(const ops::Context&, std::uint64_t);
template std::vector<CheckResult> check_operations<fp16>(const ops::Context&, std::uint64_t);
template std::vector<CheckResult> check_operations<float>(const ops::Context&, std::uint64_t);

}  // namespace tern::checks
