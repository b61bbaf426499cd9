#include "plan/measured_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/files.hpp"
#include "base/json.hpp"
#include "deck/rules.hpp"
#include "plan/devices.hpp"

namespace tern::plan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t enough = 3;  // logged steps

fs::path file_in(const fs::path& directory) { return directory / "rate.json"; }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

}  // namespace

std::string rate_key(const Plan& plan, const comm::Extents& extents) {
  const deck::Deck& deck = plan.deck;
  const workload::Layout& layout = plan.layout;
  const int nodes = plan.device.nodes().count(extents.ranks());
  return fmt::format(
      "{}; {} x {} x {} ranks, shard {}; {} = {} x {} x {} sequences; {}, recompute {}; {}, "
      "{:.4g} FLOP per token{}{}",
      plan.device.name(), extents.data, extents.tensor, extents.pipeline, deck.parallel.shard,
      layout.global, layout.per_rank, extents.data, layout.accumulation, deck.precision.compute,
      deck.precision.recompute, deck.objective.kind, plan.flops_per_token,
      deck::counts_samples(deck.batch) ? fmt::format("; {:.3f} rows per step", layout.steps.mean())
                                       : std::string(),
      nodes > 1 ? fmt::format("; on {} nodes", nodes) : std::string());
}

void store_rate(const fs::path& directory, const std::string& rate_key, std::vector<double> rates) {
  if (rates.size() < enough) return;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  const nlohmann::ordered_json entry = {
      {"tokens_per_second", *middle}, {"date", today()}, {"of", rate_key}};
  replace_file(file_in(directory), json_text(entry, 2, InvalidUtf8::replaced) + '\n');
}

std::optional<StoredRate> stored_rate(const fs::path& directory, const std::string& rate_key) {
  try {
    const auto entry = parse_json(read_text_or_empty(file_in(directory)));
    const StoredRate rate{entry.at("tokens_per_second").get<double>(),
                          entry.at("date").get<std::string>()};
    const bool same = entry.at("of").get<std::string>() == rate_key && rate.tokens_per_second > 0;
    return same ? std::optional(rate) : std::nullopt;
  } catch (const nlohmann::json::exception&) {  // missing, or not of this format
    return std::nullopt;
  }
}

}  // namespace tern::plan
