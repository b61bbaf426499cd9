#include "ops/attention/cuda/cudnn/cudnn.hpp"

#include "base/error.hpp"

#if defined(TERN_WITH_CUDNN)
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tern::ops::cuda {
namespace {

namespace fe = cudnn_frontend;
using TensorHandle = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Name : std::int64_t { Q = 1, K, V, O, LSE, DO, DQ, DK, DV };

using Key = std::vector<std::int64_t>;

struct Plan {
  std::unique_ptr<fe::graph::Graph> graph;  // null: refused
  std::int64_t workspace = 0;
  std::string refusal;
};

void append(Key& key, const HeadTensor& t) { key.insert(key.end(), {t.batch, t.head, t.token}); }

Key key_of(const AttentionShape& s, bool backward, bool atomics) {
  Key key{s.batch, s.heads, s.kv_heads, s.tokens, s.head_size, s.causal, s.fp16, backward, atomics};
  std::int32_t scale;
  memcpy(&scale, &s.scale, sizeof scale);
  key.push_back(scale);
  return key;
}

TensorHandle input(fe::graph::Graph& graph, Name name, const HeadTensor& t, const AttentionShape& s,
                   std::int64_t heads) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(name)
                          .set_dim({s.batch, heads, s.tokens, s.head_size})
                          .set_stride({t.batch, t.head, t.token, 1}));
}

void output(const TensorHandle& tensor, Name name, const HeadTensor& t, const AttentionShape& s,
            std::int64_t heads) {
  tensor->set_output(true)
      .set_uid(name)
      .set_dim({s.batch, heads, s.tokens, s.head_size})
      .set_stride({t.batch, t.head, t.token, 1});
}

std::unique_ptr<fe::graph::Graph> new_graph(const AttentionShape& s) {
  auto graph = std::make_unique<fe::graph::Graph>();
  graph->set_io_data_type(s.fp16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

std::unique_ptr<fe::graph::Graph> describe(const AttentionShape& s,
                                           const CudnnAttention::Forward& a) {
  auto graph = new_graph(s);
  const auto q = input(*graph, Q, a.q, s, s.heads), k = input(*graph, K, a.k, s, s.kv_heads),
             v = input(*graph, V, a.v, s, s.kv_heads);
  auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(s.scale);
  if (s.causal)
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  auto [out, lse] = graph->sdpa(q, k, v, options);
  output(out, O, a.out, s, s.heads);
  lse->set_output(true)
      .set_uid(LSE)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim({s.batch, s.heads, s.tokens, 1})
      .set_stride({s.heads * s.tokens, s.tokens, 1, 1});
  return graph;
}

std::unique_ptr<fe::graph::Graph> describe(const AttentionShape& s,
                                           const CudnnAttention::Backward& a, bool atomics) {
  auto graph = new_graph(s);
  const auto q = input(*graph, Q, a.q, s, s.heads), k = input(*graph, K, a.k, s, s.kv_heads),
             v = input(*graph, V, a.v, s, s.kv_heads), out = input(*graph, O, a.out, s, s.heads),
             dout = input(*graph, DO, a.dout, s, s.heads);
  const auto lse = graph->tensor(fe::graph::Tensor_attributes()
                                     .set_uid(LSE)
                                     .set_data_type(fe::DataType_t::FLOAT)
                                     .set_dim({s.batch, s.heads, s.tokens, 1})
                                     .set_stride({s.heads * s.tokens, s.tokens, 1, 1}));
  auto options =
      fe::graph::SDPA_backward_attributes().set_attn_scale(s.scale).set_deterministic_algorithm(
          !atomics);
  if (s.causal)
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, out, dout, lse, options);
  output(dq, DQ, a.dq, s, s.heads);
  output(dk, DK, a.dk, s, s.kv_heads);
  output(dv, DV, a.dv, s, s.kv_heads);
  return graph;
}

Plan build(cudnnHandle_t handle, std::unique_ptr<fe::graph::Graph> graph) {
  const auto steps = {
      +[](fe::graph::Graph& g, cudnnHandle_t) { return g.validate(); },
      +[](fe::graph::Graph& g, cudnnHandle_t h) { return g.build_operation_graph(h); },
      +[](fe::graph::Graph& g, cudnnHandle_t) {
        return g.create_execution_plans({fe::HeurMode_t::A});
      },
      +[](fe::graph::Graph& g, cudnnHandle_t h) { return g.check_support(h); },
      +[](fe::graph::Graph& g, cudnnHandle_t h) { return g.build_plans(h); },
  };
  for (const auto& step : steps)
    if (auto result = step(*graph, handle); result.is_bad())
      return {nullptr, 0, result.get_message()};
  Plan plan;
  if (auto result = graph->get_workspace_size(plan.workspace); result.is_bad())
    return {nullptr, 0, result.get_message()};
  plan.graph = std::move(graph);
  return plan;
}

/// Address of sequence `first`.
void* from(const HeadTensor& t, std::int64_t first) {
  constexpr std::int64_t element = 2;
  return static_cast<char*>(const_cast<void*>(t.data)) + first * t.batch * element;
}
void* from(const float* lse, const AttentionShape& s, std::int64_t first) {
  return const_cast<float*>(lse) + first * s.heads * s.tokens;
}

using Pointers = std::unordered_map<std::int64_t, void*>;

Pointers pointers(const AttentionShape& s, const CudnnAttention::Forward& a, std::int64_t first) {
  return {{Q, from(a.q, first)},
          {K, from(a.k, first)},
          {V, from(a.v, first)},
          {O, from(a.out, first)},
          {LSE, from(a.lse, s, first)}};
}
Pointers pointers(const AttentionShape& s, const CudnnAttention::Backward& a, std::int64_t first) {
  return {{Q, from(a.q, first)},   {K, from(a.k, first)},     {V, from(a.v, first)},
          {O, from(a.out, first)}, {DO, from(a.dout, first)}, {LSE, from(a.lse, s, first)},
          {DQ, from(a.dq, first)}, {DK, from(a.dk, first)},   {DV, from(a.dv, first)}};
}

}  // namespace

