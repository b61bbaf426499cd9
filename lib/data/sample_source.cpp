#include "data/sample_source.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "data/detail/packing.hpp"

namespace tern::data {
namespace {

constexpr std::size_t segments = 3, chunk_samples = 1024;
enum Segment : std::size_t { question_segment, plan_segment, execution_segment };

std::array<std::size_t, segments> maxima(const SampleRules& rules) {
  return {rules.question_tokens, rules.plan_tokens, rules.execution_tokens};
}

bool has_prefix(const SampleRules& rules) { return rules.hierarchical || rules.conditioned; }

/// Maximum tokens per level.
std::array<std::size_t, levels> level_maxima(const SampleRules& rules) {
  if (rules.hierarchical) return {rules.plan_tokens, rules.execution_tokens};
  return {0, (rules.conditioned ? 0 : rules.question_tokens) + rules.plan_tokens +
                 rules.execution_tokens};
}

/// Tokens per block, by level.
std::array<std::size_t, levels> level_blocks(const SampleRules& rules) {
  const auto most = level_maxima(rules);
  std::array<std::size_t, levels> blocks = {rules.plan_block, rules.execution_block};
  for (std::size_t l = 0; l < levels; ++l)
    if (blocks[l] == 0 || blocks[l] > most[l]) blocks[l] = most[l];
  return blocks;
}

void check(const SampleRules& rules, const text::Tokenizer& tokenizer) {
  TERN_REQUIRE(rules.threads > 0);
  if (tokenizer.end_of_text() < 0)
    user_error(
        "the tokenizer has no end-of-text token, which ends each segment of a sample; set another "
        "&data tokenizer");
  if (rules.question_tokens == 0 || rules.execution_tokens == 0 ||
      (rules.hierarchical && rules.plan_tokens == 0))
    user_error(
        "segments of {} + {} + {} tokens: question, plan and execution need at least one each (the "
        "plan may have 0 without a hierarchy)",
        rules.question_tokens, rules.plan_tokens, rules.execution_tokens);
}

/// Appends a segment's tokens and end token, truncated to `most`: a question keeps its last tokens,
/// other segments their first. Returns the number before truncation.
std::size_t add_segment(std::size_t segment, const std::string& text,
                        const text::Tokenizer& tokenizer, std::size_t most,
                        std::vector<std::int32_t>& tokens) {
  if (most == 0) return 0;
  const auto first = static_cast<std::ptrdiff_t>(tokens.size());
  tokenizer.encode(text, tokens);
  tokens.push_back(tokenizer.end_of_text());
  const std::size_t count = tokens.size() - static_cast<std::size_t>(first);
  if (count <= most) return count;
  const auto excess = static_cast<std::ptrdiff_t>(count - most);
  const auto from =
      segment == question_segment ? tokens.begin() + first : tokens.end() - 1 - excess;
  tokens.erase(from, from + excess);
  return count;
}

/// One sample's tokens: prefix and levels, contiguous, without padding.
struct Entry {
  std::size_t first = 0;
  std::array<std::uint32_t, segments> segment = {};  // tokens; all 0: left out

