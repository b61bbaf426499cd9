/// Block sampling without a cache: for every pass the whole sequence is laid out as in training,
/// with training's own code, and run through an ordinary forward pass.
#pragma once
#include "generate/block_sampler.hpp"
#include "model/harness.hpp"
#include "objective/detail/block_rows.hpp"

namespace tern::test {

using Tokens = std::vector<std::int32_t>;

class BlockReference {
 public:
  /// length: positions of the longest sequence, which holds every level twice.
  BlockReference(const deck::Model& m, std::uint64_t seed, std::size_t length)
      : model_(m, options(length)) {
    model_.parameters->initialize(model_.context, model_.tree, seed);
  }

  /// The levels of one prompt. `number` is its number in the list.
  std::vector<Tokens> sample(std::size_t number, const Tokens& prompt,
                             const std::vector<generate::LevelRule>& rules,
                             const std::vector<Tokens>& given,
                             const generate::BlockSampling& options) {
    std::size_t length = 0, done = 0;
    for (const auto& rule : rules) length += rule.tokens;
    std::vector<Tokens> levels;
    for (std::size_t l = 0; l < rules.size(); ++l) {
      const auto& rule = rules[l];
      levels.emplace_back();
      std::size_t ends = 0;
      while (levels[l].size() < rule.tokens && (rule.ends == 0 || ends < rule.ends)) {
        const std::size_t at = levels[l].size();
        Tokens block(std::min(rule.block > 0 ? rule.block : rule.tokens, rule.tokens - at),
                     options.mask);
        for (std::size_t p = 0; !given.empty() && p < block.size() && at + p < given[l].size(); ++p)
          block[p] = given[l][at + p];
        const auto id = static_cast<std::uint32_t>(number * length + done);
        // Given tokens up to the end: the rest need not be drawn.
        if (!closed(block, rule, ends, options)) denoise(prompt, levels, block, rules, id, options);
        for (std::int32_t& token : block)
          if (rule.ends > 0 && ends >= rule.ends)
            token = options.end;
          else
            ends += token == options.end;
        levels[l].insert(levels[l].end(), block.begin(), block.end());
        done += block.size();
      }
    }
    return levels;
  }

 private:
  static model::TransformerOptions options(std::size_t length) {
    model::TransformerOptions o{1, length};
    o.training = false;
    return o;
  }

  /// Whether the level's last end token comes before any mask token.
  static bool closed(const Tokens& block, const generate::LevelRule& rule, std::size_t ends,
                     const generate::BlockSampling& options) {
    for (const std::int32_t token : block) {
      if (token == options.mask) return false;
      if (rule.ends > 0 && (ends += token == options.end) == rule.ends) return true;
    }
    return true;
  }

  void denoise(const Tokens& prompt, const std::vector<Tokens>& levels, Tokens& block,
               const std::vector<generate::LevelRule>& rules, std::uint32_t id,
               const generate::BlockSampling& options) {
    const std::size_t V = static_cast<std::size_t>(model_.description.vocabulary);
    for (const auto& places : generate::detail::unmasking(options, block, id)) {
      const std::size_t row = forward(prompt, levels, block, rules, options.mask);
      for (const std::size_t p : places) {
        const Matrix<float> logits = as_matrix(model_.logit_rows.data(), 1, V);
        model_.transformer->logits(model_.context, row + p, logits);
        Kokkos::View<std::int32_t*, DeviceMemory> request("request", 1), token("token", 1);
        Kokkos::deep_copy(request, static_cast<std::int32_t>(id + p));
        ops::sample<float>(model_.context, options.sampling, logits, options.vocabulary, request, 0,
                           token);
        model_.context.fence("reference");
        block[p] = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), token)(0);
      }
    }
  }

  /// One pass over [prefix | levels clean | levels noisy], of which the last block is `block`;
  /// returns its first noisy row.
  std::size_t forward(const Tokens& prompt, const std::vector<Tokens>& levels, const Tokens& block,
                      const std::vector<generate::LevelRule>& rules, std::int32_t mask) {
    data::Batch batch;
    auto& [given, pieces] = batch.make<data::SampleRows>();
    data::SamplePiece piece;
    given = prompt;
    piece.prefix = static_cast<std::uint32_t>(prompt.size());
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const std::size_t place = rules.size() == 1 ? data::execution_level : l;
      const bool last = l + 1 == levels.size();
      given.insert(given.end(), levels[l].begin(), levels[l].end());
      piece.length[place] =
          static_cast<std::uint32_t>(levels[l].size() + (last ? block.size() : 0));
      piece.block[place] =
          static_cast<std::uint32_t>(rules[l].block > 0 ? rules[l].block : rules[l].tokens);
    }
    given.insert(given.end(), block.begin(), block.end());
    pieces = {piece};
    batch.samples = {0};
    batch.step.blocks = {1000, 1000};
    objective::detail::BlockRows rows(1, piece.positions(), mask);
    rows.fill(batch, {});
    Tokens tokens = rows.tokens();  // includes training's noise, replaced below
    std::copy(given.begin() + piece.prefix, given.end(),
              tokens.end() - (piece.tokens() - piece.prefix));
    run(rows, tokens);
    return tokens.size() - block.size();
  }

  template <class V>
  static auto on_device(const std::vector<V>& from) {
    Kokkos::View<V*, DeviceMemory> to("values", from.size());
    Kokkos::deep_copy(to, HostVector<const V>(from.data(), from.size()));
    return to;
  }

  void run(const objective::detail::BlockRows& rows, const Tokens& host) {
    const auto tokens = on_device(host), positions = on_device(rows.positions()),
               levels = on_device(rows.levels());
    const auto spans = on_device(rows.table().spans());
    const auto hulls = on_device(rows.table().hulls());
    model::Rows of_pass{tokens, {}, positions, {}, {}};
    if (model_.description.levels > 0) of_pass.levels = levels;
    model::MicroBatch<float> given{of_pass, rows.table().pattern(spans.data(), hulls.data())};
    given.sequences = {1, host.size()};
    model_.transformer->forward(model_.context, given);
    model_.context.fence("reference");
  }

  Harness<float> model_;
};

}  // namespace tern::test
