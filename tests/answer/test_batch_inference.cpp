// Answers to a file of requests, with an engine of known output: order, kill, resume, ranks,
// refusals.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "answer/answer_scores.hpp"
#include "answer/batch_inference.hpp"
#include "answer/interval.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "scratch.hpp"
#include "weights/identity.hpp"

namespace tern::answer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Some of these do not match the pattern below.
std::string code_of(const std::string& prompt) {
  std::uint32_t hash = 7;
  for (const char c : prompt) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return fmt::format("{:03x}", hash >> 20);
}

/// Answers as a function of the request only, in an order that depends on `disorder`, some in the
/// same pass. Tokens are bytes.
class KnownResponder final : public AnyEngine {
 public:
  KnownResponder(generate::EngineOptions options, std::int64_t seed, std::uint32_t disorder)
      : options_(std::move(options)), seed_(seed), random_(disorder) {}

  void submit(generate::Request request) override { waiting_.push_back(std::move(request)); }
  bool busy() const override { return !waiting_.empty(); }
  generate::Stats stats() const override {
    generate::Stats f = stats_;
    f.waiting = waiting_.size();
    return f;
  }

  std::vector<generate::Answer> step(const std::function<void()>& meanwhile) override {
    meanwhile();
    std::vector<generate::Answer> answers;
    for (std::size_t count = random_() % 3; count > 0 && !waiting_.empty(); --count) {
      const std::size_t at = random_() % waiting_.size();
      answers.push_back(answer(waiting_[at]));
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return answers;
  }

 private:
  generate::Answer answer(const generate::Request& request) {
    using generate::FinishReason;
    stats_.computed_tokens += request.prompt.size();
    stats_.new_tokens += 4;
    const std::string prompt(request.prompt.begin(), request.prompt.end());
    if (prompt.find("endless") != prompt.npos)
      return {request.id, {}, FinishReason::refused, "too long"};
    generate::Answer made{request.id, {}, FinishReason::length, ""};
    const std::string text = fmt::format("is {}; seed {}##", code_of(prompt), seed_);
    for (const char c : text) {
      if (made.tokens.size() == request.max_new) return made;
      made.tokens.push_back(static_cast<unsigned char>(c));
      if (!options_.stopped || !options_.stopped(made.tokens)) continue;
      made.finish_reason = FinishReason::stop;
      return made;
    }
    made.finish_reason = FinishReason::stop;
    return made;
  }

  generate::EngineOptions options_;
  std::int64_t seed_;
  std::mt19937 random_;
  std::vector<generate::Request> waiting_;
  generate::Stats stats_;
};

class BatchInferenceTest : public ::testing::Test {
 protected:
  BatchInferenceTest()
      : mesh_(of_replicas()), group_(&mesh_.world()), tokenizer_(text::open_tokenizer("bytes")) {
    std::string path = folder_.path().string();
    path.resize(4096);
    group_->broadcast(path.data(), path.size(), 0);
    shared_ = path.c_str();
    if (group_->rank() == 0) {
      std::ofstream input(shared_ / "in.jsonl");
      for (int i = 0; i < 60; ++i)
        input << json{{"text", fmt::format("request {}{}", i, i % 17 == 3 ? " endless" : "")},
                      {"id", fmt::format("r{}", i)},
                      {"label", i % 2}}
                     .dump()
              << "\n";
      std::ofstream(shared_ / "prompt.txt") << "Say what {text} is: {text}\n";
    }
    group_->barrier();
    deck_.generation.input = (shared_ / "in.jsonl").string();
    deck_.generation.prompt_template = (shared_ / "prompt.txt").string();
    deck_.generation.pattern = "^is ([0-8a-f]{3});";
    deck_.generation.stop = {"##", ";;"};
    deck_.generation.max_tokens = 64;
    deck_.generation.batch = 5;
    deck_.campaign.task = "generate";
    use("run");
  }

  /// The folder is rank 0's, and is removed with its test.
  void TearDown() override { group_->barrier(); }

  static comm::Mesh of_replicas() {
    auto world = comm::world();
    comm::Extents extents;
    extents.data = world->size();
    return comm::Mesh(std::move(world), extents);
  }

  void use(const std::string& name) { deck_.output.directory = (shared_ / name).string(); }

  /// Runs to the end, or for `passes` passes; the finished answers are on rank 0.
  std::optional<BatchInference::Done> run(const comm::Mesh& mesh, const job::Options& options = {},
                                          std::uint32_t disorder = 1, int passes = 1 << 30,
                                          const fs::path& said = {}) {
    Log log;
    if (!said.empty()) log.open(said);
    comm::Group& group = mesh.world();
    BatchInference inference(deck_, "weights", options, *tokenizer_, mesh, log);
    generate::EngineOptions engine;
    inference.complete(engine);
    KnownResponder any_engine(engine, deck_.campaign.seed,
                              disorder + static_cast<std::uint32_t>(group.rank()));
    const bool whole = inference.run(any_engine, [&] { return --passes < 0; });
    if (group.any(!whole)) return std::nullopt;
    return inference.finish();
  }

