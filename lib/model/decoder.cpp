#include "model/decoder.hpp"

#include "base/error.hpp"

namespace tern::model {
namespace {

TransformerOptions evaluation(const DecoderOptions& asked) {
  TransformerOptions options{asked.rows, 1};
  options.training = false;
  options.positions = asked.positions;
  options.head_rows = asked.head_rows;
  options.fp8_weights = asked.fp8_weights;
  options.fp8_inputs = asked.fp8_inputs;
  options.overlapped = asked.overlapped;
  return options;
}

}  // namespace

template <class T>
Decoder<T>::Decoder(const deck::Model& model, const ParameterTree& tree,
                    const Parameters<T>& parameters, const DecoderOptions& options, Arena& arena)
    : stack_(model, tree, parameters, evaluation(options), arena) {}

template <class T>
Matrix<const T> Decoder<T>::forward(const ops::Context& context, const Sequences& sequences,
                                    const std::vector<Run>& runs, const Attend& attend,
                                    std::size_t steps) const {
  TERN_REQUIRE(sequences.rows() <= stack_.sequences().rows(), "{} x {} rows, made for {}",
               sequences.batch, sequences.tokens, stack_.sequences().rows());
  const Matrix<T> entry = stack_.saved(0, stack_.visits().front(), sequences).input;
  if (stack_.share().first()) {
    stack_.shared.links.flush_send(context);  // an unsent block output may occupy `entry`
    std::size_t row = 0;
    for (const Run& run : runs) {
      const std::size_t rows = run.tokens.extent(0);
      stack_.embedding.forward(context, stack_.shared.links, run.tokens, run.period, run.first,
                               run.levels,
                               as_matrix(entry.data() + row * stack_.size.D, rows, stack_.size.D));
      row += rows;
    }
    TERN_REQUIRE(row == sequences.rows(), "runs of {} rows for {}", row, sequences.rows());
  }
  stack_.recursion.begin(context, entry);
  Matrix<const T> result;
  for (std::size_t step = 0; step < steps; ++step)
    result = stack_.advance(context, 0, step, sequences, [&](const auto& visit, Stream<T> stream) {
      const auto attended = [&](const AttentionParameters& p, const AttentionRows& rows,
                                const MapInput<T>& input, Range) {
        add_value_embeddings(context, runs, visit.layer, rows.qkv);
        attend(step * places() + visit.kept, p, rows, input);
      };
      return stack_.forward(context, 0, visit, sequences, attended, {}, std::move(stream));
    });
  return result;
}

template <class T>
void Decoder<T>::add_value_embeddings(const ops::Context& context, const std::vector<Run>& runs,
                                      std::size_t layer, Matrix<T> qkv) const {
  std::size_t row = 0;
  const std::size_t width = qkv.extent(1);
  for (const Run& run : runs) {
    const std::size_t rows = run.tokens.extent(0);
    stack_.values.forward(context, layer, run.tokens,
                          as_matrix(qkv.data() + row * width, rows, width));
    row += rows;
  }
}

template class Decoder<float>;
template class Decoder<double>;
template class Decoder<bf16>;
template class Decoder<fp16>;

}  // namespace tern::model
