#include "weights/weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/timer.hpp"
#include "checkpoint/checkpoint.hpp"
#include "deck/changes.hpp"
#include "deck/choices.hpp"
#include "job/run_directory.hpp"
#include "model/declare.hpp"
#include "transformers/directory.hpp"
#include "transformers/end_tokens.hpp"
#include "weights/matching.hpp"
#include "weights/parts.hpp"
#include "weights/snapshot.hpp"
#include "weights/weight_stream.hpp"

namespace tern::weights {
namespace {

namespace fs = std::filesystem;
using transformers::Described;
using transformers::TransformersReader;

std::vector<Described> describe(const model::ParameterTree& tree) {
  std::vector<Described> all;
  for (const model::Parameter& p : tree.parameters()) all.push_back({p.name, p.whole});
  return all;
}

/// Destination of loaded weights.
template <class T>
struct Target {
  const ops::Context& context;
  const model::ParameterTree& tree;
  model::Parameters<T>& parameters;
};

/// Fills the master weights, or the compute weights if there are none. read(parameter, part, to)
/// takes float, bf16 and fp16.
template <class T, class Read>
Transfer fill(Target<T>& w, const std::vector<const model::Parameter*>& order, const Read& read,
              std::size_t threads, Log& log) {
  StreamOptions options;
  options.threads = threads;
  const std::vector<Holding> held = holdings(w.parameters, order);
  if (w.parameters.has_master())
    return stream_in<Accumulate<T>>(w.context, held, w.parameters.master, read, log, options);
  return stream_in<T>(w.context, held, w.parameters.compute, read, log, options);
}

using Order = std::vector<const model::Parameter*>;

Order all_of(const model::ParameterTree& tree) {
  Order order;
  for (const model::Parameter& p : tree.parameters()) order.push_back(&p);
  return order;
}

Order in_order_of_files(const Order& parameters, const TransformersReader& reader) {
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, const model::Parameter*>> placed;
  for (const model::Parameter* p : parameters)
    placed.emplace_back(reader.position({p->name, p->whole}), p);
  std::sort(placed.begin(), placed.end());
  Order order;
  for (const auto& [position, p] : placed) order.push_back(p);
  return order;
}

/// The tree's parameters as tensors of a checkpoint.
std::vector<checkpoint::Tensor> tensors_of(const model::ParameterTree& tree) {
  std::vector<checkpoint::Tensor> all;
  for (const model::Parameter& p : tree.parameters()) all.push_back({"/" + p.name, p.whole});
  return all;
}

/// Those of the tree's parameters that match `stored` ones.
Order matching_of(const model::ParameterTree& tree, const std::vector<checkpoint::Tensor>& stored,
                  const std::string& from, Log& log) {
  const auto matching =
      matching_tensors(of_all_stages(tensors_of(tree), tree.share()), stored, from, log);
  Order order = all_of(tree);
  std::erase_if(order, [&](const auto* p) { return !matching.contains("/" + p->name); });
  return order;
}

/// Throws UserError if the directory holds another model than the tree's.
void require_shapes(const model::ParameterTree& tree, const model::ParameterTree& stored,
                    const fs::path& directory) {
  for (const model::Parameter& p : tree.parameters()) {
    if (stored.has(p.name) && stored.at(p.name).shape == p.whole) continue;
    user_error(
        "{} is a different model from the deck's: {} is ({}) in the deck, {} there",
        directory.string(), p.name, fmt::join(p.whole, ", "),
        stored.has(p.name) ? fmt::format("({})", fmt::join(stored.at(p.name).shape, ", ")) : "not");
  }
}

/// Parameters that the directory holds. Throws UserError if files lack some of them, or for another
/// model than the tree's.
model::ParameterTree checked(const TransformersReader& reader, const model::ParameterTree& tree,
                             const fs::path& directory, Tensors which) {
  model::ParameterTree stored(model::declare(reader.model()));
  if (which == Tensors::all) require_shapes(tree, stored, directory);
  reader.require(describe(stored));
  return stored;
}

template <class T>
Transfer load_transformers(Target<T>& w, const fs::path& directory, Tensors which, Log& log) {
  const TransformersReader reader(directory);
  const model::ParameterTree stored = checked(reader, w.tree, directory, which);
  if (reader.has_own_head())
    log.line("{}: its head differs from its embeddings, which config.json ties; both are kept",
             directory.string());
  const Order taken = which == Tensors::all
                          ? all_of(w.tree)
                          : matching_of(w.tree, tensors_of(stored), directory.string(), log);
  const Order order = in_order_of_files(taken, reader);
  const auto read = [&](const model::Parameter& p, const transformers::Part& part, auto* to) {
    reader.read(p.name, p.whole, part, to);
  };
  const std::size_t cores = std::thread::hardware_concurrency();
  return fill(w, order, read, std::clamp<std::size_t>(cores / 2, 1, 8), log);
}

checkpoint::Reader open_checkpoint(const fs::path& from, Log& log) {
  if (!fs::exists(from))
    user_error(
        "{}: no such file or folder; set &model load or &generation checkpoint to a checkpoint, a "
        "run's directory or a Transformers directory",
        from.string());
  if (fs::is_regular_file(from) || fs::exists(from / "checkpoint.h5"))
    return checkpoint::Reader(from);
  const fs::path below = fs::exists(from / "checkpoints") ? from / "checkpoints" : from;
  auto newest = checkpoint::open_newest(below, log);
  if (!newest)
    user_error(
        "{} contains no readable checkpoint and no config.json of Transformers; set &model load or "
        "&generation checkpoint to another",
        from.string());
  return std::move(*newest);
}

/// Values in which the checkpoint's &model differs, which equal shapes do not rule out; empty if
/// there are none.
std::string other_meaning(const checkpoint::Reader& reader, const deck::Model& model) {
  deck::Deck deck;
  deck.model = model;
  auto changes = deck::changes_of(reader.header().deck, deck).model;
  std::erase_if(changes, [](const deck::Difference& d) { return d.name == "context"; });
  return changes.empty() ? "" : deck::text_of(changes);
}

/// Note whether the checkpoint is the run's best one.
std::string rank_of(const checkpoint::Reader& reader) {
  const fs::path folder = fs::path(reader.path()).parent_path();
  const auto best = checkpoint::best_checkpoint(folder.parent_path()).path;
  if (!best) return "";
  return best->filename() == folder.filename()
             ? ", the best"
             : fmt::format("; the best is {}", best->filename().string());
}

/// The weights of a checkpoint; their EMA if the run kept one, as in the evaluations of training.
struct StoredWeights {
  StoredWeights(const fs::path& from, Log& log) : reader(open_checkpoint(from, log)) {
    for (const checkpoint::Tensor& tensor : reader.tensors())
      if (!tensor.path.starts_with("/optimizer/")) tensors.push_back(tensor);
    if (!tensors.empty() && reader.has("/optimizer/ema" + tensors.front().path))
      prefix = "/optimizer/ema/";
  }

