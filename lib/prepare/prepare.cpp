#include "prepare/prepare.hpp"

#include <algorithm>
#include <future>
#include <ostream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "base/timer.hpp"
#include "data/shard_origin.hpp"
#include "data/shard_writer.hpp"
#include "prepare/detail/output_folder.hpp"
#include "prepare/detail/split_documents.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using detail::SplitPart;

constexpr std::size_t batch_bytes = std::size_t{1} << 25;  // of text tokenized at a time
constexpr double seconds_between_lines = 2;

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) * 1e-6; }

/// Logs progress every few seconds.
class Progress {
 public:
  Progress(Log& log, const char* what, std::size_t total) : log_(log), what_(what), total_(total) {}

  void at(std::size_t bytes) {
    if (since_last_.seconds() < seconds_between_lines) return;
    since_last_.restart();
    const double rate = megabytes(bytes) / timer_.seconds();
    log_.line("{}: {:.0f} of {:.0f} MB, {:.1f} MB/s, {:.0f} s left", what_, megabytes(bytes),
              megabytes(total_), rate, megabytes(total_ - std::min(bytes, total_)) / rate);
  }
  double seconds() const { return timer_.seconds(); }

 private:
  Log& log_;
  const char* what_;
  std::size_t total_;
  Timer timer_, since_last_;
};

/// Next parts, about `batch_bytes` in total; empty at the end.
std::vector<SplitPart> take_batch(detail::SplitDocuments& documents, std::size_t& bytes) {
  std::vector<SplitPart> batch;
  for (std::size_t size = 0; size < batch_bytes;) {
    auto next = documents.next();
    if (!next) break;
    size += next->part.raw.size();
    bytes += next->part.raw.size();
    batch.push_back(*std::move(next));
  }
  return batch;
}

void train_bpe(const PrepareOptions& options, const fs::path& folder, Log& log) {
  text::BpeTrainer trainer({options.train_bpe, options.pattern, options.threads});
  detail::SplitDocuments documents(options.inputs, options.format, options.valid_fraction);
  Progress progress(log, "counting words", std::min(documents.bytes(), options.train_bytes));
  std::size_t bytes = 0;
  while (bytes < options.train_bytes) {
    const auto batch = take_batch(documents, bytes);
    if (batch.empty()) break;
    std::vector<std::string> storage(batch.size());
    std::vector<std::string_view> texts(batch.size());
    parallel_for(batch.size(), options.threads, [&](std::size_t i) {
      if (!batch[i].valid) texts[i] = text_of(batch[i].part, options.field, storage[i]);
    });
    trainer.add(texts);
    progress.at(bytes);
  }
  trainer.train(folder);
  log.line("trained a BPE of {} tokens on {:.1f} MB in {:.1f} s", options.train_bpe,
           megabytes(bytes), progress.seconds());
}

/// Shards and counts of one split.
struct Split {
  SplitSummary summary;
  data::ShardWriter writer;

  void append(const std::vector<std::int32_t>& tokens, std::size_t bytes, bool document_ends) {
    writer.append(tokens);
    summary.bytes += bytes;
    summary.documents += document_ends ? 1 : 0;
  }
  void finish() {
    writer.finish();
    summary.tokens = writer.tokens();
    summary.shards = writer.shards();
  }
};

/// Tokens of a batch's parts, in order.
struct EncodedBatch {
  std::vector<SplitPart> parts;
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::size_t> bytes;
};

EncodedBatch encode(std::vector<SplitPart> parts, const text::Tokenizer& tokenizer,
                    const PrepareOptions& options) {
  EncodedBatch batch{std::move(parts), {}, {}};
  batch.tokens.resize(batch.parts.size());
  batch.bytes.resize(batch.parts.size());
  parallel_for(batch.parts.size(), options.threads, [&](std::size_t i) {
    const DocumentPart& part = batch.parts[i].part;
    std::string storage;
    const std::string_view text = text_of(part, options.field, storage);
    batch.bytes[i] = text.size();
    if (text.empty()) return;  // empty documents write nothing
    if (batch.parts[i].first) batch.tokens[i] = tokenizer.affixes().before;
    tokenizer.encode(text, batch.tokens[i]);
    if (part.last) batch.tokens[i].push_back(tokenizer.end_of_text());
  });
  return batch;
}