  std::uint32_t prefix = 0;
  std::array<std::uint32_t, levels> real = {};
};

struct Chunk {
  std::vector<std::int32_t> tokens;
  std::vector<Entry> entries;
  Truncation truncation;
};

/// Counts the segments of a sample that are too long; `length`: before truncation. True if any is.
bool count_long(const std::array<std::size_t, segments>& length, const SampleRules& rules,
                Truncation& t) {
  const auto most = maxima(rules);
  ++t.samples;
  t.questions += length[question_segment] > most[question_segment];
  t.plans += length[plan_segment] > most[plan_segment];
  t.executions += length[execution_segment] > most[execution_segment];
  t.longest_question = std::max(t.longest_question, length[question_segment]);
  t.longest_plan = std::max(t.longest_plan, length[plan_segment]);
  t.longest_execution = std::max(t.longest_execution, length[execution_segment]);
  bool any = false;
  for (std::size_t s = 0; s < segments; ++s) any |= length[s] > most[s];
  return any;
}

void add_sample(const Sample& sample, const text::Tokenizer& tokenizer, const SampleRules& rules,
                Chunk& chunk) {
  const std::array<const std::string*, segments> texts = {&sample.question, &sample.plan,
                                                          &sample.execution};
  const auto most = maxima(rules);
  Entry entry;
  entry.first = chunk.tokens.size();
  std::array<std::size_t, segments> length = {};
  for (std::size_t s = 0; s < segments; ++s) {
    length[s] = add_segment(s, *texts[s], tokenizer, most[s], chunk.tokens);
    entry.segment[s] = static_cast<std::uint32_t>(std::min(length[s], most[s]));
  }
  if (count_long(length, rules, chunk.truncation) && !rules.cut) {
    ++chunk.truncation.left_out;
    chunk.tokens.resize(entry.first);
    entry.segment = {};
  }
  const auto [question, plan, execution] = entry.segment;
  if (has_prefix(rules)) entry.prefix = question;
  if (rules.hierarchical)
    entry.real = {plan, execution};
  else
    entry.real[execution_level] = question - entry.prefix + plan + execution;
  chunk.entries.push_back(entry);
}

void add(const Truncation& from, Truncation& to) {
  to.samples += from.samples;
  to.left_out += from.left_out;
  to.questions += from.questions;
  to.plans += from.plans;
  to.executions += from.executions;
  to.longest_question = std::max(to.longest_question, from.longest_question);
  to.longest_plan = std::max(to.longest_plan, from.longest_plan);
  to.longest_execution = std::max(to.longest_execution, from.longest_execution);
}

}  // namespace

std::size_t SampleRules::longest_positions() const {
  const auto most = level_maxima(*this);
  return (has_prefix(*this) ? question_tokens : 0) + 2 * (most[0] + most[1]);
}

struct SampleSource::Impl {
  SampleRules rules;
  std::array<std::size_t, levels> most, blocks;
  std::int32_t end;
  std::size_t positions = 0, used = 0;
  std::vector<std::int32_t> tokens;
  std::vector<Entry> entries;  // of all samples
  std::vector<std::vector<std::size_t>> rows;
  Truncation truncation;

  Impl(const std::vector<Sample>& samples, const text::Tokenizer& tokenizer, const SampleRules& r)
      : rules(r),
        most(level_maxima(r)),
        blocks(level_blocks(r)),
        end(tokenizer.end_of_text()),
        positions(r.positions > 0 ? r.positions : r.longest_positions()) {
    tokenize(samples, tokenizer);
    if (truncation.left_out == truncation.samples)
      user_error(
          "none of the {} samples fits in {} + {} + {} tokens of question, plan and execution (the "
          "longest have {}, {}, {}); raise these numbers, or set &data too_long = 'cut'",
          truncation.samples, rules.question_tokens, rules.plan_tokens, rules.execution_tokens,
          truncation.longest_question, truncation.longest_plan, truncation.longest_execution);
    make_rows();
  }

