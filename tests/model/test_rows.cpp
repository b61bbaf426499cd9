// With batch-invariant products, a row of a pass has the same bits whatever the other rows of the
// pass, through all of a block and the head.
#include "model/decoder.hpp"
#include "model/harness.hpp"

namespace tern {
namespace {

/// Blocks with functions of the rows' tokens in place of attention, and the head, over `tokens`.
class Rows {
 public:
  explicit Rows(const deck::Model& m) : tree_(model::declare(m)), size_(m), arena_(planned(m)) {
    request(m, arena_);
    context_.batch_invariant = true;
    parameters_->initialize(context_, tree_, 3);
    decoder_->prepare(context_);
  }

  /// (rows, V): the bits of the logits.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens) {
    const std::size_t N = tokens.size();
    test::upload(tokens, Vector<std::int32_t>(tokens_.data(), N));
    const auto copy_queries = [&](std::size_t, const auto& parameters, const auto& of,
                                  const model::MapInput<float>&) {
      decoder_->attention().place_heads(context_, parameters, of, {N, 1}, {});
      context_.fence("test");
      const std::size_t width = size_.H * size_.E;
      for (std::size_t n = 0; n < N; ++n)
        Kokkos::deep_copy(Vector<float>(of.result.data() + n * width, width),
                          Vector<float>(of.qkv.data() + n * size_.qkv, width));
    };
    const Matrix<const float> finished = decoder_->forward(
        context_, {N, 1}, {{Vector<const std::int32_t>(tokens_.data(), N), 1}}, copy_queries);
    const Matrix<float> result(logits_.data(), N, size_.V);
    decoder_->logits_of(context_, finished, result);
    context_.fence("test");
    const std::vector<double> all = test::download(result);
    return {all.begin(), all.end()};
  }

  static constexpr std::size_t most = 70;

 private:
  Rows(const deck::Model& m, Arena& measure) : tree_(model::declare(m)), size_(m) {
    request(m, measure);
  }
  static std::size_t planned(const deck::Model& m) {
    Arena measure;
    Rows(m, measure);
    return measure.bytes();
  }
  void request(const deck::Model& m, Arena& arena) {
    context_ = ops::make_context(arena, false, "portable");
    parameters_.emplace(tree_, model::Purpose::inference, arena);
    decoder_.emplace(m, tree_, *parameters_, model::DecoderOptions{most, 1, most}, arena);
    tokens_ = arena.vector<std::int32_t>("tokens", Term::data, most);
    logits_ = arena.matrix<float>("logits", Term::workspace, most, size_.V);
  }

  model::ParameterTree tree_;
  model::Dimensions size_;
  Arena arena_;
  ops::Context context_;
  std::optional<model::Parameters<float>> parameters_;
  std::optional<model::Decoder<float>> decoder_;
  Vector<std::int32_t> tokens_;
  Matrix<float> logits_;
};

deck::Model connected() {
  deck::Model m = test::qwen3_like();
  m.layers = 5, m.skip_connections = m.input_shortcut = true, m.value_embeddings = 2;
  return m;
}

class RowInvariance : public testing::TestWithParam<int> {};

TEST_P(RowInvariance, OfBlocksAndHead) {
  deck::Model m = GetParam() == 0   ? test::tiny_model()
                  : GetParam() == 1 ? test::gpt2_like()
                  : GetParam() == 2 ? test::qwen3_like()
                  : GetParam() == 3 ? test::moe_like()
                                    : connected();
  m.ffn_hidden = m.expert_hidden = 53;  // rows that are not aligned to vectors
  m.init_scaled_residual = false;
  Rows rows(m);
  const std::vector<std::int32_t> tokens = test::random_tokens(Rows::most, m.vocabulary, 4);
  const std::vector<float> whole = rows.logits(tokens);
  const auto V = static_cast<std::ptrdiff_t>(m.vocabulary);
  for (const std::ptrdiff_t first : {0, 1, 13, 64})
    for (const std::ptrdiff_t count : {1, 2, 5, 6}) {
      const std::vector<float> part =
          rows.logits({tokens.begin() + first, tokens.begin() + first + count});
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first * V))
          << "rows " << first << " + " << count;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, RowInvariance, testing::Values(0, 1, 2, 3, 4));

}  // namespace
}  // namespace tern
