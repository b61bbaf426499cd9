/// The accelerated twins of ops.hpp for bf16 storage on NVIDIA GPUs: cuBLASLt for the matrix
/// products, cuDNN and kernels of our own for attention, kernels with 16-byte accesses for the
/// rest. Signatures and contracts are those of ops.hpp with T = bf16; Context::library must be set.
/// What an operation here cannot do (a width that is no multiple of 8, a misaligned view, a shape
/// that a library refuses) it hands to portable::, so every call that is valid there is valid here.
/// Operations that are not listed have no twin: portable:: serves them.
#pragma once
#include "ops/ops.hpp"

namespace tern::ops::cuda {

// linear (linear.cpp)
void linear_forward(const Context&, Matrix<const bf16> x, Matrix<const bf16> w,
                    Vector<const bf16> bias, Matrix<bf16> y, Write);
void linear_backward_input(const Context&, Matrix<const bf16> dy, Matrix<const bf16> w,
                           Matrix<bf16> dx, Write);
void linear_backward_weight(const Context&, Matrix<const bf16> dy, Matrix<const bf16> x,
                            Matrix<float> dw, Vector<float> dbias);
void column_sums(const Context&, Matrix<const bf16> x, Vector<float> sums);

// norm (norm.cpp)
void norm_forward(const Context&, Norm, Matrix<const bf16> x, Vector<const bf16> gain,
                  Vector<const bf16> bias, double eps, Matrix<bf16> y, Vector<float> mean,
                  Vector<float> rstd);
void norm_backward(const Context&, Norm, Matrix<const bf16> dy, Matrix<const bf16> x,
                   Vector<const bf16> gain, Vector<const float> mean, Vector<const float> rstd,
                   Matrix<bf16> dx, Write, Vector<float> dgain, Vector<float> dbias,
                   Vector<float> partial);

// norm of each head's vector (head_norm.cpp)
void head_norm_forward(const Context&, Heads<bf16> x, Vector<const bf16> gain, double eps,
                       Matrix<bf16> saved, Vector<float> rstd);
void head_norm_backward(const Context&, Heads<bf16> dx, Matrix<const bf16> saved,
                        Vector<const bf16> gain, Vector<const float> rstd, Vector<float> dgain,
                        Vector<float> partial);

// rotary position embedding (rotary.cpp)
void rotary(const Context&, Heads<bf16> x, Matrix<const float> table, const Positions&, Direction);

// attention (attention.cpp)
void attention_forward(const Context&, const Pattern& pattern, double scale, Heads<const bf16> q,
                       Heads<const bf16> k, Heads<const bf16> v, Heads<bf16> out,
                       Matrix<float> lse);
void attention_backward(const Context&, const Pattern& pattern, double scale, Heads<const bf16> q,
                        Heads<const bf16> k, Heads<const bf16> v, Heads<const bf16> out,
                        Heads<const bf16> dout, Matrix<const float> lse, Matrix<float> delta,
                        Heads<bf16> dq, Heads<bf16> dk, Heads<bf16> dv);

// activation (activation.cpp)
void activation_forward(const Context&, Activation, Matrix<const bf16> x, Matrix<bf16> y);
void activation_backward(const Context&, Activation, Matrix<const bf16> x, Matrix<const bf16> dy,
                         Matrix<bf16> dx);

// elementwise (elementwise.cpp)
void add(const Context&, Matrix<const bf16> x, Matrix<bf16> y);
void sum(const Context&, Matrix<const bf16> a, Matrix<const bf16> b, Matrix<const bf16> c,
         Matrix<bf16> to);
void convert(const Context&, Vector<const float> from, Vector<bf16> to);
void convert(const Context&, Vector<const bf16> from, Vector<float> to);

// embedding (embedding.cpp)
void embedding_forward(const Context&, Vector<const std::int32_t> tokens, Matrix<const bf16> table,
                       Matrix<const bf16> positions, std::size_t tokens_per_sequence, int first,
                       Matrix<bf16> x);
void embedding_backward(const Context&, Vector<const std::int32_t> tokens,
                        Vector<const std::int32_t> order, Matrix<const bf16> dx,
                        std::size_t tokens_per_sequence, Matrix<float> dtable,
                        Matrix<float> dpositions);

// head and loss (head_loss.cpp)
void head_loss_forward(const Context&, const HeadOptions&, Matrix<const bf16> x,
                       Matrix<const bf16> w, Vector<const std::int32_t> targets,
                       Matrix<bf16> logits, Vector<float> losses, Vector<std::int32_t> best);
void head_loss_backward(const Context&, const HeadOptions&, Matrix<const bf16> x,
                        Matrix<const bf16> w, Vector<const std::int32_t> targets,
                        Vector<const float> weights, Matrix<bf16> logits, Vector<float> losses,
                        Matrix<bf16> dx, Matrix<float> dw);

// optimizer update (adamw.cpp)
void adamw_update(const Context&, const AdamW&, Vector<float> master, Vector<const float> gradient,
                  Vector<const float> gradient_scale, Vector<float> m, Vector<float> v,
                  Vector<bf16> copy);

}  // namespace tern::ops::cuda
