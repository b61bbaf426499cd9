#include "job/run_record.hpp"

#include <fmt/chrono.h>

#include <Kokkos_Core.hpp>
#include <ctime>
#include <fstream>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/version.hpp"
#include "base/wait_policy.hpp"
#include "comm/gpu.hpp"
#include "comm/hosts.hpp"
#include "deck/objective_kind.hpp"
#include "job/exit_code.hpp"
#include "memory/views.hpp"

namespace tern::job {
namespace {

std::string now() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "an unnamed processor";
}

std::string device_name() {
  const std::string gpu = comm::gpu::name();
  return gpu.empty() ? fmt::format("{} on {}", Device::name(), processor()) : gpu;
}

std::string plural(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

RunRecord RunRecord::of(const deck::Deck& deck, const comm::Session& session) {
  RunRecord r;
  r.program = fmt::format("tern {}", version());
  r.commit = tern::commit();
  r.task = deck.campaign.task;
  r.name = deck.campaign.name;
  r.started = now();
  const comm::Hosts hosts = comm::hosts();
  r.host = hosts.text();
  r.device = device_name();
  r.waits = wait_policy();
  r.ranks = session.size();
  r.ranks_per_host = hosts.most;
  r.threads = Kokkos::DefaultHostExecutionSpace().concurrency();
  return r;
}

void RunRecord::add(const deck::Deck& deck, std::size_t parameters, const std::string& of_step,
                    std::int64_t planned_steps) {
  const deck::Model& m = deck.model;
  model = fmt::format("{:.4g} M parameters ({}): {}, hidden {}, {}, context {}, vocabulary {}",
                      static_cast<double>(parameters) / 1e6, deck::objective_name(deck),
                      plural(static_cast<int>(m.layers), "layer"), m.hidden,
                      plural(static_cast<int>(m.heads), "head"), m.context, m.vocabulary);
  batch = of_step + " per step";
  precision = deck.precision.compute;
  steps = planned_steps > 0 ? planned_steps : deck.campaign.max_steps;
}

void RunRecord::end(int code) {
  exit_code = code;
  ended = now();
}

std::string RunRecord::place() const {
  std::string text = fmt::format("{} x {}", plural(ranks, "rank"), plural(threads, "thread"));
  if (ranks_per_host < ranks)
    text +=
        fmt::format(", {}{} per host", ranks % ranks_per_host == 0 ? "" : "up to ", ranks_per_host);
  return text + ", " + device;
}

std::string RunRecord::head() const {
  return fmt::format("{} ({}): {} '{}'\n{}, {}: {}{}{}", program, commit, task, name, started, host,
                     place(), waits.empty() ? "" : "\nOpenMP waits: ", waits);
}

std::string RunRecord::ending(std::int64_t step) const {
  if (!exit_code) return "running (or killed without writing a record)";
  const auto with_code = [&](const char* text) {
    return fmt::format("{} (exit code {})", text, *exit_code);
  };
  switch (*exit_code) {
    case finished:
      return step < steps ? "before its last step: by target_loss, patience or max_hours"
                          : "finished";
    case not_saved:
      return with_code("ended, but a checkpoint, an evaluation or metrics could not be written");
    case interrupted:
      return with_code("stopped by a signal or the job's time limit");
    case diverged:
      return with_code("stopped: too many steps without a finite loss or gradient");
    case verdict_failed:
      return with_code("finished, but failed its verdict");
    default:
      return with_code("ended with an error");
  }
}

bool write_run_record(const std::filesystem::path& run_directory, const RunRecord& r) {
  nlohmann::ordered_json object = {{"program", r.program}, {"commit", r.commit},
                                   {"task", r.task},       {"name", r.name},
                                   {"started", r.started}, {"host", r.host},
                                   {"device", r.device},   {"waits", r.waits},
                                   {"ranks", r.ranks},     {"ranks_per_host", r.ranks_per_host},
                                   {"threads", r.threads}, {"model", r.model},
                                   {"batch", r.batch},     {"precision", r.precision},
                                   {"steps", r.steps}};
  if (r.exit_code) object.update({{"exit_code", *r.exit_code}, {"ended", r.ended}});
  return replace_file(run_directory / "run.json",
                      json_text(object, 2, InvalidUtf8::replaced) + '\n');
}

std::optional<RunRecord> read_run_record(const std::filesystem::path& run_directory) {
  const auto object = try_json(read_text_or_empty(run_directory / "run.json"));
  if (!object.is_object()) return std::nullopt;
  try {
    RunRecord r;
    for (const auto& [name, text] : {std::pair{"program", &r.program},
                                     {"commit", &r.commit},
                                     {"task", &r.task},
                                     {"name", &r.name},
                                     {"started", &r.started},
                                     {"host", &r.host},
                                     {"device", &r.device},
                                     {"waits", &r.waits},
                                     {"model", &r.model},
                                     {"batch", &r.batch},
                                     {"precision", &r.precision}})
      object.at(name).get_to(*text);
    object.at("ranks").get_to(r.ranks);
    // Runs before 0.2 named it ranks_a_host.
    object.at(object.contains("ranks_per_host") ? "ranks_per_host" : "ranks_a_host")
        .get_to(r.ranks_per_host);
    object.at("threads").get_to(r.threads);
    object.at("steps").get_to(r.steps);
    if (object.contains("exit_code")) r.exit_code = object.at("exit_code").get<int>();
    r.ended = object.value("ended", "");
    return r;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace tern::job