void encode_all(const PrepareOptions& options, const text::Tokenizer& tokenizer, Split& train,
                Split& valid, Log& log) {
  detail::SplitDocuments documents(options.inputs, options.format, options.valid_fraction);
  Progress progress(log, "encoding", documents.bytes());
  const auto write = [&](const EncodedBatch& batch) {
    for (std::size_t i = 0; i < batch.parts.size(); ++i) {
      Split& split = batch.parts[i].valid ? valid : train;
      if (!batch.tokens[i].empty())
        split.append(batch.tokens[i], batch.bytes[i], batch.parts[i].part.last);
    }
  };
  std::future<void> writing;  // of the previous batch, while this one is encoded
  std::size_t bytes = 0;
  bool ended = true;  // whether the previous part ended its document
  while (true) {
    auto parts = take_batch(documents, bytes);
    if (parts.empty()) break;
    for (detail::SplitPart& part : parts) part.first = std::exchange(ended, part.part.last);
    auto batch = std::make_shared<EncodedBatch>(encode(std::move(parts), tokenizer, options));
    if (writing.valid()) writing.get();
    writing = std::async(std::launch::async, [&write, batch] { write(*batch); });
    progress.at(bytes);
  }
  if (writing.valid()) writing.get();
}

nlohmann::ordered_json meta_of(const PrepareOptions& options, const text::Tokenizer& tokenizer,
                               const PrepareSummary& summary) {
  const auto split = [](const SplitSummary& s) {
    return nlohmann::ordered_json{
        {"documents", s.documents}, {"bytes", s.bytes}, {"tokens", s.tokens}, {"shards", s.shards}};
  };
  return {{"tokenizer", options.tokenizer.empty() ? options.output.string() : options.tokenizer},
          {"vocabulary", tokenizer.vocabulary()},
          {"end_of_text", tokenizer.end_of_text()},
          {"tokenizer_hash", data::fingerprint(tokenizer)},
          {"valid_fraction", options.valid_fraction},
          {"train", split(summary.train)},
          {"valid", split(summary.valid)}};
}

void check(const PrepareOptions& options) {
  if (options.output.empty()) user_error("no output folder is named; give --output data/NAME");
  if (options.tokenizer.empty() == (options.train_bpe == 0))
    user_error("name the tokenizer with --tokenizer, or train one with --train-bpe, not both");
  TERN_REQUIRE(options.threads > 0);
}

void require_tokens(const PrepareOptions& options, const PrepareSummary& summary) {
  const std::size_t documents = summary.train.documents + summary.valid.documents;
  if (summary.train.tokens == 0)
    user_error("no text is left for training ({} documents in all)", documents);
  if (options.valid_fraction > 0 && summary.valid.tokens == 0)
    user_error(
        "there are {} documents, and none with text for validation: give more, or "
        "--valid-fraction 0 for none",
        documents);
}

void say(const PrepareOptions& options, const PrepareSummary& made, Log& log) {
  for (const auto& [name, split] : {std::pair{"train", made.train}, std::pair{"valid", made.valid}})
    log.line("{}: {} documents, {:.2f} MB, {} tokens, {} shard(s)", name, split.documents,
             megabytes(split.bytes), split.tokens, split.shards);
  const auto all = static_cast<double>(made.train.tokens + made.valid.tokens);
  const double share = static_cast<double>(made.valid.tokens) / all;
  if (options.valid_fraction > 0 &&
      (share > 2 * options.valid_fraction || share < options.valid_fraction / 2))
    log.warning(
        "{:.1f}% of the tokens are for validation, not the {:.1f}% asked for: whole documents are "
        "taken, and there are few",
        100 * share, 100 * options.valid_fraction);
  log.line("{} is ready: vocabulary {}, {:.1f} s, {:.1f} MB/s", options.output.string(),
           made.vocabulary, made.seconds,
           megabytes(made.train.bytes + made.valid.bytes) / made.seconds);
}

}  // namespace

PrepareSummary prepare_text(const PrepareOptions& options, Log& log) {
  check(options);
  const Timer timer;
  std::vector<fs::path> inputs = options.inputs;
  if (!options.tokenizer.empty()) inputs.emplace_back(options.tokenizer);
  detail::OutputFolder folder(options.output, options.force, inputs);
  if (options.train_bpe > 0) train_bpe(options, folder.path(), log);
  const auto tokenizer =
      text::open_tokenizer(options.train_bpe > 0 ? folder.path().string() : options.tokenizer,
                           {options.output.parent_path(), "data"});
  if (tokenizer->end_of_text() < 0)
    user_error("tokenizer '{}' has no end-of-text token to put between documents",
               options.tokenizer);

  PrepareSummary summary;
  summary.vocabulary = tokenizer->vocabulary();
  Split train{{}, {folder.path(), "train", summary.vocabulary, options.shard_tokens}};
  Split valid{{}, {folder.path(), "valid", summary.vocabulary, options.shard_tokens}};
  encode_all(options, *tokenizer, train, valid, log);
  train.finish();
  valid.finish();
  summary.train = train.summary;
  summary.valid = valid.summary;
  require_tokens(options, summary);
  folder.publish(meta_of(options, *tokenizer, summary));
  summary.seconds = timer.seconds();
  say(options, summary, log);
  return summary;
}

bool is_made(const std::filesystem::path& output, Log& log) {
  if (!std::filesystem::exists(output / "meta.json")) return false;
  log.line("{} is ready, made earlier (--force rebuilds it)", output.string());
  return true;
}

}  // namespace tern::prepare
