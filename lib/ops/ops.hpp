/// The operations of a transformer, forward and backward.
///
/// Legend: B batch, T tokens, N = B*T rows, D hidden, H heads, K key/value heads, E head size, F
/// ffn, V vocabulary, I/O inputs/outputs of a linear map. All views are row-major. T in {float,
/// bf16, double} is the storage type; sums, statistics and weight gradients are in Accumulate<T>
/// (float; double for double). Weight gradients are always added to what is there; everything else
/// is overwritten unless said otherwise. No operation synchronises with the host. Results repeat
/// bit for bit on the same device and layout: no atomic sums.
///
/// Each function here chooses between portable:: (Kokkos, every backend, the reference) and cuda::
/// (where Context::library is set and T is bf16).
#pragma once
#include "ops/context.hpp"
#include "ops/pattern.hpp"

namespace tern::ops {

enum class Write { overwrite, add };

// ---- linear: y = x w^T + bias
// --------------------------------------------------------------------
/// x (N, I), w (O, I) as in torch.nn.Linear, bias (O) or empty, y (N, O). `add`: y += (residual).
template <class T>
void linear_forward(const Context&, Matrix<const T> x, Matrix<const T> w, Vector<const T> bias,
                    Matrix<T> y, Write = Write::overwrite);
/// dx (N, I) = dy (N, O) w (O, I).
template <class T>
void linear_backward_input(const Context&, Matrix<const T> dy, Matrix<const T> w, Matrix<T> dx,
                           Write = Write::overwrite);
/// dw (O, I) += dy^T x; dbias (O) += column sums of dy, unless empty.
template <class T>
void linear_backward_weight(const Context&, Matrix<const T> dy, Matrix<const T> x,
                            Matrix<Accumulate<T>> dw, Vector<Accumulate<T>> dbias);

// ---- norm
// ----------------------------------------------------------------------------------------
enum class Norm { rmsnorm, layernorm };  // Zhang & Sennrich 2019; Ba et al. 2016
/// y (N, D) = normalised x (N, D) * gain (D) + bias (D, empty for rmsnorm). mean (N, empty for
/// rmsnorm) and rstd (N) are kept for backward, in Accumulate<T>.
template <class T>
void norm_forward(const Context&, Norm, Matrix<const T> x, Vector<const T> gain,
                  Vector<const T> bias, double eps, Matrix<T> y, Vector<Accumulate<T>> mean,
                  Vector<Accumulate<T>> rstd);
/// dx (N, D) is added to (`add`: the residual's gradient is already there) or overwritten; dgain
/// (D) and dbias (D) are added to. partial: workspace of norm_partials(D) numbers.
template <class T>
void norm_backward(const Context&, Norm, Matrix<const T> dy, Matrix<const T> x,
                   Vector<const T> gain, Vector<const Accumulate<T>> mean,
                   Vector<const Accumulate<T>> rstd, Matrix<T> dx, Write,
                   Vector<Accumulate<T>> dgain, Vector<Accumulate<T>> dbias,
                   Vector<Accumulate<T>> partial);
/// Size of the workspace of norm_backward and head_norm_backward for rows of `width`.
std::size_t norm_partials(std::size_t width);

/// RMSNorm of each head's vector (Qwen3's q/k norm), in place. x (B, T, heads, E), gain (E),
/// rstd (B*T*heads). The normalised, gained result is kept in x; backward recovers the rest from
/// it. `saved` (B*T, heads*E) receives a copy of the input x. saved and rstd may be empty where
/// no backward follows.
template <class T>
void head_norm_forward(const Context&, Heads<T> x, Vector<const T> gain, double eps,
                       Matrix<T> saved, Vector<Accumulate<T>> rstd);
/// dx (B, T, heads, E) in place: gradient of the output in, of the input out. dgain (E) is added
/// to.
template <class T>
void head_norm_backward(const Context&, Heads<T> dx, Matrix<const T> saved, Vector<const T> gain,
                        Vector<const Accumulate<T>> rstd, Vector<Accumulate<T>> dgain,
                        Vector<Accumulate<T>> partial);

// ---- rotary position embedding (Su et al. 2021; halves rotated, as in Transformers)
// -----------------
/// table (context, E): cosines of the E/2 angles, then their sines.
template <class T>
void rotary_table(const Context&, double base, Matrix<T> table);
enum class Direction { forward, backward };  // backward rotates by the opposite angle
/// Where the rows of a pass stand: row t of every sequence at `first + t`, or as `rows` (B*T) says.
/// A position in `rows` must be one of the table's.
struct Positions {
  int first = 0;
  Vector<const std::int32_t> rows = {};
};
/// In place. x (B, T, heads, E).
template <class T>
void rotary(const Context&, Heads<T> x, Matrix<const Accumulate<T>> table, const Positions&,
            Direction);

// ---- attention (online softmax; Dao et al. 2022)
// ----------------------------------------------------
/// q, out (B, Tq, H, E); k, v (B, Tk, K, E), H a multiple of K (grouped queries); lse (B*H, Tq):
/// log of the softmax's denominator, for backward. out = softmax(scale q k^T) v over the pairs that
/// `pattern` allows; a query that may see nothing gives zeros. No Tq x Tk matrix is ever stored.
template <class T>
void attention_forward(const Context&, const Pattern& pattern, double scale, Heads<const T> q,
                       Heads<const T> k, Heads<const T> v, Heads<T> out, Matrix<Accumulate<T>> lse);
/// dq, dk, dv shaped as q, k, v; delta (B*H, Tq): workspace.
template <class T>
void attention_backward(const Context&, const Pattern& pattern, double scale, Heads<const T> q,
                        Heads<const T> k, Heads<const T> v, Heads<const T> out, Heads<const T> dout,
                        Matrix<const Accumulate<T>> lse, Matrix<Accumulate<T>> delta, Heads<T> dq,
                        Heads<T> dk, Heads<T> dv);

// ---- activation
// ----------------------------------------------------------------------------------
enum class Activation { swiglu, gelu, relu2 };  // Shazeer 2020; tanh form, as GPT-2; So et al. 2021
/// x (N, 2F) = [gate | up] for swiglu, else (N, F); y (N, F).
template <class T>
void activation_forward(const Context&, Activation, Matrix<const T> x, Matrix<T> y);
/// dx shaped as x, and may be x itself.
template <class T>
void activation_backward(const Context&, Activation, Matrix<const T> x, Matrix<const T> dy,
                         Matrix<T> dx);

// ---- dropout (Srivastava et al. 2014)
// ---------------------------------------------------------------
/// Which numbers a dropout draws: a function of these alone, so backward and recomputation redraw
/// them.
struct DropoutKey {
  double probability = 0;
  std::uint64_t seed = 0, step = 0;
  std::uint32_t layer = 0;
  std::uint32_t first_row = 0;  // global row number of row 0, so that rank layouts agree
};
/// In place: x (N, D) is zeroed with the key's probability, else scaled by 1 / (1 - p). The same
/// call is the backward operation on the gradient.
template <class T>
void dropout(const Context&, const DropoutKey&, Matrix<T> x);

// ---- elementwise
// -----------------------------------------------------------------------------------
/// y += x.
template <class T>
void add(const Context&, Matrix<const T> x, Matrix<T> y);
/// to (N, D) = a + b + c, where each has N rows, or one row, which is added to all, or none.
template <class T>
void sum(const Context&, Matrix<const T> a, Matrix<const T> b, Matrix<const T> c, Matrix<T> to);
/// sums (D) += column sums of x (N, D).
template <class T>
void column_sums(const Context&, Matrix<const T> x, Vector<Accumulate<T>> sums);
/// to = from, with rounding.
template <class From, class To>
void convert(const Context&, Vector<const From> from, Vector<To> to);

// ---- embedding
// -------------------------------------------------------------------------------------
/// x (N, D) = table (V, D)[tokens (N)] + positions (context, D)[t], positions empty unless learned;
/// row n has position first + n % T.
template <class T>
void embedding_forward(const Context&, Vector<const std::int32_t> tokens, Matrix<const T> table,
                       Matrix<const T> positions, std::size_t tokens_per_sequence, int first,
                       Matrix<T> x);
/// x (N, D) += table (R, D)[rows (N)]. Its backward is embedding_backward without positions.
template <class T>
void embedding_add(const Context&, Vector<const std::int32_t> rows, Matrix<const T> table,
                   Matrix<T> x);
/// dtable, dpositions (empty unless learned) are added to, in an order fixed by the tokens alone.
/// `order` (N): row numbers sorted by (token, row), made on the host while the batch is prepared.
template <class T>
void embedding_backward(const Context&, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const T> dx,
                        std::size_t tokens_per_sequence, Matrix<Accumulate<T>> dtable,
                        Matrix<Accumulate<T>> dpositions);

// ---- head and loss, fused in chunks of rows
// -----------------------------------------------------------
struct HeadOptions {
  double z_loss = 0;           // weight of logsumexp^2 (PaLM, section 5)
  std::size_t vocabulary = 0;  // columns beyond it (padding) take no part; 0: all
  double cap = 0;  // logits become cap tanh(logit / cap) (Gemma 2, section 2); 0: as they are
};
/// Cross entropy of softmax(x w^T) against targets, without storing all logits: `logits` (C, V)
/// holds one chunk of C rows at a time. x (N, D), w (V, D), targets (N; < 0: ignored), weights (N):
/// d total / d loss_i. losses (N): loss of each row, 0 where ignored. best (N), unless empty: the
/// token of the largest logit, the lowest of equals.
template <class T>
void head_loss_forward(const Context&, const HeadOptions&, Matrix<const T> x, Matrix<const T> w,
                       Vector<const std::int32_t> targets, Matrix<T> logits,
                       Vector<Accumulate<T>> losses, Vector<std::int32_t> best = {});
/// Forward and backward in one pass: dx (N, D) overwritten, dw (V, D) added to. dx may not be x.
template <class T>
void head_loss_backward(const Context&, const HeadOptions&, Matrix<const T> x, Matrix<const T> w,
                        Vector<const std::int32_t> targets, Vector<const Accumulate<T>> weights,
                        Matrix<T> logits, Vector<Accumulate<T>> losses, Matrix<T> dx,
                        Matrix<Accumulate<T>> dw);

/// The M rows of `from` (M, D) into rows `rows` (M, all different) of `to` (N, D); zeros elsewhere.
template <class T>
void scatter_rows(const Context&, Vector<const std::int32_t> rows, Matrix<const T> from,
                  Matrix<T> to);
/// best (N): the column of the largest of each row's first `vocabulary` logits, lowest of equals.
template <class T>
void argmax_rows(const Context&, Matrix<const T> logits, std::size_t vocabulary,
                 Vector<std::int32_t> best);
/// In place: cap tanh(logit / cap); nothing where cap is 0.
template <class T>
void cap_logits(const Context&, double cap, Matrix<T> logits);

// ---- reductions
// ------------------------------------------------------------------------------------
/// result (1) = sum of weights_i * values_i (weights empty: plain sum).
template <class A>
void weighted_sum(const Context&, Vector<const A> values, Vector<const A> weights,
                  Vector<A> result);
/// weights (N) = unit (base + reward / mean of the sequence's losses), for sequences of `tokens`
/// rows. The mean is over rows with a target (N, < 0: none); where it is 0, the weight is unit x
/// base.
template <class A>
void improvement_weights(const Context&, double unit, double base, double reward,
                         Vector<const A> losses, Vector<const std::int32_t> targets,
                         std::size_t tokens, Vector<A> weights);
/// result (1) = sum of squares.
template <class A>
void sum_of_squares(const Context&, Vector<const A> values, Vector<A> result);

// ---- optimizer updates
// -------------------------------------------------------------------------------
struct AdamW {  // Loshchilov & Hutter 2019, decoupled decay: w -= lr * decay * w
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;  // from 1, for the bias corrections
};
/// master, m, v (n) are updated; copy (n) receives the new master in storage type (may be empty, or
/// the master itself for float). The gradient is multiplied by gradient_scale (1), a device scalar:
/// the clipping factor. A gradient_scale of 0 or NaN leaves everything as it is (a skipped step).
template <class T>
void adamw_update(const Context&, const AdamW&, Vector<Accumulate<T>> master,
                  Vector<const Accumulate<T>> gradient, Vector<const Accumulate<T>> gradient_scale,
                  Vector<Accumulate<T>> m, Vector<Accumulate<T>> v, Vector<T> copy);
// Muon's first step (Jordan et al. 2024); the others are in batched.hpp.
/// Nesterov's momentum over a range, all (n), gradient_scale (1): g = gradient_scale * gradient;
/// buffer += (1 - momentum) (g - buffer); then gradient = g + momentum (buffer - g), as in
/// torch.optim.Muon. A gradient_scale of 0 or NaN leaves everything as it is.
template <class A>
void nesterov(const Context&, double momentum, Vector<A> gradient, Vector<const A> gradient_scale,
              Vector<A> buffer);
/// average (n) += (1 - decay) (values - average): an exponential moving average.
template <class A>
void move_average(const Context&, double decay, Vector<const A> values, Vector<A> average);
/// Exchanges a (n) and b (n).
template <class A>
void exchange(const Context&, Vector<A> a, Vector<A> b);
/// scale (1) = min(1, limit / sqrt(squares)) (1 if limit is 0), 0 where squares is not finite.
/// norm (1) = sqrt(squares).
template <class A>
void clip_scale(const Context&, Vector<const A> squares, double limit, Vector<A> scale,
                Vector<A> norm);

// ---- sampling
// ----------------------------------------------------------------------------------------
struct Sampling {
  double temperature = 1,
         top_p = 1;  // temperature 0: the largest logit, the lowest index of equals
  int top_k = 0;     // 0: all
  std::uint64_t seed = 0;
};
/// token (B) drawn from each row of logits (B, V), columns below `vocabulary` only. Row b draws
/// with (seed, request[b], position): independent of batch and order. Tokens are ordered by logit,
/// equal ones by index; top_k keeps the first k of them, then top_p the shortest beginning of those
/// that reaches it. NaN counts as -infinity; a row without any logit above that gives token -1,
/// which the caller must check before it uses it as an index.
template <class T>
void sample(const Context&, const Sampling&, Matrix<const T> logits, std::size_t vocabulary,
            Vector<const std::int32_t> request, int position, Vector<std::int32_t> token);

}  // namespace tern::ops
