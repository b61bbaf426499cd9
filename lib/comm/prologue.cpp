#include "comm/prologue.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"

namespace tern::comm {

std::optional<int> launched_rank() {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* value = std::getenv(name);
    if (!value) continue;
    int rank = 0;
    const char* end = value + std::strlen(value);
    const auto [rest, error] = std::from_chars(value, end, rank);
    if (error == std::errc() && rest == end && rank >= 0) return rank;
  }
  return std::nullopt;
}

Prologue::Prologue(const std::function<bool()>& body) {
  const auto failed = [&](int code, const char* text) {
    if (launched_rank()) {
      kept_ = std::current_exception();
      return;
    }
    std::fprintf(stderr, "error: %s\n", printable(text).c_str());
    exit_code_ = code;
  };
  try {
    if (body()) exit_code_ = 0;
  } catch (const UserError& e) {
    failed(1, e.what());
  } catch (const FileError& e) {
    failed(1, e.what());
  } catch (const std::filesystem::filesystem_error& e) {
    failed(1, e.what());
  } catch (const std::exception& e) {
    failed(70, e.what());
  }
}

void Prologue::rethrow() const {
  if (kept_) std::rethrow_exception(kept_);
}

}  // namespace tern::comm