struct CudnnAttention::Plans {
  cudnnHandle_t handle = nullptr;
  std::map<Key, Plan> made;
  std::string refusal;
  bool atomics = false;

  Plan make(const AttentionShape& s, const Forward& a) { return build(handle, describe(s, a)); }
  Plan make(const AttentionShape& s, const Backward& a) {
    return build(handle, describe(s, a, atomics));
  }
  static Key key(const AttentionShape& s, const Forward& a, bool) {
    Key key = key_of(s, false, false);
    for (const HeadTensor& t : {a.q, a.k, a.v, a.out}) append(key, t);
    return key;
  }
  static Key key(const AttentionShape& s, const Backward& a, bool atomics) {
    Key key = key_of(s, true, atomics);
    for (const HeadTensor& t : {a.q, a.k, a.v, a.out, a.dout, a.dq, a.dk, a.dv}) append(key, t);
    return key;
  }
  template <class Pass>
  Plan& plan(const AttentionShape& s, const Pass& a) {
    Key k = key(s, a, atomics);
    const auto at = made.find(k);
    return at != made.end() ? at->second : made.emplace(std::move(k), make(s, a)).first->second;
  }

  template <class Pass>
  bool run(const Work& work, const AttentionShape& whole, const Pass& a) {
    AttentionShape part = whole;
    while (true) {
      const Plan& p = plan(part, a);
      if (!p.graph) {
        refusal = p.refusal;
        return false;
      }
      if (static_cast<std::size_t>(p.workspace) <= work.workspace_bytes) break;
      if (part.batch == 1) {
        refusal = fmt::format("one sequence of {} tokens needs {} bytes of workspace, there are {}",
                              whole.tokens, p.workspace, work.workspace_bytes);
        return false;
      }
      part.batch = (part.batch + 1) / 2;
    }
    const auto status = cudnnSetStream(handle, static_cast<cudaStream_t>(work.stream));
    TERN_REQUIRE(status == CUDNN_STATUS_SUCCESS, "{}", cudnnGetErrorString(status));
    for (std::int64_t first = 0; first < whole.batch; first += part.batch) {
      AttentionShape now = part;
      now.batch = std::min(part.batch, whole.batch - first);
      const Plan& p = plan(now, a);
      TERN_REQUIRE(p.graph, "{}", p.refusal);
      Pointers pack = pointers(now, a, first);
      auto result = p.graph->execute(handle, pack, work.workspace);
      TERN_REQUIRE(result.is_good(), "cuDNN attention: {}", result.get_message());
    }
    return true;
  }
};

CudnnAttention::CudnnAttention() : plans_(std::make_unique<Plans>()) {
  const auto status = cudnnCreate(&plans_->handle);
  TERN_REQUIRE(status == CUDNN_STATUS_SUCCESS, "cudnnCreate: {}", cudnnGetErrorString(status));
}

CudnnAttention::~CudnnAttention() {
  plans_->made.clear();
  cudnnDestroy(plans_->handle);
}

bool CudnnAttention::forward(const Work& work, const AttentionShape& shape, const Forward& a) {
  return plans_->run(work, shape, a);
}
bool CudnnAttention::backward(const Work& work, const AttentionShape& shape, const Backward& a) {
  return plans_->run(work, shape, a);
}
const char* CudnnAttention::refusal() const { return plans_->refusal.c_str(); }
void CudnnAttention::allow_atomics(bool allow) { plans_->atomics = allow; }

}  // namespace tern::ops::cuda

#else

namespace tern::ops::cuda {

struct CudnnAttention::Plans {};

CudnnAttention::CudnnAttention() { TERN_REQUIRE(false, "no cuDNN in this build"); }
CudnnAttention::~CudnnAttention() = default;
bool CudnnAttention::forward(const Work&, const AttentionShape&, const Forward&) { return false; }
bool CudnnAttention::backward(const Work&, const AttentionShape&, const Backward&) { return false; }
const char* CudnnAttention::refusal() const { return "no cuDNN in this build"; }
void CudnnAttention::allow_atomics(bool) {}

}  // namespace tern::ops::cuda

#endif
