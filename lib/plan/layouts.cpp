#include "plan/layouts.hpp"

#include "base/error.hpp"
#include "deck/rules.hpp"
#include "model/share.hpp"
#include "plan/detail/rows.hpp"

namespace tern::plan {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;
constexpr int counts[] = {1, 2, 4, 8};

std::string cell(std::size_t bytes) {
  return fmt::format("{:>11.2f}", static_cast<double>(bytes) / gib);
}

/// Memory of rank 0, or an open cell if the deck cannot be run so.
std::string memory(deck::Deck deck, const comm::Extents& extents, const std::string& shard) {
  deck.parallel.shard = shard;
  deck.parallel.data = extents.data;
  try {
    return cell(plan_memory(deck, *comm::Mesh::imagined(extents)).total_bytes);
  } catch (const UserError&) {
    return fmt::format("{:>11}", "-");
  }
}

constexpr const char* rate_columns = "  requests/s      time      cost   $/1,000";

std::string dollars(double amount, int digits) {
  return amount > 0 ? fmt::format("${:.{}f}", amount, digits) : "-";
}

/// Of rate_columns, where a file is answered by `there`.
std::string rate_cells(const deck::Deck& deck, const Throughput& throughput,
                       const generate::EngineOptions& options, const comm::Extents& there) {
  const auto rate = throughput.rate(deck, options, there);
  if (!rate) return fmt::format("{:>12}", "-");
  const double seconds = throughput.requests.count / *rate;
  const double cost = seconds / 3600 * there.ranks() * deck.cost.dollars_per_gpu_hour;
  return fmt::format("{:>12.1f}{:>10}{:>10}{:>10}", *rate, detail::duration(seconds),
                     dollars(cost, 2), dollars(1000 * cost / throughput.requests.count, 4));
}

}  // namespace

std::string layouts(const deck::Deck& deck, const Plan& plan, const comm::Extents& extents) {
  deck::Deck resolved = deck;
  resolved.batch.per_rank = plan.per_rank;
  resolved.batch.global = plan.global;
  resolved.batch.accumulation = 0;
  resolved.batch.preset = "none";
  const bool divisible = deck::conflicts_with_full(deck).empty();
  std::string text = fmt::format(
      "on other numbers of data ranks (x {} tensor x {} pipeline), GiB on each by shard\n"
      "  data        none  optimizer       full",
      extents.tensor, extents.pipeline);
  text += plan.rate ? "    tokens/s     hours      cost\n" : "\n";
  for (const int data : counts) {
    const comm::Extents there{data, extents.tensor, extents.pipeline};
    text += fmt::format("  {:>4}", data) + memory(resolved, there, "none") +
            memory(resolved, there, "optimizer");
    text += divisible ? memory(resolved, there, "full") : fmt::format("{:>11}", "-");
    if (plan.rate) {
      const double rate = plan.rate->first / extents.ranks() * there.ranks();
      const double hours = plan.tokens / rate / 3600;
      const double cost = hours * there.ranks() * deck.cost.dollars_per_gpu_hour;
      const std::string time = plan.tokens > 0 ? fmt::format("{:.2f}", hours) : "-";
      text += fmt::format("{:>12.0f}{:>10}{:>10}", rate, time, dollars(cost, 2));
    }
    text += "\n";
  }
  return text;
}

std::string layouts(const deck::Deck& deck, const generate::EngineOptions& options,
                    std::size_t usable_bytes, const Throughput& throughput) {
  const comm::Extents& own = throughput.own;
  const bool rated = throughput.rates || throughput.measured;
  std::string text = fmt::format(
      "on other numbers of tensor ranks (x {} data), GiB on each, of {:.2f} usable here\n"
      "  tensor  but cache      cache  cache tokens{}\n",
      own.data, static_cast<double>(usable_bytes) / gib, rated ? rate_columns : "");
  generate::EngineOptions one_page = options;
  one_page.pages = 1;
  for (const int tensor : counts) {
    text += fmt::format("  {:>6}", tensor);
    try {
      model::check_division(deck.model, tensor, 1);
    } catch (const UserError&) {
      text += fmt::format("{:>11}\n", "-");
      continue;
    }
    const ServingPlan there =
        measure_serving(deck, one_page, *comm::Mesh::imagined({1, tensor, 1}));
    const std::size_t rest =
        usable_bytes > there.total_bytes ? usable_bytes - there.total_bytes : 0;
    generate::EngineOptions fitting = options;
    fitting.pages = std::min(rest / there.page_bytes, generate::Engine<float>::most_pages(options));
    text += cell(there.total_bytes) + cell(fitting.pages * there.page_bytes) +
            fmt::format("{:>14}", fitting.pages * there.cache_tokens);
    if (rated && fitting.pages > 0)
      text += rate_cells(deck, throughput, fitting, {own.data, tensor, 1});
    text += "\n";
  }
  if (!rated || throughput.own_options.pages == 0) return text;
  text += fmt::format(
      "on other numbers of data ranks (x {} tensor x {} pipeline)\n    data    ranks{}\n",
      own.tensor, own.pipeline, rate_columns);
  for (const int data : counts) {
    const comm::Extents there{data, own.tensor, own.pipeline};
    text += fmt::format("  {:>6}{:>9}", data, there.ranks()) +
            rate_cells(deck, throughput, throughput.own_options, there) + "\n";
  }
  return text + fmt::format("  ({})\n", throughput.kind(deck));
}

}  // namespace tern::plan