  std::string file(const std::string& name) const {
    return test::read_file(fs::path(deck_.output.directory) / name);
  }
  std::pair<std::string, std::string> files() const {
    return {file("answers.jsonl"), file("answers_rejects.jsonl")};
  }

  test::Scratch folder_;
  fs::path shared_;
  comm::Mesh mesh_;
  comm::Group* group_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  deck::Deck deck_;
};

job::Options with(bool job::Options::*option) {
  job::Options options;
  options.*option = true;
  return options;
}
const job::Options resume = with(&job::Options::resume), fresh = with(&job::Options::fresh);

std::vector<json> lines(const std::string& text) {
  std::vector<json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

/// The files equal those of one rank, whatever the number of ranks and the order of their answers.
TEST_F(BatchInferenceTest, FilesDoNotDependOnRanks) {
  run(mesh_);
  const auto many = files();
  if (group_->rank() == 0) {
    const auto alone = comm::single_rank_mesh();
    use("alone");
    run(*alone, {}, 99);
    EXPECT_EQ(files(), many);
    const auto answers = lines(many.first), rejects = lines(many.second);
    EXPECT_EQ(answers.size() + rejects.size(), 60u);
    EXPECT_GT(answers.size(), 30u);
    EXPECT_GT(rejects.size(), 4u);
    const std::string code = code_of("Say what request 0 is: request 0");
    EXPECT_EQ(answers.front(),
              json::parse(R"({"messages": [{"role": "user", "content": "request 0"},
                {"role": "assistant", "content": ")" +
                          code + R"("}], "id": "r0", "label": 0, "finish_reason": "stop"})"));
    const auto refused = std::find_if(rejects.begin(), rejects.end(),
                                      [](const json& r) { return r.at("reject") == "refused"; });
    ASSERT_NE(refused, rejects.end());
    EXPECT_EQ(*refused,
              json::parse(R"({"id": "r3", "label": 1, "text": "request 3 endless", "written": "",
                "reject": "refused", "reason": "too long"})"));
    int rising = -1;
    for (const json& reject : rejects) {
      const int own = std::stoi(reject.at("id").get<std::string>().substr(1));
      EXPECT_GT(own, rising);
      rising = own;
    }
    int number = -1;
    for (const json& answer : answers) {
      const int own = std::stoi(answer.at("id").get<std::string>().substr(1));
      EXPECT_GT(own, number);
      number = own;
    }
    const json summary = json::parse(file("generation.json"));
    EXPECT_EQ(summary.at("requests"), 60);
    EXPECT_EQ(summary.at("good"), answers.size());
    EXPECT_EQ(summary.at("rejects").at("refused"), 4);
    EXPECT_EQ(summary.at("rejects").at("pattern"), rejects.size() - 4);
  }
  group_->barrier();
}

/// A kill leaves any prefix of what was appended. Runs resumed from it give the same files.
TEST_F(BatchInferenceTest, ResumesFromAnyBeginningOfItsParts) {
  run(mesh_);
  const auto whole = files();
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    use(fmt::format("killed{}", round));
    ASSERT_FALSE(run(mesh_, {}, random(), static_cast<int>(random() % 30)).has_value());
    const fs::path part =
        shared_ / fmt::format("killed{}/parts/replica_{:04d}.jsonl", round, group_->rank());
    const auto cut = random();
    fs::resize_file(part, cut % (fs::file_size(part) + 1));
    group_->barrier();
    if (round % 2 == 0) run(mesh_, resume, random(), static_cast<int>(random() % 10));
    if (round % 3 == 0 && group_->rank() == 0) run(*comm::single_rank_mesh(), resume, random());
    group_->barrier();
    run(mesh_, resume, random());
    ASSERT_EQ(files(), whole) << "round " << round;
    group_->barrier();
  }
}

