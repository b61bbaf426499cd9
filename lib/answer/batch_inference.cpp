#include "answer/batch_inference.hpp"

#include <algorithm>
#include <unordered_map>

#include "answer/detail/progress.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "comm/waits.hpp"
#include "deck/choices.hpp"
#include "job/options.hpp"
#include "job/run_directory.hpp"

namespace tern::answer {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void write(const fs::path& path, const std::string& text) {
  if (!replace_file(path, text))
    user_error(
        "{}: cannot be written; is the disk full? The answers so far are kept in parts/; free some "
        "space, then pass --resume",
        path.string());
}

/// Prepares the run directory and locks it. Called by rank 0.
job::RunLock open_directory(const deck::Deck& deck, const detail::AnswerFiles& files,
                            const job::Options& options) {
  try {
    fs::create_directories(files.directory);
    job::RunLock lock(files.directory);
    remove_leftovers(files.directory);
    if (options.fresh)
      for (const fs::path& path : {files.parts(), files.answers, files.rejects(), files.summary()})
        job::move_aside(path);
    for (const fs::path& path : {files.parts(), files.answers})
      if (!options.resume && fs::exists(path))
        user_error(
            "{} belongs to an earlier run; continue it with --resume, move it aside with --fresh, "
            "or set another &output directory or &generation output",
            path.string());
    if (files.answers.has_parent_path()) fs::create_directories(files.answers.parent_path());
    const job::RunDirectory run{files.directory};
    if (!run.holds_a_run()) write(run.deck(), deck::print(deck, false));
    return lock;
  } catch (const fs::filesystem_error& e) {
    user_error("cannot use {}: {}; check &output directory and &generation output",
               e.path1().string(), e.code().message());
  }
}

ordered_json with_label(ordered_json object, const ChatRequest& request) {
  object["id"] = request.id;
  if (!request.label.is_null()) object["label"] = request.label;
  return object;
}

std::string answer_line(const ChatRequest& request, const detail::AnswerRecord& record) {
  const auto message = [](const char* role, const std::string& content) {
    return ordered_json{{"role", role}, {"content", content}};
  };
  ordered_json object = with_label(
      {{"messages",
        ordered_json::array({message("user", request.text), message("assistant", record.text)})}},
      request);
  object["finish_reason"] = record.cut ? "length" : "stop";
  return detail::line_of(object);
}

std::string reject_line(const ChatRequest& request, const detail::AnswerRecord& record) {
  ordered_json object = with_label(ordered_json::object(), request);
  object.update({{"text", request.text},
                 {"written", record.text},
                 {"reject", record.reject},
                 {"reason", record.reason}});
  return detail::line_of(object);
}

}  // namespace

bool is_batch_inference(const deck::Deck& deck) {
  return !deck::trains(deck) && !deck.generation.input.empty();
}

Replica replica_of(const comm::Mesh& mesh) {
  return {mesh.data().rank(), mesh.data().size(), mesh.replica().rank() == 0, &mesh.replica()};
}

BatchInference::BatchInference(const deck::Deck& deck, const std::string& weights,
                               const job::Options& options, const text::Tokenizer& tokenizer,
                               const comm::Mesh& mesh, Log& log)
    : deck_(deck),
      tokenizer_(tokenizer),
      replica_(replica_of(mesh)),
      group_(mesh.world()),
      log_(log),
      rules_(prompt_rules(deck)),
      reader_({rules_.chat, deck.generation.pattern, deck.generation.stop, rules_.continues}),
      requests_(read_requests(deck.generation.input)),
      files_(deck),
      provenance_(detail::provenance(deck, weights)) {
  if (!deck.generation.prompt_template.empty())
    prompt_ = PromptTemplate(deck.generation.prompt_template);
  answered_.assign(requests_.size(), 0);
  const comm::LongWait files;
  if (group_.rank() == 0) {
    lock_ = open_directory(deck, files_, options);
    load_earlier_parts();
  }
  group_.broadcast(answered_.data(), answered_.size(), 0);
  group_.broadcast(&session_, sizeof session_, 0);
  remaining_ = static_cast<std::size_t>(std::count(answered_.begin(), answered_.end(), 0));
}

/// Reads the parts of earlier sessions. Rank 0 only: others might already append to theirs.
void BatchInference::load_earlier_parts() {
  if (fs::exists(files_.answers) && !fs::exists(files_.parts()))
    user_error(
        "{} exists, but the parts that it was made from, {}, do not; start from scratch with "
        "--fresh",
        files_.answers.string(), files_.parts().string());
  const detail::Journal parts = detail::read_journal(files_, provenance_, requests_.size());
  for (const detail::AnswerRecord& record : parts.records) answered_.at(record.number) = 1;
  constexpr std::size_t max_named = 20;
  for (std::size_t i = 0; i < std::min(parts.damaged.size(), max_named); ++i)
    log_.warning("{}: the line is damaged; its request is answered again", parts.damaged[i]);
  if (parts.damaged.size() > max_named)
    log_.warning("{} more lines are damaged", parts.damaged.size() - max_named);
  session_ = parts.sessions + 1;
  make_own_folder(files_.parts());
  if (parts.sessions > 0)
    log_.line(
        "resumed: {} of {} requests are answered{}", parts.records.size(), requests_.size(),
        parts.cut > 0 ? fmt::format(", {} truncated ones are answered again", parts.cut) : "");
}