  void require(const model::ParameterTree& tree, const deck::Model& model) const {
    require_same_model(reader, of_all_stages(tensors_of(tree), tree.share()));
    if (const std::string other = other_meaning(reader, model); !other.empty())
      user_error("{} contains a different model from the deck's:\n{}", reader.path().string(),
                 other);
  }

  /// Parameters that match; logs what does not.
  Order matching(const model::ParameterTree& tree, const deck::Model& model, Log& log) const {
    if (const std::string other = other_meaning(reader, model); !other.empty())
      log.line("weights of a different &model:\n{}", other);
    for (const checkpoint::Tensor& wanted : tensors_of(tree)) reader.require_own(wanted.path);
    return matching_of(tree, tensors, reader.path().string(), log);
  }

  /// Reads a part of a parameter of `width` columns.
  template <class V>
  void read(const std::string& name, std::size_t width, const transformers::Part& part,
            V* to) const {
    const std::size_t together = std::max<std::size_t>(1, (std::size_t{1} << 20) / width);
    std::vector<float> values(std::min(together, part.rows) * width);
    for (std::size_t first = 0; first < part.rows; first += together) {
      const std::size_t rows = std::min(together, part.rows - first);
      reader.read(prefix + name, (part.row + first) * width, rows * width, values.data());
      for (std::size_t r = 0; r < rows; ++r)
        std::copy_n(values.data() + r * width + part.column, part.columns,
                    to + (first + r) * part.columns);
    }
  }