/// However a disk damages a line, the line is named and answered again, and the files are the same.
TEST_F(BatchInferenceTest, DamagedLinesAreNamedAndDoneAgain) {
  const auto alone = comm::single_rank_mesh();
  use(fmt::format("sound{}", group_->rank()));
  run(*alone);
  const auto whole = files();
  const std::string sound = file("parts/replica_0000.jsonl");
  std::mt19937 random(9);
  use(fmt::format("damaged{}", group_->rank()));
  for (int round = 0; round < 40; ++round) {
    const std::size_t at = random() % (sound.size() - 1);  // but for the last line's end
    std::string damaged = sound;
    if (round % 4 == 3)
      damaged.erase(at, 1 + random() % 7);
    else
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    const fs::path folder = deck_.output.directory, said = folder / "said.txt";
    fs::remove_all(folder);
    fs::create_directories(folder / "parts");
    std::ofstream(folder / "parts/replica_0000.jsonl", std::ios::binary) << damaged;
    ASSERT_TRUE(run(*alone, resume, 1, 1 << 30, said).has_value());
    ASSERT_EQ(files(), whole) << "round " << round << ", byte " << at;
    const auto line =
        1 + std::count(damaged.begin(), damaged.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    EXPECT_NE(test::read_file(said).find(fmt::format("replica_0000.jsonl:{}: ", line)),
              std::string::npos)
        << "byte " << at << "\n"
        << test::read_file(said);
  }
}

/// Lines as a faulty program would write them: complete, but without required members.
TEST_F(BatchInferenceTest, LinesThatLackMembersAreDoneAgain) {
  const auto alone = comm::single_rank_mesh();
  use(fmt::format("lacking{}", group_->rank()));
  run(*alone);
  const auto whole = files();
  const fs::path part = fs::path(deck_.output.directory) / "parts/replica_0000.jsonl";
  auto entries = lines(test::read_file(part));
  for (json& entry : entries) entry.erase("crc");
  entries[1].erase("text");
  entries[2]["n"] = 60;
  entries[3]["n"] = "three";
  entries[4] = json::array();
  std::ofstream out(part);
  out << detail::checked_line(entries[0]);
  for (std::size_t i = 1; i < entries.size(); ++i)
    out << (entries[i].is_object() ? detail::checked_line(entries[i]) : "[]\n");
  out.close();
  const fs::path said = fs::path(deck_.output.directory) / "said.txt";
  run(*alone, resume, 1, 1 << 30, said);
  EXPECT_EQ(files(), whole);
  for (const char* place :
       {"jsonl:2: ", "jsonl:3: request 60 of 60", "jsonl:4: ", "jsonl:5: its checksum"})
    EXPECT_NE(test::read_file(said).find(place), std::string::npos) << place;
}

/// Weights are identified by their contents, not by path or time.
TEST(WeightsIdentity, FollowsContentsNotTimesNorPlaces) {
  const test::Scratch folder;
  const fs::path a = folder.path() / "a", b = folder.path() / "b";
  fs::create_directories(a / "below");
  std::string large(5 << 20, 'x');
  std::ofstream(a / "model.safetensors") << large;
  std::ofstream(a / "below/shard.h5") << "small";
  std::ofstream(a / "tokenizer.json") << "{}";
  const std::string before = weights::weights_identity(a);
  fs::copy(a, b, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(b))
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(48));
  std::ofstream(b / "tokenizer.json") << "{1}";
  EXPECT_EQ(weights::weights_identity(b), before);
  for (const std::size_t at : {std::size_t{0}, large.size() / 2, large.size() - 1}) {
    std::string other = large;  // as training does: changes many weights
    for (std::size_t i = 0; i < 64 << 10; ++i) other[(at + i) % large.size()] = 'y';
    std::ofstream(b / "model.safetensors") << other;
    EXPECT_NE(weights::weights_identity(b), before) << at;
  }
  std::ofstream(b / "model.safetensors") << large;
  EXPECT_EQ(weights::weights_identity(b), before);
  std::ofstream(b / "config.json") << "{}";
  EXPECT_NE(weights::weights_identity(b), before);
}

TEST_F(BatchInferenceTest, AFinishedRunIsNotDoneAgain) {
  run(mesh_);
  const auto whole = files();
  const std::string part = "parts/replica_0000.jsonl", before = file(part);
  group_->barrier();
  run(mesh_, resume);
  EXPECT_EQ(file(part), before);
  EXPECT_EQ(files(), whole);
}

