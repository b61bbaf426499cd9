#include "campaign/training/state.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "base/version.hpp"

namespace tern::campaign {

std::uint64_t sample_hash(std::uint64_t sample) {
  std::uint64_t z = sample + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::map<std::string, double> to_numbers(const TrainState& s) {
  return {{"updates", static_cast<double>(s.updates)},
          {"skipped", static_cast<double>(s.skipped)},
          {"skipped_in_row", static_cast<double>(s.skipped_in_row)},
          {"loss_scale", s.loss_scale},
          {"loss_scale_steps", static_cast<double>(s.loss_scale_steps)},
          {"overflowed", static_cast<double>(s.overflowed)},
          {"seconds", s.seconds},
          {"joules", s.joules},
          {"warmup_seconds", s.warmup_seconds},
          {"evaluated_step", static_cast<double>(s.evaluated_step)},
          {"validation_loss", s.validation_loss},
          {"best_loss", s.best_loss},
          {"best_step", static_cast<double>(s.best_step)},
          {"evaluations_without_gain", static_cast<double>(s.evaluations_without_gain)}};
}

checkpoint::Header to_header(const TrainState& s, const std::string& deck_text) {
  checkpoint::Header header;
  header.step = s.step;
  header.tokens = s.tokens;
  header.deck = deck_text;
  header.numbers = to_numbers(s);
  header.texts = {{"samples_hash", fmt::format("{:016x}", s.samples_hash)},
                  {"tern_version", std::string(version())},
                  {"commit", std::string(commit())}};
  return header;
}

TrainState from_header(const checkpoint::Header& header) {
  const auto number = [&](const char* name) {
    const auto found = header.numbers.find(name);
    if (found == header.numbers.end())
      user_error(
          "the checkpoint of step {} has no attribute '{}': it was not written by training, so "
          "training cannot resume from it; start from its weights with &model load",
          header.step, name);
    return found->second;
  };
  const auto count = [&](const char* name) { return static_cast<std::int64_t>(number(name)); };
  TrainState s;
  s.step = header.step;
  s.tokens = header.tokens;
  s.updates = count("updates");
  s.skipped = count("skipped");
  s.skipped_in_row = count("skipped_in_row");
  s.seconds = number("seconds");
  // Checkpoints of earlier versions lack these: the last evaluation is repeated.
  const TrainState start;
  const auto or_start = [&](const char* name, double value) {
    return header.numbers.contains(name) ? header.numbers.at(name) : value;
  };
  s.joules = or_start("joules", start.joules);
  s.loss_scale = or_start("loss_scale", start.loss_scale);
  s.loss_scale_steps = static_cast<std::int64_t>(or_start("loss_scale_steps", 0));
  s.overflowed = static_cast<std::int64_t>(or_start("overflowed", 0));
  s.warmup_seconds = or_start("warmup_seconds", start.warmup_seconds);
  s.evaluated_step = static_cast<std::int64_t>(
      or_start("evaluated_step", static_cast<double>(start.evaluated_step)));
  s.validation_loss = or_start("validation_loss", start.validation_loss);
  s.best_loss = number("best_loss");
  s.best_step = count("best_step");
  s.evaluations_without_gain = count("evaluations_without_gain");
  if (const auto hash = header.texts.find("samples_hash"); hash != header.texts.end())
    s.samples_hash = std::strtoull(hash->second.c_str(), nullptr, 16);
  return s;
}

}  // namespace tern::campaign
