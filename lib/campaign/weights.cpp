#include "campaign/weights.hpp"

#include "base/error.hpp"
#include "campaign/snapshot.hpp"
#include "checkpoint/transformers.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;

/// Host copy of the whole span of master weights.
template <class T>
HostVector<Accumulate<T>> host_span(const plan::Workload<T>& w) {
  auto host = Kokkos::create_mirror(Kokkos::HostSpace{}, w.parameters.master);
  Kokkos::deep_copy(w.context.space, host, w.parameters.master);
  w.context.fence("weights to the host");
  return host;
}

/// Fills the master weights: read(parameter, to) writes the parameter's values on the host.
template <class T, class Read>
void fill_master(plan::Workload<T>& w, const Read& read) {
  const auto host = host_span(w);  // a copy, for it holds the padding as well
  for (const model::Parameter& p : w.tree.parameters()) read(p, host.data() + p.offset);
  Kokkos::deep_copy(w.context.space, w.parameters.master, host);
  w.context.fence("weights to the device");
}

template <class T>
void load_transformers(plan::Workload<T>& w, const fs::path& directory) {
  const checkpoint::TransformersReader reader(directory);
  fill_master(w, [&](const model::Parameter& p, auto* to) {
    const std::vector<float> values = reader.read(p.name, p.shape);
    std::copy(values.begin(), values.end(), to);
  });
}

/// Takes the weights' moving average, if the run kept one, for it is what training evaluates.
template <class T>
bool load_average(plan::Workload<T>& w, const checkpoint::Reader& reader) {
  const auto path = [](const model::Parameter& p) { return "/optimizer/ema/" + p.name; };
  if (!reader.has(path(w.tree.parameters().front()))) return false;
  fill_master(w,
              [&](const model::Parameter& p, auto* to) { reader.read(path(p), 0, p.count, to); });
  return true;
}

checkpoint::Reader open_checkpoint(const fs::path& from, Log& log) {
  if (fs::is_regular_file(from) || fs::exists(from / "checkpoint.h5"))
    return checkpoint::Reader(from);
  const fs::path below = fs::exists(from / "checkpoints") ? from / "checkpoints" : from;
  auto newest = fs::exists(below) ? checkpoint::open_newest(below, log) : std::nullopt;
  if (!newest)
    user_error("no checkpoint in {}: train first, or name one by &generation checkpoint",
               from.string());
  return std::move(*newest);
}

}  // namespace

template <class T>
void load_weights(plan::Workload<T>& w, const fs::path& from, Log& log) {
  if (fs::exists(from / "config.json")) {
    load_transformers(w, from);
    log.line("weights from {}", from.string());
  } else {
    const checkpoint::Reader reader = open_checkpoint(from, log);
    Snapshot<T>(w.tree, w.parameters, {0, w.tree.span()}, {}, false).load(w.context, reader);
    const bool average = load_average(w, reader);
    log.line("{} from {} (step {})", average ? "weights' average" : "weights",
             reader.path().string(), reader.header().step);
  }
  w.parameters.refresh_compute(w.context);
  w.context.fence("weights ready");
}

template <class T>
void export_weights(const plan::Workload<T>& w, const deck::Deck& deck, const fs::path& directory,
                    std::int64_t end_of_text) {
  const auto host = host_span(w);
  std::vector<checkpoint::NamedArray> arrays;
  for (const model::Parameter& p : w.tree.parameters())
    arrays.push_back({p.name, p.shape, host.data() + p.offset});
  checkpoint::export_transformers(directory, deck.model, arrays, checkpoint::Dtype::f32,
                                  {end_of_text, end_of_text});
}

template void load_weights(plan::Workload<float>&, const fs::path&, Log&);
template void load_weights(plan::Workload<bf16>&, const fs::path&, Log&);
template void export_weights(const plan::Workload<float>&, const deck::Deck&, const fs::path&,
                             std::int64_t);
template void export_weights(const plan::Workload<bf16>&, const deck::Deck&, const fs::path&,
                             std::int64_t);

}  // namespace tern::campaign
