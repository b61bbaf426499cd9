/// Memory, time and cost of a deck before it runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/mesh.hpp"
#include "data/step_rows.hpp"
#include "deck/deck.hpp"
#include "memory/arena.hpp"
#include "plan/devices.hpp"
#include "plan/row_contents.hpp"
#include "workload/workload.hpp"

namespace tern::plan {

struct Plan {
  PlannedDevice device;                              // this rank's or imagined
  deck::Deck deck;                                   // resolved: its batch is the layout's
  workload::Layout layout;                           // rows of a step over the ranks
  std::size_t parameters = 0;                        // whole model
  std::size_t active_parameters = 0;                 // those used per token
  std::vector<std::pair<Term, std::size_t>> memory;  // bytes per rank, by term
  std::size_t total_bytes = 0;                       // what the run allocates on this rank's device
  std::size_t exchange_bytes = 0;                    // what NCCL allocates there, about
  std::size_t largest_bytes = 0;                     // of both, maximum over ranks
  std::size_t device_bytes = 0;                      // free on this device now
  std::size_t driver_bytes = 0;  // taken on it now: of a GPU, by driver and libraries
  std::size_t checkpoint_bytes = 0;
  std::int64_t steps = 0;      // 0: unknown until the data are opened
  data::SetSize data;          // training data; not known until they are opened
  RowContents contents;        // means of the data's rows
  double tokens = 0;           // over all steps
  double flops_per_token = 0;  // forward and backward
  /// Tokens/s over all ranks, and the source of the figure.
  std::optional<std::pair<double, std::string>> rate;
  bool measured = false;  // rate is of an earlier run

  std::size_t bytes() const { return total_bytes + exchange_bytes; }
};

/// Runs the construction of the run with a measuring arena. Resolves per_rank = 0 to the largest
/// micro-batch that fits (a divisor of global / ranks where global is given), the same on all
/// ranks. `data`: size of the training data, on which the layout depends if &batch unit =
/// 'samples'. Collective.
Plan make_plan(const deck::Deck& deck, const comm::Mesh& mesh, const PlannedDevice& device = {},
               const data::SetSize& data = {});

/// make_plan without a rate: nothing of an earlier run is read. Collective.
Plan plan_memory(const deck::Deck& deck, const comm::Mesh& mesh, const PlannedDevice& device = {},
                 const data::SetSize& data = {});

/// Completes the plan once the data, of `size`, are open: steps of a deck that counts epochs,
/// tokens, and the estimated rate unless a measured one is there. Throws UserError if the deck's
/// schedule contradicts the steps.
void set_data(Plan& plan, const comm::Extents& ranks, const data::SetSize& size,
              const RowContents& contents);

/// Parameters used per token: all of `parameters` except experts the token is not routed to.
std::size_t active_parameters(const deck::Model& model, std::size_t parameters);

/// Forward and backward FLOPs per token: 6 per active parameter that multiplies (embedding look-up
/// not counted unless tied) plus 12 layers x (heads x head_dim) x context for attention, causal or
/// not, as in PaLM (appendix B) and the usual MFU figures. Blocks count once per pass of a
/// recursive model, the head once per answer; recomputation does not count.
double flops_per_token(const deck::Deck& deck, std::size_t parameters);

/// Peak TFLOP/s per device at the deck's precision: &cost peak_tflops, or that of a known GPU;
/// nothing on other devices.
std::optional<double> peak_tflops(const deck::Deck& deck, const PlannedDevice& device = {});

/// The plan as a printable table.
std::string table(const Plan& plan, const comm::Extents& ranks);

/// The plan in two lines, printed on resume.
std::string summary(const Plan& plan, const comm::Extents& ranks);

}  // namespace tern::plan
