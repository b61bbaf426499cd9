#include "campaign/problems.hpp"

#include <algorithm>
#include <cmath>

#include "answer/interval.hpp"
#include "base/error.hpp"
#include "base/timer.hpp"
#include "deck/choices.hpp"
#include "deck/rules.hpp"
#include "objective/block_data.hpp"
#include "workload/serving.hpp"

namespace tern::campaign {
namespace {

constexpr std::size_t shown_solutions = 8;

using Tokens = std::vector<std::int32_t>;

generate::BlockSampling sampling_of(const deck::Deck& deck, const text::Tokenizer& tokenizer) {
  const deck::Generation& g = deck.generation;
  generate::BlockSampling options;
  options.sampling = workload::sampling_of(deck);
  options.method = deck::sampler_of(g) == deck::Sampler::ddpm
                       ? generate::BlockSampling::Method::ddpm
                       : generate::BlockSampling::Method::first_hitting;
  options.steps = static_cast<std::size_t>(g.denoising_steps);
  options.mask = static_cast<std::int32_t>(deck.model.vocabulary) - 1;
  options.end = tokenizer.end_of_text();
  options.vocabulary = tokenizer.vocabulary();
  return options;
}

/// Texts of all levels of a generated sample, by segment.
std::vector<std::string> segments(const std::vector<Tokens>& levels, const deck::Deck& deck,
                                  const text::Tokenizer& tokenizer) {
  if (deck::hierarchical(deck.objective))
    return {data::level_text(levels.front(), tokenizer),
            data::level_text(levels.back(), tokenizer)};
  return data::segment_texts(levels.back(), tokenizer, deck::conditioned(deck) ? 2 : 3);
}

Solution judge(const data::Sample& sample, const std::vector<Tokens>& levels,
               const deck::Deck& deck, const text::Tokenizer& tokenizer) {
  const std::vector<std::string> texts = segments(levels, deck, tokenizer);
  Solution solution;
  solution.question = sample.question;
  solution.expected = sample.answer;
  solution.execution = texts.empty() ? "" : texts.back();
  if (texts.size() > 1) solution.plan = texts[texts.size() - 2];
  const auto number = data::final_number(solution.execution);
  solution.well_formed = number.has_value();
  solution.correct = number == sample.answer;
  return solution;
}

}  // namespace

namespace {

/// Tokens of a level that were sampled after those given, without end tokens that pad it.
std::int64_t sampled_tokens(const Tokens& level, std::size_t given, std::int32_t end) {
  std::size_t length = level.size();
  while (length > 1 && level[length - 1] == end && level[length - 2] == end) --length;
  return static_cast<std::int64_t>(length - std::min(length, given));
}

struct Written {
  std::vector<std::vector<Tokens>> levels;  // [sample][level]
  std::int64_t sampled = 0;                 // tokens
};

/// Generated tokens of samples [first, last).
template <class T>
Written write_levels(workload::Workload<T>& w, const deck::Deck& deck,
                     const std::vector<data::Sample>& samples, std::size_t first, std::size_t last,
                     const text::Tokenizer& tokenizer) {
  const data::SampleRules rules = objective::sample_rules(deck);
  std::vector<Tokens> prompts;
  std::vector<std::vector<Tokens>> given;
  for (std::size_t i = first; i < last; ++i) {
    const Tokens question = data::question_tokens(samples[i], tokenizer, rules);
    const bool clean = deck::conditioned(deck);
    prompts.push_back(clean ? question : Tokens{});
    if (!clean) given.push_back({question});
    if (deck.generation.given_plan && deck::hierarchical(deck.objective))
      given.push_back({data::plan_tokens(samples[i], tokenizer, rules), {}});
  }
  generate::BlockSampling options = sampling_of(deck, tokenizer);
  options.first = first;
  Written written{
      w.sampler->sample(w.context, prompts, workload::level_rules(deck), given, options)};
  for (std::size_t i = 0; i < written.levels.size(); ++i)
    for (std::size_t level = 0; level < written.levels[i].size(); ++level)
      written.sampled +=
          sampled_tokens(written.levels[i][level], given.empty() ? 0 : given[i][level].size(),
                         tokenizer.end_of_text());
  return written;
}

}  // namespace

template <class T>
std::optional<Accuracy> solve(workload::Workload<T>& w, const deck::Deck& deck,
                              const std::vector<data::Sample>& samples, std::size_t count,
                              const text::Tokenizer& tokenizer, comm::Group& group,
                              const std::function<bool(std::size_t, std::size_t)>& between) {
  TERN_REQUIRE(w.sampler.has_value(), "no sampler");
  const Timer timer;
  count = std::min(count, samples.size());
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto share = [&](int rank) { return count * static_cast<std::size_t>(rank) / ranks; };
  const std::size_t first = share(group.rank()), last = share(group.rank() + 1);
  const std::size_t largest_share = (count + ranks - 1) / ranks, batch = w.sampler->batch();

  Accuracy accuracy;
  std::int64_t sums[4] = {static_cast<std::int64_t>(last - first), 0, 0, 0};
  for (std::size_t done = 0; done < largest_share; done += batch) {  // equally often on every rank
    if (between && between(std::min(done, last - first), last - first)) return std::nullopt;
    const std::size_t from = std::min(first + done, last), to = std::min(from + batch, last);
    const Written written = write_levels(w, deck, samples, from, to, tokenizer);
    sums[3] += written.sampled;
    for (std::size_t i = 0; i < written.levels.size(); ++i) {
      Solution solution = judge(samples[from + i], written.levels[i], deck, tokenizer);
      sums[1] += solution.correct ? 1 : 0;
      sums[2] += solution.well_formed ? 1 : 0;
      if (group.rank() == 0 && done + i < shown_solutions) accuracy.shown.push_back(solution);
      accuracy.solved.push_back(std::move(solution));
    }
  }
  group.all_reduce(sums, 4, comm::Sum::sum);
  accuracy.problems = sums[0];
  accuracy.correct = sums[1];
  accuracy.well_formed = sums[2];
  accuracy.sampling = {sums[3], timer.seconds()};
  return accuracy;
}

std::string summary(const Accuracy& a) {
  const answer::Interval interval = answer::wilson(a.correct, a.problems);
  return fmt::format(
      "exact match {:.1f}% ({} of {}; 95% interval {:.1f} to {:.1f}%), well-formed {:.1f}%",
      100 * a.exact_match(), a.correct, a.problems, 100 * interval.low, 100 * interval.high,
      100 * static_cast<double>(a.well_formed) / static_cast<double>(a.problems));
}

std::string page(const std::vector<Solution>& solutions) {
  std::string text;
  for (const Solution& s : solutions) {
    text += fmt::format("---\nquestion:  {}\n", s.question);
    if (!s.plan.empty()) text += fmt::format("plan:\n{}\n", s.plan);
    text += fmt::format("execution:\n{}\nexpected:  {}  ->  {}\n", s.execution, s.expected,
                        s.correct       ? "correct"
                        : s.well_formed ? "wrong"
                                        : "no answer");
  }
  return text;
}

namespace {

/// The text after the given tokens, without the end tokens that pad its last block.
Continuation behind(const Tokens& given, Tokens written, const deck::Deck& deck,
                    const text::Tokenizer& tokenizer) {
  const auto shared = static_cast<std::ptrdiff_t>(std::min(given.size(), written.size()));
  written.erase(written.begin(), written.begin() + shared);
  const std::size_t length = given.size() + written.size();
  const auto wanted = static_cast<std::size_t>(deck.generation.max_tokens);
  const bool fills = length == static_cast<std::size_t>(deck.model.context) &&
                     written.size() < wanted &&
                     (written.empty() || written.back() != tokenizer.end_of_text());
  while (!written.empty() && written.back() == tokenizer.end_of_text()) written.pop_back();
  return {tokenizer.decode(written), fills};
}

}  // namespace

template <class T>
std::vector<Continuation> write_freely(workload::Workload<T>& w, const deck::Deck& deck,
                                       const text::Tokenizer& tokenizer,
                                       const std::string& prompt) {
  TERN_REQUIRE(w.sampler.has_value(), "no sampler");
  Tokens tokens;
  const bool clean = deck::conditioned(deck), of_samples = deck::holds_samples(deck.data);
  std::vector<generate::LevelRule> levels = workload::level_rules(deck);
  if (of_samples) {
    tokens = data::question_tokens({prompt, "", "", ""}, tokenizer, objective::sample_rules(deck));
  } else {
    tokens = tokenizer.affixes().before;
    tokenizer.encode(prompt, tokens);
    levels.back().tokens = std::min(
        levels.back().tokens, tokens.size() + static_cast<std::size_t>(deck.generation.max_tokens));
  }
  const auto samples = static_cast<std::size_t>(deck.generation.samples);
  const std::vector<Tokens> prompts(samples, clean ? tokens : Tokens{});
  const std::vector<std::vector<Tokens>> given(clean ? 0 : samples, {tokens});
  const auto all =
      w.sampler->sample(w.context, prompts, levels, given, sampling_of(deck, tokenizer));
  std::vector<Continuation> texts;
  for (const auto& written : all) {
    if (!of_samples) {
      texts.push_back(behind(tokens, written.back(), deck, tokenizer));
      continue;
    }
    texts.emplace_back();
    std::vector<std::string> parts = segments(written, deck, tokenizer);
    if (!clean && !parts.empty()) parts.erase(parts.begin());  // the prompt itself
    for (const std::string& segment : parts) texts.back().text += "\n" + segment;
  }
  return texts;
}

template std::optional<Accuracy> solve(workload::Workload<float>&, const deck::Deck&,
                                       const std::vector<data::Sample>&, std::size_t,
                                       const text::Tokenizer&, comm::Group&,
                                       const std::function<bool(std::size_t, std::size_t)>&);
template std::optional<Accuracy> solve(workload::Workload<bf16>&, const deck::Deck&,
                                       const std::vector<data::Sample>&, std::size_t,
                                       const text::Tokenizer&, comm::Group&,
                                       const std::function<bool(std::size_t, std::size_t)>&);
template std::optional<Accuracy> solve(workload::Workload<fp16>&, const deck::Deck&,
                                       const std::vector<data::Sample>&, std::size_t,
                                       const text::Tokenizer&, comm::Group&,
                                       const std::function<bool(std::size_t, std::size_t)>&);
template std::vector<Continuation> write_freely(workload::Workload<float>&, const deck::Deck&,
                                                const text::Tokenizer&, const std::string&);
template std::vector<Continuation> write_freely(workload::Workload<bf16>&, const deck::Deck&,
                                                const text::Tokenizer&, const std::string&);
template std::vector<Continuation> write_freely(workload::Workload<fp16>&, const deck::Deck&,
                                                const text::Tokenizer&, const std::string&);

}  // namespace tern::campaign
