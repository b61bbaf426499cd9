// Checkpoints as users open them: h5py and h5dump.
#include "checkpoint/fixture.hpp"
#include "python.hpp"

namespace tern::checkpoint::testing {
namespace {

using test::Outcome;
using test::run_python;
using test::run_shell;

class Tools : public ::testing::TestWithParam<int> {
 protected:
  Tools() {
    Log log;
    std::vector<std::unique_ptr<Store>> stores;
    const auto values = values_of(tensors_, 10);
    for (int rank = 0; rank < GetParam(); ++rank) {
      stores.push_back(std::make_unique<Store>(folder_.path(), rank, GetParam(), 2, log, 30.0));
      save(*stores.back(), header_of(10), tensors_,
           GetParam() == 2 ? columns_of(tensors_, values, rank, 2)
                           : pieces_of(values, rank, GetParam()));
    }
    for (auto& store : stores) EXPECT_TRUE(store->wait());
  }

  std::string file() const { return (folder_.path() / "step_00000010" / "checkpoint.h5").string(); }

  const std::vector<Tensor> tensors_ = sample_tensors();
  Scratch folder_;
};

TEST_P(Tools, H5pyReadsIt) {
  const Scratch expected;
  const auto values = values_of(tensors_, 10);
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    std::string name = tensors_[t].path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    write_file(expected.path() / name,
               {reinterpret_cast<const char*>(values[t].data()), values[t].size() * sizeof(float)});
  }
  const Outcome python =
      run_python("checkpoint/check_hdf5.py",
                 {file(), "10", GetParam() == 1 ? "plain" : "virtual", expected.path().string()});
  EXPECT_EQ(python.status, 0) << python.text;
}

TEST_P(Tools, H5dumpListsIt) {
  const Outcome list = run_shell("h5dump -n '" + file() + "'");
  ASSERT_EQ(list.status, 0) << list.text;
  for (const Tensor& tensor : tensors_)
    EXPECT_NE(list.text.find(tensor.path + "\n"), std::string::npos) << tensor.path << "\n"
                                                                     << list.text;
  const Outcome header = run_shell("h5dump -p -A -d /model/norm/weight '" + file() + "'");
  EXPECT_EQ(header.status, 0) << header.text;
  EXPECT_NE(header.text.find(GetParam() == 1 ? "CHECKSUM FLETCHER32" : "VIRTUAL"),
            std::string::npos)
      << header.text;
  EXPECT_NE(header.text.find("( 97 )"), std::string::npos) << header.text;
  const Outcome data = run_shell("h5dump -d /model/norm/weight -m '%.9g' '" + file() + "'");
  EXPECT_EQ(data.status, 0) << data.text;
  EXPECT_NE(data.text.find(fmt::format("(96): {:.9g}", value_at(10, 2, 96))), std::string::npos)
      << data.text;
}

INSTANTIATE_TEST_SUITE_P(Ranks, Tools, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace tern::checkpoint::testing
