/// Memory, time and cost of a deck before it runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/mesh.hpp"
#include "deck/deck.hpp"
#include "memory/arena.hpp"
#include "plan/devices.hpp"
#include "plan/row_contents.hpp"
#include "workload/workload.hpp"

namespace tern::plan {

struct Plan {
  PlannedDevice device;                              // that is planned for
  deck::Deck deck;                                   // resolved: its batch is the layout's
  workload::Layout layout;                           // of a step on the ranks
  std::size_t parameters = 0;                        // of the whole model
  std::size_t active_parameters = 0;                 // of them, those that a token meets
  std::vector<std::pair<Term, std::size_t>> memory;  // bytes a rank, by term
  std::size_t total_bytes = 0;                       // what the run allocates on this rank's device
  std::size_t largest_bytes = 0;                     // the most of any rank
  std::size_t device_bytes = 0;                      // free on this device now
  std::size_t checkpoint_bytes = 0;
  std::int64_t steps = 0;      // 0: not known before the data are opened
  RowContents contents;        // of the data
  double tokens = 0;           // of all steps
  double flops_per_token = 0;  // forward and backward
  /// Tokens a second of all ranks, and where the figure is from.
  std::optional<std::pair<double, std::string>> rate;
  bool measured = false;  // the rate, by an earlier run
};

/// Walks the run's own construction with a measuring arena. Resolves per_rank = 0 to the largest
/// micro-batch that fits (a divisor of global / ranks where global is given). Collective: the ranks
/// agree.
Plan make_plan(const deck::Deck& deck, const comm::Mesh& mesh, const PlannedDevice& device = {});

/// The same without a rate: nothing of the last run is read. Collective.
Plan plan_memory(const deck::Deck& deck, const comm::Mesh& mesh, const PlannedDevice& device = {});

/// What depends on the data, once these are known: the steps of a deck that counts epochs over
/// `rows` of them (0: not known), their tokens, and of a rate that is no measured one the estimate.
/// UserError where the deck's schedule contradicts the steps.
void set_data(Plan& plan, const comm::Extents& ranks, std::size_t rows,
              const RowContents& contents);

/// Those of `parameters` that a token meets: all but the experts that it is not sent to.
std::size_t active_parameters(const deck::Model& model, std::size_t parameters);

/// Forward and backward FLOPs of a token: 6 an active parameter that multiplies (embedding look-up
/// not counted unless tied) plus 12 layers x (heads x head_dim) x context for attention, as PaLM
/// (appendix B) and the usual MFU figures count, causal or not. Blocks count for each pass that a
/// recursive model makes over them, the head for each answer; recomputation does not count.
double flops_per_token(const deck::Deck& deck, std::size_t parameters);

/// Peak of one device in TFLOP/s at the deck's precision: &cost peak_tflops, or that of a known
/// GPU; nothing on other devices.
std::optional<double> peak_tflops(const deck::Deck& deck, const PlannedDevice& device = {});

/// The plan as a table for people.
std::string table(const Plan& plan, const comm::Extents& ranks);

/// The same in two lines, for those who have seen the table.
std::string summary(const Plan& plan, const comm::Extents& ranks);

}  // namespace tern::plan
