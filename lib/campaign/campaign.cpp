#include "campaign/campaign.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "deck/choices.hpp"
#include "words/numbers.hpp"

#include "answer/batch_inference.hpp"
#include "campaign/inputs.hpp"
#include "campaign/show_batch.hpp"
#include "campaign/tasks.hpp"
#include "campaign/training/trainer.hpp"
#include "comm/agreement.hpp"
#include "comm/hosts.hpp"
#include "comm/waits.hpp"
#include "deck/differences.hpp"
#include "deck/rules.hpp"
#include "job/exit_code.hpp"
#include "job/interrupt.hpp"
#include "job/options.hpp"
#include "job/run_directory.hpp"
#include "job/run_record.hpp"
#include "plan/devices.hpp"
#include "plan/layouts.hpp"
#include "plan/plan.hpp"
#include "plan/remedies.hpp"
#include "plan/step_contents.hpp"
#include "report/report.hpp"
#include "workload/storage.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {
namespace {

/// Logs what runs and writes run.json; at the end, with the exit `code`, also the report. Rank 0.
void record_run(const job::RunDirectory& directory, job::RunRecord& record, std::optional<int> code,
                Log& log) {
  if (!log.prints()) return;
  if (code)
    record.end(*code);
  else
    log.line("{}", record.head());
  if (!job::write_run_record(directory.path, record))
    log.warning("{}/run.json could not be written", directory.path.string());
  if (code) report::make_report(directory.path, log);
}

/// Rank 0 prepares the directory while the others wait; its failure ends all ranks. Collective.
job::RunLock agree_on_directory(const job::RunDirectory& directory, const deck::Deck& deck,
                                const job::Options& options, comm::Group& group) {
  job::RunLock lock;
  const comm::LongWait files;
  if (group.rank() == 0) lock = job::open_run_directory(directory, deck, options);
  group.barrier();
  return lock;
}

/// Models rarely learn in fewer optimizer steps: warmup and schedule take a good part of them.
constexpr std::int64_t few_steps = 50;
/// Fraction of rows below which micro-batches are rather empty.
constexpr double few_filled = 0.7;

void say(const std::vector<std::string>& notes, Log& log) {
  for (const std::string& note : notes) log.line("{}", note);
}

/// Warns of a run with few updates, whose deck gave `epochs`.
void warn_of_few_steps(const plan::Plan& plan, std::int64_t epochs, Log& log) {
  if (plan.steps == 0 || plan.steps >= few_steps) return;
  const bool packed = plan.data.per_row() > 1 && !deck::counts_samples(plan.deck.batch);
  log.warning(
      "only {} ({}) of {}; models rarely learn anything in fewer than {}: {}{}",
      counted(plan.steps, "update"),
      epochs > 0 ? fmt::format("epochs = {}", epochs)
                 : fmt::format("max_steps = {}", plan.deck.campaign.max_steps),
      plan::step_text(plan), few_steps,
      epochs > 0 ? "lower &batch global, or raise &campaign epochs" : "raise &campaign max_steps",
      epochs > 0 && packed ? "; &batch unit = 'samples' makes global count samples, not rows" : "");
}

/// Warns if a good part of the micro-batches is empty rows.
void warn_of_empty_rows(const plan::Plan& plan, int ranks, Log& log) {
  const workload::Layout& layout = plan.layout;
  if (layout.filled() >= few_filled) return;
  const double together = static_cast<double>(layout.global / layout.accumulation);
  const double rows = std::max(1.0, std::floor(layout.steps.mean() / together)) * together;
  log.warning(
      "{} per step fill {:.0f}% of the micro-batches of {} data ranks x per_rank = {}: set "
      "&batch global = {:.0f}{}, or use fewer ranks",
      plan::step_text(plan), 100 * layout.filled(), ranks, layout.per_rank,
      std::floor(rows * plan.data.per_row()), layout.per_rank > 1 ? ", lower per_rank" : "");
}

/// Completes the plan with size and contents of the training data.
void add_to(plan::Plan& plan, TrainingData& data, const comm::Mesh& mesh, Log& log) {
  const std::int64_t epochs = plan.deck.campaign.epochs;
  const data::Source& train = *data.train.source;
  plan::set_data(plan, mesh.extents(), data.train.size, plan::mean_row(plan.deck, train));
  if (epochs > 0) data.train.summary += fmt::format("; epochs = {}: {} steps", epochs, plan.steps);
  warn_of_few_steps(plan, epochs, log);
  warn_of_empty_rows(plan, mesh.data().size(), log);
}

/// The plan of a deck, and the training data if they were opened for it: before, if the layout
/// depends on them, else after, when the layout has been checked.
std::pair<plan::Plan, std::optional<TrainingData>> make_plan(const deck::Deck& deck,
                                                             const job::Options& options,
                                                             const comm::Mesh& mesh,
                                                             const comm::Mesh& at_work, Log& log) {
  std::optional<TrainingData> data;
  const bool before = deck::counts_samples(deck.batch) && !options.show_batch;
  if (before) data = open_planned_data(deck, options, mesh, log);
  plan::PlannedDevice device(options.device, {options.ranks_per_node, options.network});
  if (options.dry_run && deck::trains(deck)) device.time_host(deck);
  plan::Plan plan =
      plan::make_plan(deck, at_work, device, data ? data->train.size : data::SetSize());
  if (!before && !options.show_batch) data = open_planned_data(plan.deck, options, mesh, log);
  if (data) add_to(plan, *data, mesh, log);
  return {std::move(plan), std::move(data)};
}

/// The plan as a table, or as a summary if a run is resumed.
std::string table(const plan::Plan& plan, const comm::Mesh& mesh,
                  const job::RunDirectory& directory) {
  return directory.holds_a_run() ? plan::summary(plan, mesh.extents())
                                 : plan::table(plan, mesh.extents());
}

template <class T>
int train(const job::Options& options, plan::Plan plan, std::optional<TrainingData> data,
          const comm::Mesh& mesh, const comm::Session& session, Log& log) {
  const deck::Deck& deck = plan.deck;
  const job::RunDirectory directory{deck.output.directory};
  const job::RunLock lock = agree_on_directory(directory, deck, options, mesh.world());
  log.open(directory.log());
  job::RunRecord record = job::RunRecord::of(deck, session);
  record.add(deck, plan.parameters, plan::step_text(plan), plan.steps);
  record_run(directory, record, {}, log);
  say(options.notes, log);
  if (!data) {
    data = open_training_data(deck, mesh, log);
    add_to(plan, *data, mesh, log);
  }
  log.line("{}", table(plan, mesh, directory));
  Trainer<T> trainer(options, plan, directory, std::move(*data), mesh, session.local_rank(), log);
  if (mesh.world().rank() == 0 && options.resume) job::write_deck(directory, deck);
  const int code = trainer.run();
  record_run(directory, record, code, log);
  return code;
}

/// Whether the deck's task is done, rather than something shown or exported.
bool works(const job::Options& options) {
  return options.export_to.empty() && !options.dry_run && !options.show_batch;
}

bool trains(const deck::Deck& deck, const job::Options& options) {
  return deck::trains(deck) && works(options);
}

/// Whether a signal stops the task so that --resume can continue it.
bool resumable(const deck::Deck& deck, const job::Options& options) {
  return trains(deck, options) || (answer::is_batch_inference(deck) && works(options));
}

template <class T>
int run_task(const deck::Deck& deck, const job::Options& options, const comm::Mesh& mesh,
             const comm::Session& session) {
  Log log(session.rank() == 0, options.verbosity);
  if (!resumable(deck, options)) job::leave_signals();
  if (!trains(deck, options)) say(options.notes, log);
  if (!options.export_to.empty()) {
    const comm::LongWait files;
    return export_model(deck, options.export_to, mesh.world(), log);
  }
  if (answer::is_batch_inference(deck))
    return answer::answer_file<T>(deck, options, mesh, session, log);
  const bool generates = deck::task_of(deck) == deck::Task::generate;
  const auto replica = generates ? mesh.one_replica() : nullptr;
  const comm::Mesh& at_work = replica ? *replica : mesh;
  auto [plan, data] =
      make_plan(generates ? of_one_sequence(deck) : deck, options, mesh, at_work, log);
  if (options.show_batch) return show_batch(plan, mesh.data(), log);
  const std::string table = plan::table(plan, mesh.extents());
  const std::string shortage = plan::shortage(plan, at_work);
  if (options.dry_run) {  // perhaps for another machine: a shortage is no error
    if (!data && deck::trains(deck)) warn_of_few_steps(plan, deck.campaign.epochs, log);
    log.result("{}{}{}", table, shortage.empty() ? "" : "\n", shortage);
    if (deck::trains(deck)) log.result("{}", plan::layouts(deck, plan, mesh.extents()));
    return job::finished;
  }
  if (!shortage.empty()) user_error("{}\n{}", table, shortage);
  if (deck::task_of(deck) == deck::Task::evaluate) return evaluate_weights<T>(plan, mesh, log);
  if (replica) {
    const comm::LongWait for_the_first_replica;
    if (mesh.data().rank() == 0) generate_text<T>(plan, *replica, log);
    mesh.world().barrier();
    return job::finished;
  }
  return train<T>(options, plan, std::move(data), mesh, session, log);
}

}  // namespace