/// Mistakes of a run; only rank 0 finds them, so they are made on one rank here.
TEST_F(BatchInferenceTest, RefusesToMixRuns) {
  const auto alone = comm::single_rank_mesh();
  use(fmt::format("own{}", group_->rank()));
  run(*alone, {}, 1, 20);
  const auto refuses = [&](const job::Options& options, std::initializer_list<std::string> parts) {
    test::expect_user_error([&] { run(*alone, options); }, parts);
  };
  refuses({}, {"parts", "--resume", "--fresh"});
  const deck::Deck right = deck_;
  deck_.generation.temperature = 0.25;
  refuses(resume, {"replica_0000.jsonl", "&generation temperature was 0.8 and is 0.25 now"});
  deck_ = right;
  deck_.campaign.seed = 3;
  refuses(resume, {"&campaign seed was 1337 and is 3"});
  deck_ = right;
  const fs::path other = shared_ / fmt::format("other{}.jsonl", group_->rank());
  std::ofstream(other) << test::read_file(right.generation.input) << "{\"text\": \"more\"}\n";
  deck_.generation.input = other.string();
  refuses(resume, {"the contents of &generation input"});
  deck_ = right;
  EXPECT_TRUE(run(*alone, resume).has_value());
  refuses({}, {"--resume"});
  deck_.generation.pattern = "^is";
  refuses(resume, {"&generation pattern"});
  EXPECT_TRUE(run(*alone, fresh).has_value());
  EXPECT_TRUE(fs::exists(fs::path(deck_.output.directory) / "answers.jsonl.1"));
  EXPECT_TRUE(fs::exists(fs::path(deck_.output.directory) / "parts.1"));
}

TEST_F(BatchInferenceTest, WritesWhereItIsTold) {
  deck_.generation.output = (shared_ / "data/taught/train.jsonl").string();
  run(mesh_);
  if (group_->rank() == 0) {
    EXPECT_EQ(lines(test::read_file(deck_.generation.output)).size() +
                  lines(test::read_file(shared_ / "data/taught/train_rejects.jsonl")).size(),
              60u);
    const auto conversations = text::read_conversations({deck_.generation.output});
    EXPECT_EQ(conversations.front().messages.size(), 2u);
  }
  group_->barrier();
}

/// The student's reader accepts what is written, and learns without a prompt.
TEST_F(BatchInferenceTest, JudgesAgainstLabelsAndAReference) {
  const auto alone = comm::single_rank_mesh();
  use(fmt::format("judged{}", group_->rank()));
  const auto done = run(*alone);
  ASSERT_TRUE(done.has_value());
  const auto requests = read_requests(deck_.generation.input);
  auto labeled = requests;
  const std::string right = done->records[0].text;
  for (auto& request : labeled) request.label = right;
  labeled[1].label = nullptr;
  const fs::path reference = fs::path(deck_.output.directory) / "answers.jsonl";
  AnswerScores scores = judge(labeled, done->records, done->summary, reference);
  EXPECT_EQ(scores.labeled, 59u);
  EXPECT_GE(scores.correct, 1u);
  EXPECT_EQ(scores.good, done->summary.good);
  EXPECT_EQ(scores.compared, scores.good);
  EXPECT_EQ(scores.agreeing, scores.good);
  auto records = done->records;
  records[0].text = "other";
  const AnswerScores less = judge(labeled, records, done->summary, reference);
  EXPECT_EQ(less.agreeing, scores.agreeing - 1);
  EXPECT_EQ(less.correct, scores.correct - 1);

  auto others = requests;
  others[0].text = "another";
  test::expect_user_error([&] { judge(others, records, done->summary, reference); },
                          {"answers.jsonl", "id r0", "another text"});
  for (auto& request : others) request.id = "x" + plain_text(request.id);
  test::expect_user_error([&] { judge(others, records, done->summary, reference); },
                          {"answers none"});

  scores.name = "teacher";
  write_evaluation(scores, deck_.output.directory);
  const AnswerScores read = read_evaluation(deck_.output.directory);
  EXPECT_EQ(read.name, "teacher");
  EXPECT_EQ(read.agreeing, scores.agreeing);
  EXPECT_EQ(read.prompt_tokens_each, scores.prompt_tokens_each);
  EXPECT_EQ(read.labeled, scores.labeled);
  const auto written =
      parse_ordered_json(test::read_file(fs::path(deck_.output.directory) / "evaluation.json"));
  nlohmann::ordered_json expected;
  add_fraction(expected, "exact_match", static_cast<std::int64_t>(scores.correct), 59);
  add_fraction(expected, "agreement", static_cast<std::int64_t>(scores.agreeing),
               static_cast<std::int64_t>(scores.compared));
  for (const auto& [name, value] : expected.items()) EXPECT_EQ(written.at(name), value) << name;
  std::string earlier = written.dump();
  earlier.replace(earlier.find("labeled"), 7, "labelled");
  std::ofstream(fs::path(deck_.output.directory) / "evaluation.json") << earlier;
  EXPECT_EQ(read_evaluation(deck_.output.directory).labeled, scores.labeled);
  const AnswerScores none = read_evaluation(shared_ / "nowhere");
  EXPECT_NE(none.missing.find("nowhere/evaluation.json"), std::string::npos);
  const std::string table = scores_table({scores, none});
  EXPECT_NE(table.find("teacher"), std::string::npos);
  EXPECT_NE(table.find("evaluate that run first"), std::string::npos);
}

}  // namespace
}  // namespace tern::answer
