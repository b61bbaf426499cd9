#include "campaign/weights.hpp"

#include "base/error.hpp"
#include "campaign/parts.hpp"
#include "campaign/snapshot.hpp"
#include "checkpoint/transformers.hpp"

namespace tern::campaign {
namespace {

namespace fs = std::filesystem;

/// What weights are loaded into and saved from: masters, or compute where there are none.
template <class T, class Body>
void with_values(const plan::Workload<T>& w, const Body& body) {
  if (w.parameters.has_master())
    body(w.parameters.master);
  else
    body(w.parameters.compute);
}

/// What this rank holds of a parameter, from the host to the device.
template <class T>
void upload(const plan::Workload<T>& w, const model::Parameter& p, const float* from) {
  with_values(w, [&](const auto& span) {
    using V = typename std::decay_t<decltype(span)>::value_type;
    w.parameters.for_each_piece(p, [&](std::size_t at, std::size_t first, std::size_t count) {
      const Vector<V> to(span.data() + at, count);
      const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace{}, to);
      std::copy_n(from + first, count, host.data());
      Kokkos::deep_copy(w.context.space, to, host);
      w.context.fence("weights to the device");
    });
  });
}

/// One parameter from the device to the host.
template <class T>
std::vector<float> download(const plan::Workload<T>& w, const model::Parameter& p) {
  std::vector<float> result(p.count);
  with_values(w, [&](const auto& span) {
    using V = typename std::decay_t<decltype(span)>::value_type;
    const Vector<V> from(span.data() + p.offset, p.count);
    const auto host = Kokkos::create_mirror_view(Kokkos::HostSpace{}, from);
    Kokkos::deep_copy(w.context.space, host, from);
    w.context.fence("weights to the host");
    std::copy_n(host.data(), p.count, result.data());
  });
  return result;
}

template <class T>
void load_transformers(plan::Workload<T>& w, const fs::path& directory) {
  const checkpoint::TransformersReader reader(directory);
  for (const model::Parameter& p : w.tree.parameters()) {
    const std::vector<float> whole = reader.read(p.name, p.whole);
    std::vector<float> part(p.count);
    for_each_run(p, 0, p.count, [&](std::size_t first, std::size_t count, std::size_t offset) {
      std::copy_n(whole.data() + first, count, part.data() + offset);
    });
    upload(w, p, part.data());
  }
}

/// Takes the weights' moving average, if the run kept one, for it is what training evaluates; true
/// then.
template <class T>
bool load_checkpoint(plan::Workload<T>& w, const checkpoint::Reader& reader) {
  std::vector<checkpoint::Tensor> wanted;
  for (const model::Parameter& p : w.tree.parameters()) wanted.push_back({"/" + p.name, p.whole});
  require_same_model(reader, of_all_stages(wanted, w.tree.share()));
  const std::string average = "/optimizer/ema/";
  const bool averaged = reader.has(average + w.tree.parameters().front().name);
  for (const model::Parameter& p : w.tree.parameters()) {
    std::vector<float> values(p.count);
    read_part(reader, (averaged ? average : "/") + p.name, p, 0, p.count, values.data());
    upload(w, p, values.data());
  }
  return averaged;
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
    const bool average = load_checkpoint(w, reader);
    log.line("{} from {} (step {})", average ? "weights' average" : "weights",
             reader.path().string(), reader.header().step);
  }
  w.parameters.refresh_compute(w.context);
  w.context.fence("weights ready");
}

template <class T>
void export_weights(const plan::Workload<T>& w, const deck::Deck& deck, const fs::path& directory,
                    std::int64_t end_of_text) {
  std::vector<std::vector<float>> values;
  std::vector<checkpoint::NamedArray> arrays;
  for (const model::Parameter& p : w.tree.parameters()) {
    values.push_back(download(w, p));
    arrays.push_back({p.name, p.shape, values.back().data()});
  }
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