bool leaves_files(const deck::Deck& deck, const job::Options& options) {
  if (options.dry_run || options.show_batch) return false;
  return deck::task_of(deck) != deck::Task::generate || !options.export_to.empty() ||
         answer::is_batch_inference(deck);
}

namespace {

/// All that decides what a rank does.
std::vector<std::string> settings_of(const deck::Deck& deck, const job::Options& options) {
  std::vector<std::string> settings = deck::settings(deck);
  settings.insert(settings.end(), options.given.begin(), options.given.end());
  settings.push_back(fmt::format("the program tern {} ({})", version(), commit()));
  return settings;
}

void check_plan_options(const job::Options& options, const comm::Session& session) {
  if (options.without_data && !options.dry_run)
    user_error("--without-data only applies to --dry-run; add --dry-run or drop --without-data");
  if (!options.device.empty() && !options.dry_run)
    user_error("--device {} only applies to --dry-run; add --dry-run or drop --device",
               options.device);
  if (options.ranks != 0 && (!options.dry_run || options.ranks < 0 || session.size() > 1))
    user_error("--ranks {} only applies to --dry-run on one rank; {}", options.ranks,
               options.ranks < 0    ? "set 1 or more"
               : session.size() > 1 ? "start one rank, or drop --ranks"
                                    : "add --dry-run, or start as many ranks with mpirun or srun");
  const auto of_a_plan = [&](const char* name, double value) {
    if (value != 0 && (value < 0 || !options.dry_run || session.size() > 1))
      user_error("--{} {} only applies to --dry-run on one rank; {}", name, value,
                 value < 0          ? "set a number above 0"
                 : !options.dry_run ? fmt::format("add --dry-run or drop --{}", name)
                                    : fmt::format("start one rank, or drop --{}", name));
  };
  of_a_plan("ranks-per-node", options.ranks_per_node);
  of_a_plan("network", options.network);
}

}  // namespace

int run(const deck::Deck& deck, const job::Options& given, const comm::Session& session) {
  comm::require_same(settings_of(deck, given));
  check_plan_options(given, session);
  job::Options options = given;
  comm::limit_waits(deck.parallel.wait_minutes);
  if (session.size() > 1)
    if (const comm::Hosts hosts = comm::hosts(); hosts.count() > 1)
      options.ranks_per_node = hosts.most;
  // A dry run on one rank may plan for many.
  const auto mesh = options.dry_run && session.size() == 1
                        ? workload::planning_mesh(deck, options.ranks)
                        : workload::make_mesh(deck);
  return workload::with_storage(
      deck, [&](auto zero) { return run_task<decltype(zero)>(deck, options, *mesh, session); });
}

}  // namespace tern::campaign
