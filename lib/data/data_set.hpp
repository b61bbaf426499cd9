/// An opened data set of &data train or valid.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/samples.hpp"
#include "data/source.hpp"
#include "data/step_rows.hpp"

namespace tern::data {

struct DataSet {
  std::unique_ptr<Shards> shards;  // that the source reads; null: samples
  std::unique_ptr<Source> source;
  std::vector<Sample> problems;  // to solve in evaluations, in the order of their files
  double fill = 1;               // fraction of positions that hold samples
  SetSize size;         // rows, and samples or conversations in them (token shards: windows)
  std::string summary;  // "9.6 M tokens", "7,473 samples in 2,510 rows, 98.2% filled, ..."
};

}  // namespace tern::data
