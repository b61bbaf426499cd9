/// Tasks other than training: use of trained weights.
#pragma once
#include "base/log.hpp"
#include "campaign/campaign.hpp"
#include "plan/plan.hpp"

namespace tern::campaign {

/// The deck with one data rank and one sequence, for generation and export.
deck::Deck of_one_sequence(deck::Deck deck);

/// task = 'evaluate': validation loss of a checkpoint. Collective.
template <class T>
int evaluate_weights(const plan::Plan& plan, const comm::Mesh& mesh, Log& log);

/// task = 'generate': continuations of a prompt, printed by rank 0. Collective over one replica.
template <class T>
void generate_text(const plan::Plan& plan, const comm::Mesh& replica, Log& log);

/// --export: writes the weights as a Transformers directory. Rank 0 works on the host, the others
/// wait. Collective.
int export_model(const deck::Deck& deck, const std::string& directory, comm::Group& group,
                 Log& log);

}  // namespace tern::campaign
