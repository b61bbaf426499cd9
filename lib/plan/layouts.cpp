#include "plan/layouts.hpp"

#include <iterator>
#include <vector>

#include "base/error.hpp"
#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "plan/course.hpp"
#include "plan/detail/rows.hpp"
#include "plan/sizes.hpp"
#include "plan/training_rate.hpp"
#include "words/numbers.hpp"
#include "workload/division.hpp"

namespace tern::plan {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;
constexpr int counts[] = {1, 2, 4, 8};

std::string cell(std::size_t bytes, const SizeUnit& unit = {"GiB", gib}) {
  return fmt::format("{:>11.2f}", unit.of(bytes));
}

constexpr const char* open_cell = "          -";

constexpr const char* rate_columns = "  requests/s      time      cost   $/1,000";

std::string dollars(double amount, int digits) {
  return amount > 0 ? fmt::format("${:.{}f}", amount, digits) : "-";
}

/// Cells of rate_columns for a file answered on the ranks `there`.
std::string rate_cells(const deck::Deck& deck, const Throughput& throughput,
                       const generate::EngineOptions& options, const comm::Extents& there) {
  const auto rate = throughput.rate(deck, options, there);
  if (!rate) return fmt::format("{:>12}", "-");
  const double seconds = throughput.requests.count / *rate;
  const double cost = seconds / 3600 * there.ranks() * deck.cost.dollars_per_gpu_hour;
  return fmt::format("{:>12.1f} {:>9} {:>9} {:>9}", *rate, duration(seconds), dollars(cost, 2),
                     dollars(1000 * cost / throughput.requests.count, 4));
}

/// A training deck on other numbers of data ranks.
class TrainingLayouts {
 public:
  TrainingLayouts(const deck::Deck& deck, const Plan& plan, const comm::Extents& own)
      : deck_(deck),
        plan_(plan),
        own_(own),
        unit_(unit_of(plan.bytes())),
        divisible_(deck::conflicts_with_full(deck).empty()) {
    if (!deck::preset_of(deck.batch)) deck_.batch = plan.deck.batch;
    deck_.batch.accumulation = 0;
    here_ = estimate(own);
  }

  std::string text() const {
    const int per_node = plan_.device.nodes().ranks;
    std::string text = fmt::format(
        "on other numbers of data ranks (x {} tensor x {} pipeline{}):\n"
        "{:>39}\n"
        "  data       none  optimizer       full{}\n",
        own_.tensor, own_.pipeline,
        per_node > 0 ? fmt::format("; {} ranks per node", per_node) : std::string(),
        fmt::format("{} per rank, by &parallel shard", unit_.name),
        plan_.rate ? "    tokens/s     steps        time      cost" : "");
    std::vector<int> all(std::begin(counts), std::end(counts));
    while (all.back() < own_.data) all.push_back(2 * all.back());
    for (const int data : all) {
      const comm::Extents there{data, own_.tensor, own_.pipeline};
      text += fmt::format("{:>6}", data) + memory(there, "none") + memory(there, "optimizer") +
              (divisible_ ? memory(there, "full") : open_cell) + rate(there) + "\n";
    }
    if (plan_.rate && plan_.device.timed())
      text += "  (each rank with processors of its own, as many as were timed)\n";
    if (plan_.rate && may_be_shorter(deck_, course(plan_, plan_.rate->first, 1)))
      text += "  (steps, time and cost at most: patience or target_loss may end a run earlier)\n";
    return text;
  }

 private:
  /// Memory of rank 0; an empty cell if the layout is impossible.
  std::string memory(const comm::Extents& there, const std::string& shard) const {
    deck::Deck deck = at(there);
    deck.parallel.shard = shard;
    try {
      return cell(
          plan_memory(deck, *comm::Mesh::for_planning(there), plan_.device, plan_.data).bytes(),
          unit_);
    } catch (const UserError&) {
      return open_cell;
    }
  }

  deck::Deck at(const comm::Extents& there) const {
    deck::Deck deck = deck_;
    deck.parallel.data = there.data;
    return deck;
  }

  std::optional<double> estimate(const comm::Extents& there) const {
    const deck::Deck deck = at(there);
    try {
      return estimated_rate(deck, workload::make_layout(deck, there.data, plan_.data), there,
                            plan_.contents, plan_.device);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  /// The plan's rate times the ratio of estimates, or without estimates the ratio of rank counts.
  std::string rate(const comm::Extents& there) const {
    if (!plan_.rate) return {};
    const auto estimated = estimate(there);
    if (here_ && !estimated) return fmt::format("{:>12}", "-");
    const double rate =
        plan_.rate->first * (here_ ? *estimated / *here_ : double(there.ranks()) / own_.ranks());
    std::string text = fmt::format("{:>12}", rounded(rate));
    if (plan_.steps == 0 && !deck::timed(deck_.campaign))
      return text + fmt::format(" {:>9} {:>11} {:>9}", "-", "-", "-");
    const int writers =
        deck::shard_of(deck_.parallel) == deck::Shard::none ? there.replica() : there.ranks();
    const Course c = course(plan_, rate, writers);
    return text + fmt::format(" {:>9} {:>11} {:>9}", c.steps, duration(c.seconds()),
                              dollars(c.dollars(deck_, there.ranks()), 2));
  }

  deck::Deck deck_;
  const Plan& plan_;
  comm::Extents own_;
  SizeUnit unit_;
  bool divisible_;
  std::optional<double> here_;
};

}  // namespace

std::string layouts(const deck::Deck& deck, const Plan& plan, const comm::Extents& extents) {
  return TrainingLayouts(deck, plan, extents).text();
}

std::string layouts(const deck::Deck& deck, const generate::EngineOptions& options,
                    std::size_t usable_bytes, const Throughput& throughput) {
  const comm::Extents& own = throughput.own;
  const bool rated = throughput.rates || throughput.measured;
  std::string text = fmt::format(
      "on other numbers of tensor ranks (x {} data), GiB per rank, of {:.2f} usable here\n"
      "  tensor  w/o cache      cache  cache tokens{}\n",
      own.data, static_cast<double>(usable_bytes) / gib, rated ? rate_columns : "");
  generate::EngineOptions one_page = options;
  one_page.pages = 1;
  for (const int tensor : counts) {
    text += fmt::format("  {:>6}", tensor);
    try {
      workload::check_division(deck.model, tensor, 1);
    } catch (const UserError&) {
      text += fmt::format("{:>11}\n", "-");
      continue;
    }
    const ServingPlan there =
        measure_serving(deck, one_page, *comm::Mesh::for_planning({1, tensor, 1}));
    const std::size_t rest =
        usable_bytes > there.total_bytes ? usable_bytes - there.total_bytes : 0;
    generate::EngineOptions fitting = options;
    fitting.pages = std::min(rest / there.page_bytes, generate::Engine<float>::max_pages(options));
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
    text += fmt::format("  {:>6} {:>8}", data, there.ranks()) +
            rate_cells(deck, throughput, throughput.own_options, there) + "\n";
  }
  return text + fmt::format("  ({})\n", throughput.kind(deck));
}

}  // namespace tern::plan
