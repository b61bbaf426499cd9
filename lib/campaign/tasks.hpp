/// The tasks beside training: what is done with trained weights.
#pragma once
#include "base/log.hpp"
#include "campaign/campaign.hpp"
#include "plan/plan.hpp"

namespace tern::campaign {

/// The deck of a generation or an export: one data rank, one sequence.
deck::Deck of_one_sequence(deck::Deck deck);

/// task = 'evaluate': the validation loss of a checkpoint. Collective.
template <class T>
int evaluate_weights(const plan::Plan& plan, const comm::Mesh& mesh, Log& log);

/// task = 'generate': continuations of a prompt, printed by rank 0. Collective over one replica.
template <class T>
void generate_text(const plan::Plan& plan, const comm::Mesh& replica, Log& log);

/// --export: the weights as a Transformers directory. Rank 0 works, on the host; the others wait.
int export_model(const deck::Deck& deck, const std::string& directory, comm::Group& group,
                 Log& log);

}  // namespace tern::campaign
