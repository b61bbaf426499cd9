// safetensors files: compared with the Python package both ways, and malformed ones.
#include "transformers/safetensors.hpp"

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/shape.hpp"
#include "python.hpp"
#include "scratch.hpp"

namespace tern::transformers {
namespace {

namespace fs = std::filesystem;
using test::names_in;
using test::Outcome;
using test::read_file;
using test::run_python;
using test::Scratch;
using test::write_file;

const std::vector<std::pair<std::string, std::vector<std::size_t>>> shapes{
    {"matrix", {3, 5}}, {"vector", {7}}, {"scalar", {}}, {"empty", {0, 4}}, {"cube", {2, 3, 4}}};

std::vector<float> values_for(const std::vector<std::size_t>& shape) {
  std::vector<float> values(element_count(shape));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 64) * 0.25f - 4.0f;
  return values;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + std::string(data_bytes, '\1');
}

TEST(Safetensors, ReadsWhatThePackageWrites) {
  const Scratch folder;
  const fs::path file = folder.path() / "model.safetensors";
  const Outcome python = run_python("transformers/check_safetensors.py", {"write", file.string()});
  ASSERT_EQ(python.status, 0) << python.text;
  const SafetensorsReader reader(folder.path());
  for (const auto& [name, shape] : shapes)
    for (const char* dtype : {"float16", "float32", "float64"}) {
      const std::string full = name + "." + dtype;
      ASSERT_TRUE(reader.has(full)) << full;
      EXPECT_EQ(reader.shape(full), shape) << full;
      EXPECT_EQ(reader.read(full), values_for(shape)) << full;
    }
  EXPECT_EQ(reader.names().size(), 15u + 3u);
  EXPECT_THROW(reader.read("integers"), UserError);
  EXPECT_THROW(reader.read("none"), UserError);
  // Every half-precision number, infinities, denormals and NaNs among them.
  const auto read = reader.read("all_halves"), expected = reader.read("all_halves.as_float32");
  for (std::size_t i = 0; i < 65536; ++i) {
    EXPECT_EQ(std::isnan(read[i]), std::isnan(expected[i])) << i;
    if (std::isnan(expected[i])) continue;
    EXPECT_EQ(std::memcmp(&read[i], &expected[i], sizeof(float)), 0) << i;
  }
}

TEST(Safetensors, WritesWhatThePackageReads) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Scratch folder;
    const fs::path file = folder.path() / "ours.safetensors";
    std::vector<std::vector<float>> values;
    for (const auto& [name, shape] : shapes) values.push_back(values_for(shape));
    std::vector<NamedArray> arrays;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      arrays.push_back({shapes[i].first, shapes[i].second, values[i].data()});
    write_safetensors(file, arrays, dtype, {{"format", "pt"}, {"größe", "\"klein\""}});
    EXPECT_EQ(names_in(folder).size(), 1u);
    const Outcome python =
        run_python("transformers/check_safetensors.py",
                   {"read", file.string(), dtype == Dtype::f32 ? "f32" : "bf16"});
    EXPECT_EQ(python.status, 0) << python.text;
    const SafetensorsReader reader(file);
    for (std::size_t i = 0; i < shapes.size(); ++i)
      EXPECT_EQ(reader.read(shapes[i].first), values[i]);
  }
}

TEST(Safetensors, FollowsTheIndex) {
  const Scratch folder;
  const float one[] = {1, 2}, two[] = {3};
  write_safetensors(folder.path() / "a.safetensors", {{"x", {2}, one}, {"unlisted", {1}, two}},
                    Dtype::f32);
  write_safetensors(folder.path() / "b.safetensors", {{"y", {1}, two}}, Dtype::f32);
  const fs::path index = folder.path() / "model.safetensors.index.json";
  write_file(index,
             R"({"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "b.safetensors"}})");
  const SafetensorsReader reader(folder.path());
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(reader.read("x"), (std::vector<float>{1, 2}));
  EXPECT_EQ(reader.read("y"), (std::vector<float>{3}));
  for (const char* broken :
       {R"({"weight_map": {"x": "none.safetensors"}})", R"({"weight_map": {"z": "a.safetensors"}})",
        R"({"weight_map": {"x": "../a.safetensors"}})", R"({"weight_map": {"x": 3}})",
        R"({"weight_map": [1]})", "[]", "", "{"}) {
    write_file(index, broken);
    EXPECT_THROW(SafetensorsReader{folder.path()}, UserError) << broken;
  }
}

