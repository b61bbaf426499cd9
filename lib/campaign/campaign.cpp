#include "campaign/campaign.hpp"

#include "base/error.hpp"
#include "base/log.hpp"

#include "answer/bulk.hpp"
#include "campaign/epochs.hpp"
#include "campaign/show_batch.hpp"
#include "campaign/tasks.hpp"
#include "campaign/trainer.hpp"
#include "comm/waits.hpp"
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
#include "report/report.hpp"
#include "workload/workload.hpp"

namespace tern::campaign {
namespace {

/// Says what runs, and keeps it beside the metrics; `code`, once it has ended. On rank 0.
void record_run(const job::RunDirectory& directory, job::RunRecord& record, std::optional<int> code,
                Log& log) {
  if (!log.speaks()) return;
  if (code)
    record.end(*code);
  else
    log.line("{}", record.head());
  if (!job::write_run_record(directory.path, record))
    log.warning("{}/run.json could not be written", directory.path.string());
  if (code) report::make_report(directory.path, log);
}

/// Rank 0 prepares the directory while the others wait; its failure is everybody's.
job::RunLock agree_on_directory(const job::RunDirectory& directory, const deck::Deck& deck,
                                const job::Options& options, comm::Group& group) {
  job::RunLock lock;
  const comm::LongWait files;
  if (group.rank() == 0) lock = job::open_run_directory(directory, deck, options);
  group.barrier();
  return lock;
}

/// Opens the data of a deck whose plan depends on them: the steps of one that counts epochs are
/// counted, in it and in its plan, and so is what samples fill of their rows. A dry run may be
/// where the data are not.
std::optional<TrainingData> see_data(deck::Deck& deck, plan::Plan& plan,
                                     const job::Options& options, const comm::Mesh& mesh,
                                     Log& log) {
  const bool counts = deck.campaign.epochs > 0;
  const bool filled = options.dry_run && deck::holds_samples(deck.data);
  if (deck.campaign.task != "train" || !(counts || filled)) return std::nullopt;
  std::optional<TrainingData> data;
  try {
    data = open_training_data(deck, mesh, log);
  } catch (const UserError& e) {
    if (!options.dry_run) throw;
    log.line("{}: {}", counts ? "the number of steps is not known" : "the data are not here",
             e.what());
    return std::nullopt;
  }
  if (counts) {
    const std::int64_t epochs = deck.campaign.epochs;
    deck = with_steps(deck, data->train.source->rows(), plan.global);
    data->train.summary += fmt::format("; epochs = {}: {} steps", epochs, deck.campaign.max_steps);
  }
  plan::set_data(plan, deck, mesh.extents(), plan::mean_row(deck, *data->train.source));
  return data;
}

/// The plan whole, or in short where a run goes on.
std::string table(const plan::Plan& plan, const deck::Deck& deck, const comm::Mesh& mesh,
                  const job::RunDirectory& directory) {
  return directory.holds_a_run() ? plan::summary(plan, deck, mesh.extents())
                                 : plan::table(plan, deck, mesh.extents());
}

template <class T>
int train(const deck::Deck& deck, const job::Options& options, plan::Plan plan,
          std::optional<TrainingData> data, const comm::Mesh& mesh, const comm::Session& session,
          Log& log) {
  const job::RunDirectory directory{deck.output.directory};
  const job::RunLock lock = agree_on_directory(directory, deck, options, mesh.world());
  log.open(directory.log());
  job::RunRecord record = job::RunRecord::of(deck, session);
  record.add(deck, plan.parameters, plan.global, plan.steps);
  record_run(directory, record, {}, log);
  if (!data) {
    data = open_training_data(deck, mesh, log);
    plan::set_data(plan, deck, mesh.extents(), plan::mean_row(deck, *data->train.source));
  }
  log.line("{}", table(plan, deck, mesh, directory));
  Trainer<T> trainer(deck, options, plan, directory, std::move(*data), mesh, session.local_rank(),
                     log);
  const int code = trainer.run();
  record_run(directory, record, code, log);
  return code;
}

/// Whether a signal may ask for a stop that --resume takes up.
bool resumable(const deck::Deck& deck, const job::Options& options) {
  return (deck.campaign.task == "train" || answer::answers_a_file(deck)) &&
         options.export_to.empty() && !options.dry_run && !options.show_batch;
}

template <class T>
int dispatch(deck::Deck deck, const job::Options& options, const comm::Mesh& mesh,
             const comm::Session& session) {
  Log log(session.rank() == 0);
  if (!resumable(deck, options)) job::leave_signals();
  if (!options.export_to.empty()) {
    const comm::LongWait files;
    return export_model(deck, options.export_to, mesh.world(), log);
  }
  if (answer::answers_a_file(deck))
    return answer::answer_file<T>(deck, options, mesh, session, log);
  const deck::Deck planned = deck.campaign.task == "generate" ? of_one_sequence(deck) : deck;
  const auto replica = deck.campaign.task == "generate" ? mesh.one_replica() : nullptr;
  const comm::Mesh& at_work = replica ? *replica : mesh;
  plan::Plan plan = plan::make_plan(planned, at_work);
  if (options.show_batch) return show_batch(deck, plan, mesh.data(), log);
  auto data = see_data(deck, plan, options, mesh, log);
  const std::string table = plan::table(plan, deck, mesh.extents());
  const std::string shortage = plan::shortage(plan, planned, at_work);
  if (options.dry_run) {  // perhaps on another machine than that of the run: a shortage is no error
    log.line("{}{}{}", table, shortage.empty() ? "" : "\n", shortage);
    if (deck.campaign.task == "train") log.line("{}", plan::layouts(deck, plan, mesh.extents()));
    return job::finished;
  }
  if (!shortage.empty()) user_error("{}\n{}", table, shortage);
  if (plan.per_rank < deck.batch.per_rank) {  // a preset's, on more ranks than it has micro-steps
    deck.batch.preset = "none";
    deck.batch.per_rank = plan.per_rank;
  }
  if (deck.campaign.task == "evaluate") return evaluate_weights<T>(deck, plan, mesh, log);
  if (replica) {
    const comm::LongWait for_the_first_replica;
    if (mesh.data().rank() == 0) generate_text<T>(deck, plan, *replica, log);
    mesh.world().barrier();
    return job::finished;
  }
  return train<T>(deck, options, plan, std::move(data), mesh, session, log);
}

}  // namespace

bool leaves_files(const deck::Deck& deck, const job::Options& options) {
  if (options.dry_run || options.show_batch) return false;
  return deck.campaign.task != "generate" || !options.export_to.empty() ||
         answer::answers_a_file(deck);
}

int run(const deck::Deck& deck, const job::Options& options, const comm::Session& session) {
  if (!options.device.empty()) {
    if (!options.dry_run)
      user_error("--device {}: it says what a dry run plans for; add --dry-run, or leave it out",
                 options.device);
    plan::imagine_device(options.device);
  }
  if (options.ranks != 0 && (!options.dry_run || options.ranks < 0 || session.size() > 1))
    user_error("--ranks {}: it says how many ranks a dry run on one plans for; {}", options.ranks,
               options.ranks < 0    ? "write 1 or more"
               : session.size() > 1 ? "start one rank, or leave it out"
                                    : "add --dry-run, or start as many ranks by mpirun or srun");
  comm::limit_waits(deck.parallel.wait_minutes);
  // A plan may be asked for where the ranks of its deck are not.
  const auto mesh = options.dry_run && session.size() == 1
                        ? workload::imagined_mesh(deck, options.ranks)
                        : workload::make_mesh(deck);
  // fp8 is bf16 but for the products of the blocks' linear maps: model::TransformerOptions.
  if (deck.precision.compute == "bf16" || deck.precision.compute == "fp8")
    return dispatch<bf16>(deck, options, *mesh, session);
  return dispatch<float>(deck, options, *mesh, session);
}

}  // namespace tern::campaign
