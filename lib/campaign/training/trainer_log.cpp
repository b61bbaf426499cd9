// Log of the training loop: a line per logged step.
#include <algorithm>
#include <filesystem>

#include "base/files.hpp"
#include "base/host.hpp"
#include "campaign/training/loss_scale.hpp"
#include "campaign/training/trainer.hpp"
#include "comm/text.hpp"
#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "plan/throughput.hpp"
#include "words/numbers.hpp"

namespace tern::campaign {

/// Since the last logged step. Collective.
template <class T>
report::RankUsage Trainer<T>::usage_of_ranks() {
  report::RankInterval mine = interval_.of_rank(clock_.of_this_start(), meter_.read());
  mine.compute = phases_.take_compute_seconds();
  mine.stage = mesh_.pipeline().rank();
  return {mine, world_};
}

/// Names the slowest rank if it is slower than the others by the margin. Collective.
template <class T>
void Trainer<T>::name_slowest(const report::RankUsage& ranks) {
  const auto slow = ranks.slowest();  // the same on all ranks
  if (!slow || slow->excess < report::RankUsage::margin) return;
  const std::string host = comm::broadcast_text(host_name(), world_, slow->rank);
  log_.row_text(state_.step, "slowest: rank {} on {}, +{:.0f}%", slow->rank, host,
                100 * slow->excess);
}

/// Columns of log_step().
template <class T>
void Trainer<T>::begin_table() {
  std::vector<LogColumn> columns{{"loss", 7}};
  const std::vector<std::string> names = workload_.objective->parts();
  // Of many parts the first and the last are the ones to keep.
  for (std::size_t i = 0; i < names.size(); ++i)
    columns.push_back({names[i], std::max<std::size_t>(7, names[i].size()),
                       1 + static_cast<int>(std::min(i, names.size() - 1 - i))});
  columns.insert(columns.end(), {{"lr", 8}, {"grad", 7}, {"tokens/s", 9}});
  if (peak_tflops_) columns.push_back({"MFU", 5});
  columns.push_back({"left", 8});
  log_.begin_table("step", columns);
}

/// The step that ended, on a terminal.
template <class T>
void Trainer<T>::show_progress(const StepResult& result, double seconds) {
  const std::string left = left_text();
  log_.progress("step {}{}  loss {:.4f}  {} tokens/s{}", state_.step,
                timed_ ? "" : fmt::format(" of {}", deck_.campaign.max_steps), result.loss,
                rounded(static_cast<double>(result.counts.data_tokens) / seconds),
                left.empty() ? "" : "  " + left + " left");
}

/// Metrics of a logged step.
template <class T>
report::Values Trainer<T>::values_of(const StepResult& result, double rate,
                                     const report::RankUsage& ranks) {
  const double seconds = ranks.wall();
  const data::Counts& counts = interval_.counts();
  const double tokens = static_cast<double>(counts.data_tokens);
  report::Values values{{"train/loss", result.loss},
                        {"train/grad_norm", result.gradient_norm},
                        {"train/lr", rate},
                        {"train/tokens", static_cast<double>(state_.tokens)},
                        {"train/skipped", static_cast<double>(state_.skipped)},
                        {"data/wait_share", ranks.waited() / seconds},
                        {"system/seconds", clock_.seconds()}};
  if (!starting_up()) values.emplace_back("train/throughput", tokens / seconds);
  if (deck::holds_samples(deck_.data)) {
    if (!starting_up())
      values.emplace_back("train/samples_per_second",
                          static_cast<double>(counts.samples) / seconds);
    values.emplace_back("data/fill", data_.train.fill);
    values.emplace_back("train/learned_tokens", static_cast<double>(counts.predicted()) / tokens);
  }
  const std::vector<std::string> names = workload_.objective->parts();
  for (std::size_t i = 0; i < names.size(); ++i)
    values.emplace_back("train/loss_" + names[i], result.parts[i]);
  if (!names.empty())
    values.emplace_back("train/loss_per_token",
                        workload_.objective->per_token(result.loss, result.parts, result.counts));
  for (const auto& [name, figure] : workload_.objective->figures(result.parts))
    values.emplace_back("train/" + name, figure);
  if (result.router_loss) values.emplace_back("train/router_loss", *result.router_loss);
  if (deck::compute_of(deck_.precision) == deck::Compute::fp16) {
    values.emplace_back("train/loss_scale", loss_scale_of(deck_.precision, state_));
    values.emplace_back("train/overflowed", static_cast<double>(state_.overflowed));
  }
  if (result.saturated) values.emplace_back("train/fp8_saturated", *result.saturated);
  return values;
}

template <class T>
void Trainer<T>::log_step(const StepResult& result, double rate) {
  const auto timed = phases_.scope(profile::Phase::output);
  const report::RankUsage ranks = usage_of_ranks();
  const double throughput = static_cast<double>(interval_.counts().data_tokens) / ranks.wall();
  report::Values values = values_of(result, rate, ranks);
  std::string mfu = "-";
  if (peak_tflops_ && !starting_up()) {
    const double share =
        throughput * plan_.flops_per_token / (*peak_tflops_ * 1e12 * world_.size());
    values.emplace_back("train/mfu", share);
    mfu = fmt::format("{:.1f}%", 100 * share);
  }
  const report::Values system = ranks.metrics();
  values.insert(values.end(), system.begin(), system.end());
  if (metrics_)
    metrics_->write(state_.step, values,
                    {{"samples_hash", fmt::format("{:016x}", result.samples_hash)},
                     {"samples_hash_total", fmt::format("{:016x}", state_.samples_hash)}});
  std::vector<std::string> cells{fmt::format("{:.4f}", result.loss)};
  for (const double part : result.parts) cells.push_back(fmt::format("{:.4f}", part));
  cells.push_back(fmt::format("{:.2e}", rate));
  cells.push_back(fmt::format("{:.3f}", result.gradient_norm));
  cells.push_back(starting_up() ? "-" : rounded(throughput));
  if (peak_tflops_) cells.push_back(mfu);
  cells.push_back(left_text().empty() ? "-" : left_text());
  log_.row(state_.step, cells);
  if (starting_up() && log_.details())
    log_.row_text(state_.step, "first step: {:.3g} s, no part of a rate", ranks.wall());
  name_slowest(ranks);
  if (!starting_up()) rates_.push_back(throughput);
  interval_.restart();
}

/// "12 min"; empty where it cannot be known.
template <class T>
std::string Trainer<T>::left_text() const {
  const auto rows_in = [&](std::int64_t steps) {
    return layout_.steps.rows_in(static_cast<std::uint64_t>(steps));
  };
  const double rows = timed_ ? 0 : rows_in(deck_.campaign.max_steps) - rows_in(state_.step);
  const auto left = left_.seconds(state_.step, rows, clock_.seconds());
  return left ? duration(*left) : "";
}

/// Table and trace of the profiled step, for each rank. Collective.
template <class T>
void Trainer<T>::write(profile::Profile& profile) {
  profile.finish();
  const auto timed = phases_.scope(profile::Phase::output);
  const int rank = world_.rank();
  if (!profile.trouble().empty()) {
    log_.warning("step {} is not profiled: {}", deck_.output.profile, profile.trouble());
    return;
  }
  profile::Ceilings ceilings;
  if (const auto rates = plan::device_rates(deck_)) {
    ceilings.flops = rates->flops, ceilings.bytes = rates->bytes;
    if (deck::compute_of(deck_.precision) == deck::Compute::fp8)
      ceilings.fp8_flops = 1e12 * plan::peak_tflops(deck_).value_or(0);
  }
  const std::filesystem::path folder = directory_.profile();
  make_own_folder(folder);
  const std::string table = profile.table(deck_.output.profile, ceilings);
  replace_file(folder / fmt::format("rank_{:04}.txt", rank), table);
  replace_file(folder / fmt::format("rank_{:04}.json", rank), profile.trace(rank));
  log_.line("profile in {}: {}", folder.string(), table.substr(0, table.find('\n')));
}

#define INSTANTIATE(T)                                                \
  template void Trainer<T>::log_step(const StepResult&, double);      \
  template void Trainer<T>::begin_table();                            \
  template void Trainer<T>::show_progress(const StepResult&, double); \
  template void Trainer<T>::write(profile::Profile&);
INSTANTIATE(float)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::campaign