void BatchInference::complete(generate::EngineOptions& options) const {
  options.vocabulary = tokenizer_.vocabulary();
  options.stop_tokens = end_tokens(deck_, rules_, tokenizer_);
  if (reader_.longest_stop() == 0) return;
  // A stop text completed by the newest token spans at most as many tokens as it has bytes.
  options.stopped = [this](const std::vector<std::int32_t>& tokens) {
    const std::size_t newest = std::min(tokens.size(), reader_.longest_stop());
    return reader_.stops(
        tokenizer_.decode({tokens.end() - static_cast<std::ptrdiff_t>(newest), tokens.end()}));
  };
}

generate::Request BatchInference::request(std::size_t number) const {
  return {number, prompt_tokens(prompt_.fill(requests_[number].text), rules_, tokenizer_),
          static_cast<std::size_t>(deck_.generation.max_tokens)};
}

detail::AnswerRecord BatchInference::judged(const generate::Answer& answer,
                                            std::size_t prompt_tokens) const {
  using generate::FinishReason;
  detail::AnswerRecord record;
  record.number = answer.id;
  record.prompt_tokens = prompt_tokens;
  record.new_tokens = answer.tokens.size();
  record.cut = answer.finish_reason == FinishReason::length;
  const std::string written = tokenizer_.decode(answer.tokens);
  ReadAnswer read{written, "", ""};
  if (answer.finish_reason == FinishReason::refused ||
      answer.finish_reason == FinishReason::not_finite)
    read = {written, answer.finish_reason == FinishReason::refused ? "refused" : "not finite",
            answer.reason};
  else
    read = reader_.read(written, record.cut);
  record.text = read.text;
  record.reject = read.reject;
  record.reason = read.reason;
  return record;
}

bool BatchInference::run(AnyEngine& any_engine, const std::function<bool()>& stop) {
  std::vector<std::size_t> mine;  // every count-th remaining request
  for (std::size_t i = 0, left = 0; i < answered_.size(); ++i)
    if (answered_[i] == 0 && left++ % static_cast<std::size_t>(replica_.count) ==
                                 static_cast<std::size_t>(replica_.number))
      mine.push_back(i);
  std::optional<detail::JournalWriter> part;
  if (replica_.prints && !mine.empty())
    part.emplace(files_.part(replica_.number), provenance_, session_);

  detail::AnswerProgress progress(log_, replica_.number, replica_.count, mine.size());
  std::unordered_map<std::uint64_t, std::size_t> prompt_tokens;  // running requests, by number
  const auto ahead = static_cast<std::size_t>(deck_.generation.batch);
  std::size_t next = 0, done = 0;
  const auto submit = [&] {
    for (; next < mine.size() && any_engine.stats().waiting < ahead; ++next) {
      generate::Request taken = request(mine[next]);
      prompt_tokens[taken.id] = taken.prompt.size();
      any_engine.submit(std::move(taken));
    }
  };
  std::vector<generate::Answer> answers;  // of the pass before
  const auto keep = [&] {
    for (const generate::Answer& answer : answers) {
      detail::AnswerRecord record = judged(answer, prompt_tokens.at(answer.id));
      prompt_tokens.erase(answer.id);
      const generate::Stats stats = any_engine.stats();
      record.seconds = progress.seconds();
      record.computed_tokens = stats.computed_tokens;
      record.reused_tokens = stats.reused_tokens;
      if (part) part->append(record);
      ++done;
    }
    answers.clear();
  };
  bool stopped = false;
  for (submit(); any_engine.busy() && !stopped; submit()) {
    // While the device runs a pass the host writes the answers of the one before and tokenizes the
    // next requests.
    answers = any_engine.step([&] { keep(), submit(); });
    progress.at(done, any_engine.stats());
    const std::size_t left = mine.size() - done - answers.size();
    stopped = left > 0 && replica_.ranks->any(stop());
  }
  keep();
  return !stopped;
}

std::optional<BatchInference::Done> BatchInference::finish() {
  const comm::LongWait files;
  group_.barrier();  // all parts are written
  std::optional<Done> done;
  if (group_.rank() == 0) {
    done.emplace();
    detail::Journal parts = detail::read_journal(files_, provenance_, requests_.size());
    if (parts.records.size() < requests_.size())
      user_error(
          "{} of {} requests are answered: lines of {} were lost or damaged meanwhile{}{}; pass "
          "--resume to answer the others",
          parts.records.size(), requests_.size(), files_.parts().string(),
          parts.damaged.empty() ? "" : ", the first ",
          parts.damaged.empty() ? "" : parts.damaged.front());
    done->summary = detail::summarize(deck_, parts, group_.size());
    std::string answers, rejects;
    for (const detail::AnswerRecord& r : parts.records)
      (r.good() ? answers : rejects) +=
          r.good() ? answer_line(requests_[r.number], r) : reject_line(requests_[r.number], r);
    ordered_json summary = done->summary.to_json();
    summary["made_from"] = provenance_;
    if (rejects.empty())
      fs::remove(files_.rejects());
    else
      write(files_.rejects(), rejects);
    write(files_.summary(), json_text(summary, 2) + '\n');
    write(files_.answers, answers);
    done->records = std::move(parts.records);
    log_.result("{}", detail::table(done->summary, files_));
  }
  group_.barrier();
  return done;
}

}  // namespace tern::answer