  std::string summary() const {
    return fmt::format("{} from {} (step {}{})", prefix == "/" ? "weights" : "EMA weights",
                       reader.path().string(), reader.header().step, rank_of(reader));
  }

  checkpoint::Reader reader;
  std::vector<checkpoint::Tensor> tensors;  // of the model
  std::string prefix = "/";
};

template <class T>
Transfer load_checkpoint(Target<T>& w, const StoredWeights& stored, const Order& order, Log& log) {
  const auto read = [&](const model::Parameter& p, const transformers::Part& part, auto* to) {
    stored.read(p.name, p.whole.back(), part, to);
  };
  return fill(w, order, read, 1, log);  // HDF5 reads in one thread
}

/// Size, time and rate of transfers large enough to matter.
std::string speed(const Transfer& transfer) {
  if (transfer.bytes < 1e7) return "";
  return fmt::format(" ({:.2f} GB per rank in {:.1f} s, {:.2f} GB/s)", transfer.gigabytes(),
                     transfer.seconds, transfer.rate());
}

/// Throws UserError if the checkpoint's run wrote conversations in another way than the deck says.
void require_same_format(const checkpoint::Reader& reader, const deck::Deck& deck) {
  auto changes = deck::changes_of(reader.header().deck, deck).others;
  std::erase_if(changes, [](const deck::Difference& d) {
    return d.group != "data" || (d.name != "chat_template" && d.name != "thinking");
  });
  if (!changes.empty())
    user_error(
        "{}: its run formatted conversations differently from this deck: {}; an export describes "
        "the format that was learned: use the run's deck",
        reader.path().string(), deck::text_of(changes));
}

/// All parameters, read as float with `read(parameter, part, to)`.
template <class Read>
std::vector<transformers::ExportedParameter> exported(const model::ParameterTree& tree,
                                                      const Read& read) {
  std::vector<transformers::ExportedParameter> all;
  for (const model::Parameter& p : tree.parameters())
    all.push_back({p.name, p.whole, [&read, &p](std::size_t first, std::size_t count, float* to) {
                     // Whole rows, and the partial rows before and after them.
                     const std::size_t columns = p.whole.back();
                     while (count > 0) {
                       const std::size_t row = first / columns, column = first % columns;
                       const std::size_t rows =
                           column == 0 ? std::max<std::size_t>(1, count / columns) : 1;
                       const std::size_t wide = std::min(count, columns - column);
                       read(p, {row, rows, column, wide}, to);
                       to += rows * wide, first += rows * wide, count -= rows * wide;
                     }
                   }});
  return all;
}

}  // namespace

std::optional<deck::LoadedModel> model_at(const std::string& load) {
  if (!transformers::is_transformers(load)) return std::nullopt;
  const bool reads = fs::is_regular_file(fs::path(load) / "tokenizer.json");
  return deck::LoadedModel{transformers::transformers_model(load), reads ? load : ""};
}

template <class T>
void load_weights(const ops::Context& context, const model::ParameterTree& tree,
                  const deck::Model& model, model::Parameters<T>& parameters, const fs::path& from,
                  Log& log, Tensors which) {
  Target<T> target{context, tree, parameters};
  if (transformers::is_transformers(from)) {
    log.line("weights from {}{}", from.string(),
             speed(load_transformers(target, from, which, log)));
  } else {
    const StoredWeights stored(from, log);
    if (which == Tensors::all) stored.require(tree, model);
    const Order order = which == Tensors::all ? all_of(tree) : stored.matching(tree, model, log);
    log.line("{}{}", stored.summary(), speed(load_checkpoint(target, stored, order, log)));
  }
  parameters.refresh_compute(context);
  context.fence("weights ready");
}

void check_weights(const deck::Model& model, const fs::path& from, Log& log, Tensors which) {
  const model::ParameterTree tree(model::declare(model));
  if (transformers::is_transformers(from)) {
    checked(TransformersReader(from), tree, from, which);
  } else if (const StoredWeights stored(from, log); which == Tensors::all) {
    stored.require(tree, model);
  }
}

std::string weights_source(const deck::Deck& deck, Log* log) {
  const std::string& named = deck.generation.checkpoint;
  if (named != "best" && named != "newest") return named;
  const job::RunDirectory run{deck.output.directory};
  if (run.holds_a_run()) {
    if (named == "newest") return deck.output.directory;
    const checkpoint::BestCheckpoint best = checkpoint::best_checkpoint(run.checkpoints());
    if (log && !best.trouble.empty())
      log->warning("{}: {}", best.trouble,
                   best.path ? "it is used" : "the newest checkpoint is used");
    return best.path ? best.path->string() : deck.output.directory;
  }
  if (deck.model.load.empty())
    user_error("no checkpoint in {}; train first, or set &generation checkpoint",
               deck.output.directory);
  return deck.model.load;
}

std::vector<std::int64_t> end_tokens(const deck::Deck& deck) {
  const std::string& named = deck.generation.checkpoint;
  if (named != "best" && named != "newest" && transformers::is_transformers(named))
    return transformers::end_tokens(named);
  const bool whole = !deck::loads_matching(deck.model);
  if (!whole || !transformers::is_transformers(deck.model.load)) return {};
  return transformers::end_tokens(deck.model.load);
}

void export_weights(const deck::Deck& deck, const fs::path& from, const fs::path& directory,
                    const transformers::TransformersTokens& tokens, Log& log) {
  const model::ParameterTree tree(model::declare(deck.model));
  transformers::ExportOptions options;
  options.tokens = tokens;
  if (transformers::is_transformers(from))
    options.like = from;
  else if (transformers::is_transformers(deck.model.load))
    options.like = deck.model.load;
  const Timer timer;
  const auto write = [&](const auto& read) {
    transformers::export_transformers(directory, deck.model, exported(tree, read), options);
  };
  if (transformers::is_transformers(from)) {
    const TransformersReader reader(from);
    checked(reader, tree, from, Tensors::all);
    write([&](const model::Parameter& p, const transformers::Part& part, float* to) {
      reader.read(p.name, p.whole, part, to);
    });
    log.line("weights from {}", from.string());
  } else {
    const StoredWeights stored(from, log);
    stored.require(tree, deck.model);
    if (tokens.trained) require_same_format(stored.reader, deck);
    write([&](const model::Parameter& p, const transformers::Part& part, float* to) {
      stored.read(p.name, p.whole.back(), part, to);
    });
    log.line("{}", stored.summary());
  }
  log.line("written in {:.1f} s", timer.seconds());
}

template void load_weights(const ops::Context&, const model::ParameterTree&, const deck::Model&,
                           model::Parameters<float>&, const fs::path&, Log&, Tensors);
template void load_weights(const ops::Context&, const model::ParameterTree&, const deck::Model&,
                           model::Parameters<bf16>&, const fs::path&, Log&, Tensors);
template void load_weights(const ops::Context&, const model::ParameterTree&, const deck::Model&,
                           model::Parameters<fp16>&, const fs::path&, Log&, Tensors);

}  // namespace tern::weights
