#include "ops/linear/cuda/detail/algorithm_search.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

#include "base/append_file.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace tern::ops::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int most_proposals = 16;
constexpr int rounds = 3, calls = 6;  // of each proposal, in turns, so that all see the same clock
/// By less, a proposal is not faster than the first.
constexpr float margin = 0.985f;

/// Fills device memory with words of random sign and mantissa, near 1: zeros would draw less power
/// than data does.
void fill(void* data, std::size_t bytes, std::uint16_t keep, std::uint16_t set) {
  std::vector<std::uint16_t> words(std::min<std::size_t>(bytes, 1 << 20) / sizeof(std::uint16_t));
  std::uint32_t state = 2654435761u;
  for (std::uint16_t& word : words) {
    state = state * 1664525u + 1013904223u;
    word = static_cast<std::uint16_t>((state >> 16 & keep) | set);
  }
  std::size_t filled = words.size() * sizeof(std::uint16_t);
  cudaMemcpy(data, words.data(), filled, cudaMemcpyHostToDevice);
  for (char* to = static_cast<char*>(data); filled < bytes; filled *= 2)
    cudaMemcpy(to + filled, to, std::min(filled, bytes - filled), cudaMemcpyDeviceToDevice);
}

/// Device memory for the length of a search; null if there is none.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (cudaMalloc(&data_, bytes) != cudaSuccess) data_ = nullptr, cudaGetLastError();
  }
  ~Scratch() { cudaFree(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

fs::path cache_folder() {
  if (const char* folder = std::getenv("TERN_CACHE")) return folder;
  if (const char* folder = std::getenv("XDG_CACHE_HOME")) return fs::path(folder) / "tern";
  const char* home = std::getenv("HOME");
  return home ? fs::path(home) / ".cache" / "tern" : fs::path();
}

std::string name_of_device() {
  int device = 0;
  cudaDeviceProp properties{};
  cudaGetDevice(&device);
  cudaGetDeviceProperties(&properties, device);
  return fmt::format("{}, cuBLASLt {}", properties.name, cublasLtGetVersion());
}

std::string text_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format(" {:x}", word);
  return text;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_of(const std::string& text) {
  cublasLtMatmulAlgo_t algorithm;
  std::istringstream in(text);
  for (std::uint64_t& word : algorithm.data)
    if (!(in >> std::hex >> word)) return std::nullopt;
  return algorithm;
}

}  // namespace

AlgorithmSearch::Algorithms AlgorithmSearch::proposals(const Product& p, int most) {
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(p.handle, p.operation, p.a, p.b, p.c, p.c, p.preference, most,
                                 found.data(), &count);
  Algorithms algorithms;
  for (int i = 0; i < count; ++i) algorithms.push_back(found[static_cast<std::size_t>(i)].algo);
  return algorithms;
}

/// Index of the fastest; empty without memory to try them in.
std::optional<std::size_t> AlgorithmSearch::fastest(const Product& p,
                                                    const Algorithms& algorithms) const {
  const Scratch a(p.bytes_a), b(p.bytes_b), c(p.bytes_c),
      scale(sizeof(float) * std::max<std::size_t>(4, p.scales));
  if (!a.data() || !b.data() || !c.data() || !scale.data()) return std::nullopt;
  const bool narrow = p.scales > 0;
  const std::uint16_t keep = narrow ? 0x8383 : 0x807f, set = narrow ? 0x3838 : 0x3f00;
  for (const auto& [data, bytes] : {std::pair(a.data(), p.bytes_a), std::pair(b.data(), p.bytes_b)})
    fill(data, bytes, keep, set);
  cudaMemset(c.data(), 0, p.bytes_c);
  cudaMemset(scale.data(), 0, sizeof(float) * std::max<std::size_t>(4, p.scales));
  cudaDeviceSynchronize();
  const void* undo = scale.data();
  if (narrow)
    for (const auto which :
         {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
      cublasLtMatmulDescSetAttribute(p.operation, which, &undo, sizeof undo);
  const float alpha = 1;
  const auto run = [&](const cublasLtMatmulAlgo_t& algorithm) {
    return cublasLtMatmul(p.handle, p.operation, &alpha, a.data(), p.a, b.data(), p.b, &p.beta,
                          c.data(), p.c, c.data(), p.c, &algorithm, p.workspace, p.workspace_bytes,
                          p.stream) == CUBLAS_STATUS_SUCCESS;
  };
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> best(algorithms.size(), std::numeric_limits<float>::infinity());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < algorithms.size(); ++i) {
      if (!run(algorithms[i])) continue;
      cudaEventRecord(begin, p.stream);
      for (int call = 0; call < calls; ++call) run(algorithms[i]);
      cudaEventRecord(end, p.stream);
      cudaEventSynchronize(end);
      float time = 0;
      cudaEventElapsedTime(&time, begin, end);
      best[i] = std::min(best[i], time);
    }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  const auto least =
      static_cast<std::size_t>(std::min_element(best.begin(), best.end()) - best.begin());
  return best[least] < margin * best[0] ? least : 0;
}

std::optional<cublasLtMatmulAlgo_t> AlgorithmSearch::kept(const std::string& key,
                                                          const Algorithms& proposed) const {
  const auto lines = kept_.find(key);
  if (lines == kept_.end()) return std::nullopt;
  for (const cublasLtMatmulAlgo_t& one : lines->second)
    for (const cublasLtMatmulAlgo_t& proposal : proposed)
      if (std::memcmp(one.data, proposal.data, sizeof one.data) == 0) return proposal;
  return std::nullopt;
}

/// Reads the choices for this device and library, in the order of the file.
void AlgorithmSearch::read() {
  kept_.clear();
  std::istringstream in(read_text_or_empty(file_));
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.rfind(" =");
    if (at == std::string::npos || line.compare(0, device_.size(), device_) != 0) continue;
    if (const auto algorithm = algorithm_of(line.substr(at + 2)))
      kept_[line.substr(0, at)].push_back(*algorithm);
  }
}

std::optional<cublasLtMatmulAlgo_t> AlgorithmSearch::choose(const std::string& key,
                                                            const Product& p) {
  const bool searched = searches_ && p.searched;
  if (searched && file_.empty()) {
    device_ = name_of_device();
    file_ = cache_folder() / "products.txt";
    read();
  }
  const Algorithms algorithms = proposals(p, searched ? most_proposals : 1);
  if (algorithms.empty()) return std::nullopt;
  if (!searched || algorithms.size() == 1) return algorithms.front();
  const std::string line = device_ + ": " + key;
  if (const auto found = kept(line, algorithms)) return found;
  const auto best = fastest(p, algorithms);
  if (!best) return algorithms.front();
  try {
    fs::create_directories(file_.parent_path());
    AppendFile(file_).append(line + " =" + text_of(algorithms[*best]) + "\n");
  } catch (const std::exception&) {  // a choice that is not kept would change the next run's bits
    return algorithms.front();
  }
  read();
  return kept(line, algorithms).value_or(algorithms.front());
}

}  // namespace tern::ops::cuda
