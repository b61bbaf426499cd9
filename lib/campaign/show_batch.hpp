/// --show-batch: what training learns, token by token.
#pragma once
#include "base/log.hpp"
#include "campaign/data_set.hpp"
#include "plan/plan.hpp"

namespace tern::campaign {

/// Rows of the first micro-batch of rank 0 of `ranks` (data::Source::show).
std::string first_rows(const plan::Plan& plan, const data::DataSet& train,
                       const text::Tokenizer& tokenizer, int ranks);

/// Opens &data train and logs its first rows. Rank 0 works, the others wait. Throws UserError if
/// the objective has no rows to show. Collective.
int show_batch(const plan::Plan& plan, comm::Group& group, Log& log);

}  // namespace tern::campaign