TEST(Safetensors, RefusesMalformedHeaders) {
  const Scratch folder;
  const fs::path file = folder.path() / "model.safetensors";
  const auto refused = [&](const std::string& text) {
    write_file(file, text);
    EXPECT_THROW(SafetensorsReader{file}, UserError) << text;
  };
  const auto header_refused = [&](const std::string& header, std::size_t bytes) {
    refused(file_of(header, bytes));
  };
  refused("");
  refused("1234567");
  refused(std::string(8, '\xff'));         // a header of 2^64 - 1 bytes
  refused(file_of("{}", 0).substr(0, 9));  // truncated header
  header_refused("", 0);
  header_refused("{", 0);
  header_refused("[]", 0);
  header_refused("3", 0);
  header_refused("{}", 1);  // data that no tensor owns
  header_refused(std::string(200'000, '['), 0);
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  write_file(file, file_of(good, 8));
  EXPECT_EQ(SafetensorsReader(file).names().size(), 1u);
  header_refused(good, 7);
  header_refused(good, 9);
  for (const char* entry :
       {R"(3)", R"({})", R"({"dtype":"F32","shape":[2]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[0,8,8]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[0,8.0]})",
        R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})",
        R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})",
        R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})",
        R"({"dtype":"F4","shape":[1],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]})",  // 2^62 + 2
        R"({"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551616]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,0]})"})
    header_refused(fmt::format(R"({{"a":{}}})", entry), 8);
  const char* pair = R"({{"a":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}},)"
                     R"("{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}}}})";
  write_file(file, file_of(fmt::format(fmt::runtime(pair), 4, 8, "b", 0, 4), 8));
  EXPECT_EQ(SafetensorsReader(file).names().size(), 2u);
  header_refused(fmt::format(fmt::runtime(pair), 0, 4, "b", 0, 4), 8);    // the same bytes
  header_refused(fmt::format(fmt::runtime(pair), 0, 4, "b", 2, 6), 8);    // overlap
  header_refused(fmt::format(fmt::runtime(pair), 0, 4, "b", 8, 12), 12);  // a hole
  header_refused(fmt::format(fmt::runtime(pair), 0, 4, "a", 4, 8), 8);    // one name twice
}

TEST(Safetensors, SurvivesMutatedHeaders) {
  const Scratch folder;
  const fs::path file = folder.path() / "model.safetensors";
  const float data[] = {1, 2, 3, 4, 5, 6};
  write_safetensors(file, {{"a", {2}, data}, {"b", {2, 2}, data}}, Dtype::f32, {{"format", "pt"}});
  const std::string good = read_file(file);
  int refused = 0, read = 0;
  for (std::uint32_t i = 0; i < 600; ++i) {
    std::string text = good;
    const Random4 random = philox(3, Stream::test, i, 0, 0);
    const auto& word = random.word;
    for (std::uint32_t change = 0; change <= word[0] % 3; ++change)
      text[word[1 + change] % (text.size() - 24)] = static_cast<char>(word[3] >> 8 * change);
    write_file(file, text);
    try {
      const SafetensorsReader reader(file);
      for (const auto& name : reader.names()) EXPECT_LE(reader.read(name).size(), 6u);
      ++read;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_EQ(refused + read, 600);
}

TEST(Safetensors, NamesTheFileThatCannotBeWritten) {
  const Scratch folder;
  const float one = 1;
  try {
    write_safetensors(folder.path() / "none" / "x.safetensors", {{"a", {1}, &one}}, Dtype::f32);
    FAIL() << "written into a folder that does not exist";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("none/x.safetensors"), std::string::npos);
  }
}

}  // namespace
}  // namespace tern::transformers