  void tokenize(const std::vector<Sample>& samples, const text::Tokenizer& tokenizer) {
    std::vector<Chunk> chunks((samples.size() + chunk_samples - 1) / chunk_samples);
    parallel_for(chunks.size(), rules.threads, [&](std::size_t c) {
      const std::size_t last = std::min(samples.size(), (c + 1) * chunk_samples);
      for (std::size_t i = c * chunk_samples; i < last; ++i)
        add_sample(samples[i], tokenizer, rules, chunks[c]);
    });
    std::size_t count = 0;
    for (const Chunk& chunk : chunks) count += chunk.tokens.size();
    tokens.reserve(count);
    entries.reserve(samples.size());
    for (Chunk& chunk : chunks) {
      for (Entry& entry : chunk.entries) entry.first += tokens.size();
      tokens.insert(tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
      entries.insert(entries.end(), chunk.entries.begin(), chunk.entries.end());
      add(chunk.truncation, truncation);
      chunk = {};
    }
  }

  bool left_out(const Entry& entry) const { return entry.segment[execution_segment] == 0; }

  /// The sample as a piece, without row and first.
  SamplePiece piece(const Entry& entry) const {
    SamplePiece p;
    p.prefix = entry.prefix;
    for (std::size_t l = 0; l < levels; ++l) {
      if (most[l] == 0) continue;
      const std::size_t whole = (entry.real[l] + blocks[l] - 1) / blocks[l] * blocks[l];
      p.length[l] = static_cast<std::uint32_t>(std::min(whole, most[l]));
      p.block[l] = static_cast<std::uint32_t>(blocks[l]);
    }
    return p;
  }

  void make_rows() {
    std::vector<std::uint32_t> sizes(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (!left_out(entries[i])) sizes[i] = piece(entries[i]).positions();
    const std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
    if (longest > positions)
      user_error(
          "a row of {} positions is too short for sample {}, which needs {}; set rows of at least "
          "{} positions, or shorter segments",
          positions, std::max_element(sizes.begin(), sizes.end()) - sizes.begin(), longest,
          longest);
    used = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    if (rules.packing) {
      rows = detail::pack(sizes, positions, rules.seed);
      return;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] > 0) rows.push_back({i});
  }

  void append(const Entry& entry, std::size_t at, SampleRows& rows_of_batch) const {
    auto& [all, pieces] = rows_of_batch;
    SamplePiece p = piece(entry);
    p.row = static_cast<std::uint32_t>(at);
    p.first = all.size();
    const std::int32_t* from = tokens.data() + entry.first;
    all.insert(all.end(), from, from + entry.prefix);
    from += entry.prefix;
    for (std::size_t l = 0; l < levels; ++l) {
      all.insert(all.end(), from, from + entry.real[l]);
      all.insert(all.end(), p.length[l] - entry.real[l], end);
      from += entry.real[l];
    }
    pieces.push_back(p);
  }

  void count(const Entry& entry, Counts& counts) const {
    const SamplePiece p = piece(entry);
    for (std::size_t l = 0; l < levels; ++l) {
      counts.tokens[l] += entry.real[l];
      if (p.block[l] > 0) counts.blocks[l] += (p.length[l] + p.block[l] - 1) / p.block[l];
      counts.data_tokens += entry.real[l];
    }
    counts.data_tokens += entry.prefix;
    ++counts.samples;
  }
};

SampleSource::SampleSource(const std::vector<Sample>& samples, const text::Tokenizer& tokenizer,
                           const SampleRules& rules) {
  check(rules, tokenizer);
  if (samples.empty()) user_error("there are no samples to train on");
  impl_ = std::make_unique<Impl>(samples, tokenizer, rules);
}

SampleSource::~SampleSource() = default;

std::size_t SampleSource::rows() const { return impl_->rows.size(); }
std::size_t SampleSource::positions() const { return impl_->positions; }
const Truncation& SampleSource::truncation() const { return impl_->truncation; }

double SampleSource::fill() const {
  return static_cast<double>(impl_->used) / static_cast<double>(rows() * positions());
}

const std::vector<std::size_t>& SampleSource::samples_of(std::size_t row) const {
  TERN_REQUIRE(row < rows());
  return impl_->rows[row];
}

void SampleSource::append(std::size_t row, std::size_t at, Batch& batch) const {
  SampleRows& to = batch.make<SampleRows>();
  for (const std::size_t sample : samples_of(row)) impl_->append(impl_->entries[sample], at, to);
}

Counts SampleSource::counts(std::size_t row) const {
  Counts counts;
  for (const std::size_t sample : samples_of(row)) impl_->count(impl_->entries[sample], counts);
  return counts;
}

std::vector<std::int32_t> question_tokens(const Sample& sample, const text::Tokenizer& tokenizer,
                                          const SampleRules& rules) {
  std::vector<std::int32_t> tokens;
  add_segment(question_segment, sample.question, tokenizer, rules.question_tokens, tokens);
  return tokens;
}

std::vector<std::int32_t> plan_tokens(const Sample& sample, const text::Tokenizer& tokenizer,
                                      const SampleRules& rules) {
  std::vector<std::int32_t> tokens;
  add_segment(plan_segment, sample.plan, tokenizer, rules.plan_tokens, tokens);
  return tokens;
}

std::vector<std::string> segment_texts(const std::vector<std::int32_t>& tokens,
                                       const text::Tokenizer& tokenizer, std::size_t count) {
  std::vector<std::string> texts;
  for (auto from = tokens.begin(); from != tokens.end() && texts.size() < count;) {
    const auto to = std::find(from, tokens.end(), tokenizer.end_of_text());
    texts.push_back(tokenizer.decode(std::vector<std::int32_t>(from, to)));
    from = to == tokens.end() ? to : to + 1;
  }
  return texts;
}

std::string level_text(const std::vector<std::int32_t>& tokens, const text::Tokenizer& tokenizer) {
  const auto texts = segment_texts(tokens, tokenizer, 1);
  return texts.empty() ? std::string() : texts.front();
}

}  // namespace tern::data
