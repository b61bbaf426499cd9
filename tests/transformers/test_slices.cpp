// Parts of tensors, read by several threads, and models in shards.
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/shape.hpp"
#include "base/types.hpp"
#include "python.hpp"
#include "scratch.hpp"
#include "transformers/safetensors.hpp"

namespace tern::transformers {
namespace {

namespace fs = std::filesystem;
using test::names_in;
using test::Outcome;
using test::read_file;
using test::run_python;
using test::Scratch;
using test::write_file;

/// Numbers that bfloat16 holds exactly, all different within a row.
float value_at(std::size_t row, std::size_t column) {
  return static_cast<float>(column % 251) + 256.0f * static_cast<float>(row % 2) - 128.0f;
}

std::vector<float> matrix(std::size_t rows, std::size_t columns) {
  std::vector<float> values;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) values.push_back(float(bf16(value_at(r, c))));
  return values;
}

template <class V>
void expect_part(const SafetensorsReader& reader, const std::vector<float>& whole,
                 std::size_t width, const Part& part) {
  std::vector<V> got(part.rows * part.columns + 1, V(-7));
  reader.read("x", part, got.data());
  for (std::size_t r = 0; r < part.rows; ++r)
    for (std::size_t c = 0; c < part.columns; ++c)
      ASSERT_EQ(static_cast<float>(got[r * part.columns + c]),
                whole[(part.row + r) * width + part.column + c])
          << part.row << " " << part.rows << " " << part.column << " " << part.columns;
  EXPECT_EQ(static_cast<float>(got.back()), -7) << "written beyond the part";
}

/// Narrow rows (gathered from whole ones), and rows larger than a chunk (read one by one).
TEST(Parts, AreThoseOfTheWholeTensor) {
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{70'000, 37}, {3, 1'300'000}, {40, 40'000}})
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      const Scratch folder;
      const std::vector<float> whole = matrix(rows, columns);
      write_safetensors(folder.path() / "model.safetensors", {{"x", {rows, columns}, whole.data()}},
                        dtype);
      const SafetensorsReader reader(folder.path());
      for (const Part& part : {Part{0, rows, 0, columns}, Part{1, rows - 2, 0, columns},
                               Part{0, rows, 5, 11}, Part{rows / 2, 1, columns - 20, 20},
                               Part{1, 2, 3, columns - 7}, Part{rows, 0, 0, columns}}) {
        expect_part<float>(reader, whole, columns, part);
        expect_part<bf16>(reader, whole, columns, part);
      }
      EXPECT_THROW(expect_part<float>(reader, whole, columns, {1, rows, 0, columns}),
                   InternalError);
      EXPECT_THROW(expect_part<float>(reader, whole, columns, {0, 1, 1, columns}), InternalError);
    }
}

TEST(Parts, AreReadByManyThreads) {
  const Scratch folder;
  const std::size_t rows = 4000, columns = 129;
  const std::vector<float> whole = matrix(rows, columns);
  write_safetensors(folder.path() / "model.safetensors", {{"x", {rows, columns}, whole.data()}},
                    Dtype::bf16);
  const SafetensorsReader reader(folder.path());
  std::vector<float> got(whole.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t row = t * 10; row < rows; row += 80)
        reader.read("x", {row, 10, 0, columns}, got.data() + row * columns);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, whole);
}

TEST(Parts, OfAFileThatGotShorterAreAnError) {
  const Scratch folder;
  const fs::path file = folder.path() / "model.safetensors";
  const std::vector<float> whole = matrix(100, 10);
  write_safetensors(file, {{"x", {100, 10}, whole.data()}}, Dtype::f32);
  const SafetensorsReader reader(folder.path());
  fs::resize_file(file, fs::file_size(file) - 4);
  std::vector<float> got(10);
  reader.read("x", {98, 1, 0, 10}, got.data());
  EXPECT_THROW(reader.read("x", {99, 1, 0, 10}, got.data()), UserError);
}

std::vector<StreamedArray> three_tensors(std::vector<std::size_t>& asked) {
  std::vector<StreamedArray> arrays;
  for (const char* name : {"a", "b", "c"})
    arrays.push_back({name,
                      {100, 5},
                      name[0] == 'b' ? Dtype::f32 : Dtype::bf16,
                      [&asked](std::size_t first, std::size_t count, float* to) {
                        asked.push_back(count);
                        for (std::size_t i = 0; i < count; ++i)
                          to[i] = static_cast<float>((first + i) % 200);
                      }});
  return arrays;  // 1000, 2000 and 1000 bytes
}

TEST(Shards, HoldAsManyTensorsAsTheyMay) {
  for (const auto& [limit, files] :
       {std::pair<std::size_t, std::size_t>{4000, 1}, {3999, 2}, {2999, 3}, {1, 3}}) {
    const Scratch folder;
    std::vector<std::size_t> asked;
    write_model(folder.path(), three_tensors(asked), limit);
    EXPECT_EQ(names_in(folder).size(), files == 1 ? 1 : files + 1) << limit;
    if (files > 1) {
      const auto index =
          nlohmann::json::parse(read_file(folder.path() / "model.safetensors.index.json"));
      EXPECT_EQ(index["metadata"]["total_size"], 4000);
      EXPECT_EQ(index["weight_map"]["c"],
                fmt::format("model-{:05}-of-{:05}.safetensors", files, files));
    }
    const SafetensorsReader reader(folder.path());
    EXPECT_EQ(reader.names(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(reader.dtype("a"), "BF16");
    EXPECT_EQ(reader.dtype("b"), "F32");
    for (const char* name : {"a", "b", "c"}) {
      const std::vector<float> values = reader.read(name);
      ASSERT_EQ(values.size(), 500u);
      EXPECT_EQ(values[450], 50);
    }
    EXPECT_LE(reader.position("a"), reader.position("c"));
  }
}

TEST(Shards, ReplaceThoseOfAnEarlierExport) {
  const Scratch folder;
  std::vector<std::size_t> asked;
  write_file(folder.path() / "tokenizer.json", "{}");
  write_model(folder.path(), three_tensors(asked), 1);
  write_model(folder.path(), three_tensors(asked), 5000);
  EXPECT_EQ(names_in(folder).size(), 2u);
  write_model(folder.path(), three_tensors(asked), 3000);
  EXPECT_EQ(names_in(folder).size(), 4u);
  EXPECT_EQ(SafetensorsReader(folder.path()).names().size(), 3u);
}

}  // namespace
}  // namespace tern::transformers
