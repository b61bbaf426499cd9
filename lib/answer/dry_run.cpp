#include "answer/dry_run.hpp"

#include <algorithm>

#include "answer/batch_inference.hpp"
#include "base/error.hpp"
#include "job/dry_run.hpp"
#include "plan/devices.hpp"
#include "plan/layouts.hpp"
#include "plan/serving.hpp"
#include "text/deck_tokenizer.hpp"
#include "weights/weights.hpp"

namespace tern::answer {
namespace {

constexpr std::size_t sample = 256;  // requests that are tokenized
constexpr std::size_t assumed_requests = 1000;

/// `sample` texts, evenly spaced over the file.
std::vector<std::string> some(const std::vector<ChatRequest>& requests) {
  const std::size_t count = std::min(sample, requests.size());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i)
    texts.push_back(requests[i * requests.size() / count].text);
  return texts;
}

/// Mean prompt length of some texts, and length of their common beginning.
void count_tokens(plan::Requests& r, const std::vector<std::string>& texts, const deck::Deck& deck,
                  const text::Tokenizer& tokenizer) {
  const PromptRules rules = prompt_rules(deck);
  PromptTemplate prompt;
  if (!deck.generation.prompt_template.empty())
    prompt = PromptTemplate(deck.generation.prompt_template);
  std::vector<std::int32_t> first;
  std::size_t common = 0, all = 0;
  for (const std::string& text : texts) {
    const auto tokens = prompt_tokens(prompt.fill(text), rules, tokenizer);
    if (all == 0) first = tokens, common = first.size();
    const auto end = first.begin() + static_cast<std::ptrdiff_t>(std::min(common, tokens.size()));
    common = static_cast<std::size_t>(std::mismatch(first.begin(), end, tokens.begin()).first -
                                      first.begin());
    all += tokens.size();
  }
  r.common_tokens = static_cast<double>(common);
  r.prompt_tokens = static_cast<double>(all) / static_cast<double>(texts.size());
}

}  // namespace

RequestForecast forecast_requests(const deck::Deck& deck, bool without_data) {
  const deck::Generation& g = deck.generation;
  RequestForecast seen;
  plan::Requests& r = seen.requests;
  r.new_tokens = static_cast<double>(g.max_tokens);
  if (without_data) {
    r.count = assumed_requests;
    r.prompt_tokens = static_cast<double>(g.max_model_len - g.max_tokens);
    seen.assumed.push_back(fmt::format(
        "{} requests, assuming the longest prompts that max_model_len allows", assumed_requests));
    return seen;
  }
  const auto requests = read_requests(g.input);
  r.count = static_cast<double>(requests.size());
  count_tokens(r, some(requests), deck, *text::open_tokenizer(deck));
  return seen;
}

std::string bulk_plan(const deck::Deck& deck, const generate::EngineOptions& engine,
                      const comm::Mesh& mesh, const job::Options& options, Log& log) {
  plan::PlannedDevice device(options.device, {options.ranks_per_node, options.network});
  device.time_host(deck);
  plan::Throughput throughput;
  throughput.own = mesh.extents();
  throughput.own_options = engine;
  throughput.rates = plan::device_rates(deck, device);
  throughput.network_given = device.nodes().gigabits > 0;
  throughput.measured =
      detail::measured_rate(detail::AnswerFiles(deck), device.name(), throughput.own.ranks());
  std::string text;
  try {
    const plan::ServingPlan plan = plan::plan_serving(deck, engine, mesh, device);
    throughput.own_options = plan.options;
    text = plan::table(plan);
  } catch (const UserError& shortage) {
    text = std::string("not here: ") + shortage.what() + "\n";
  }
  const std::size_t usable = plan::usable_for_serving(deck, device);
  if (mesh.world().rank() != 0) return "";
  const RequestForecast seen = job::opened(options, [&] {
    if (!options.without_data)
      weights::check_weights(deck.model, weights::weights_source(deck), log);
    return forecast_requests(deck, options.without_data);
  });
  throughput.requests = seen.requests;
  throughput.assumed = seen.assumed;
  if (throughput.own_options.pages > 0) text += plan::table(throughput, deck);
  return text + "\n" + plan::layouts(deck, engine, usable, throughput);
}

}  // namespace tern::answer
