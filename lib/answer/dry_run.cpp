#include "answer/dry_run.hpp"

#include <algorithm>
#include <memory>

#include "answer/bulk.hpp"
#include "base/error.hpp"
#include "plan/devices.hpp"
#include "plan/layouts.hpp"
#include "plan/serving.hpp"
#include "text/deck_tokenizer.hpp"

namespace tern::answer {
namespace {

constexpr std::size_t sample = 256;  // requests that are tokenized
// For a file that does not exist yet.
constexpr std::size_t assumed_requests = 1000, assumed_tokens = 64;

std::unique_ptr<text::Tokenizer> tokenizer_if_there(const deck::Deck& deck) {
  try {
    return text::open_tokenizer(deck);
  } catch (const UserError&) {  // the run reports it with the remedy
    return nullptr;
  }
}

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

RequestForecast forecast_requests(const deck::Deck& deck) {
  const deck::Generation& g = deck.generation;
  RequestForecast seen;
  plan::Requests& r = seen.requests;
  r.new_tokens = static_cast<double>(g.max_tokens);
  std::vector<std::string> texts{"0", "a"};  // show what the prompt adds to a text
  double more = 0;                           // tokens to add to those of these texts
  try {
    const auto requests = read_requests(g.input);
    r.count = static_cast<double>(requests.size());
    texts = some(requests);
  } catch (const UserError& e) {
    r.count = assumed_requests;
    more = assumed_tokens - 1;
    seen.assumed.push_back(
        fmt::format("{} requests, texts of {} tokens: {}", r.count, assumed_tokens, e.what()));
  }
  try {
    const auto tokenizer = tokenizer_if_there(deck);
    if (!tokenizer) user_error("no tokenizer '{}'", deck.data.tokenizer);
    count_tokens(r, texts, deck, *tokenizer);
    r.prompt_tokens += more;
  } catch (const UserError& e) {
    r.prompt_tokens = static_cast<double>(g.max_model_len - g.max_tokens);
    r.common_tokens = 0;
    seen.assumed.push_back(fmt::format("prompts as long as max_model_len allows: {}", e.what()));
  }
  return seen;
}

std::string bulk_plan(const deck::Deck& deck, const generate::EngineOptions& options,
                      const comm::Mesh& mesh, const plan::PlannedDevice& device) {
  plan::Throughput throughput;
  throughput.own = mesh.extents();
  throughput.own_options = options;
  throughput.rates = plan::device_rates(deck, device);
  throughput.network_given = device.nodes().gigabits > 0;
  throughput.measured =
      detail::measured_rate(detail::BulkFiles(deck), device.name(), throughput.own.ranks());
  std::string text;
  try {
    const plan::ServingPlan plan = plan::plan_serving(deck, options, mesh, device);
    throughput.own_options = plan.options;
    text = plan::table(plan);
  } catch (const UserError& shortage) {
    text = std::string("not here: ") + shortage.what() + "\n";
  }
  const std::size_t usable = plan::usable_for_serving(deck, device);
  if (mesh.world().rank() != 0) return "";
  const RequestForecast seen = forecast_requests(deck);
  throughput.requests = seen.requests;
  throughput.assumed = seen.assumed;
  if (throughput.own_options.pages > 0) text += plan::table(throughput, deck);
  return text + "\n" + plan::layouts(deck, options, usable, throughput);
}

}  // namespace tern::answer
