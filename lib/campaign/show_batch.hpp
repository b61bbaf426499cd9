/// --show-batch: what supervised training is about to learn, token by token.
#pragma once
#include "base/log.hpp"
#include "campaign/data_set.hpp"
#include "plan/plan.hpp"

namespace tern::campaign {

/// The rows of the first micro-step of rank 0 of `ranks`: of each position its token, text, role,
/// conversation, place in it, and whether it is learned.
std::string first_rows(const plan::Plan& plan, const DataSet& train,
                       const text::Tokenizer& tokenizer, int ranks);

/// Opens &data train and logs them. Rank 0 works, the others wait. Throws UserError if the deck
/// trains on no conversations.
int show_batch(const plan::Plan& plan, comm::Group& group, Log& log);

}  // namespace tern::campaign
