// Compiled for any x86-64 and executed before anything else: the C library only, since an inline
// function of the C++ library may be linked from a source that was compiled for TERN_ARCH.
#include "base/instructions.hpp"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace tern {
namespace {

struct Row {
  const char* name;
  int level;
};

#define TERN_ROW(name, macro, level) {name, level},
constexpr Row rows[] = {TERN_INSTRUCTION_SETS(TERN_ROW)};
#undef TERN_ROW
constexpr int row_count = sizeof(rows) / sizeof(rows[0]);
static_assert(row_count <= 64);

/// A text of limited length.
class Text {
 public:
  Text(char* to, std::size_t size) : to_(to), size_(size) {}
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int count = vsnprintf(to_ + length_, size_ - length_, format, values);
    va_end(values);
    if (count > 0) length_ += static_cast<std::size_t>(count);
    if (length_ >= size_) length_ = size_ - 1;
  }

 private:
  char* to_;
  std::size_t size_, length_ = 0;
};

/// 1 to 4: the highest level x86-64-vN whose sets are all in `available`.
int level_of(Instructions available) {
  int level = 4;
  for (int i = 0; i < row_count; ++i)
    if (rows[i].level > 0 && rows[i].level <= level && !(available >> i & 1))
      level = rows[i].level - 1;
  return level;
}

/// Rank within the node, from the environment of mpirun or srun; 0 if started without a launcher.
int local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                           "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"})
    if (const char* value = getenv(name)) return atoi(value);
  return 0;
}

}  // namespace

Instructions instructions_available() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define TERN_ROW(name, macro, level) __builtin_cpu_supports(name) != 0,
  const bool has[] = {TERN_INSTRUCTION_SETS(TERN_ROW)};
#undef TERN_ROW
  Instructions sets = 0;
  for (int i = 0; i < row_count; ++i) sets |= static_cast<Instructions>(has[i]) << i;
  return sets;
#else
  return ~Instructions{0};
#endif
}

bool instructions_suffice(Instructions needed, Instructions available, const char* arch,
                          char* message, std::size_t size) {
  const Instructions missing = needed & ~available;
  if (missing == 0) return true;
  char host[256] = "this machine";
  gethostname(host, sizeof(host) - 1);
  Text text(message, size);
  text.add("the processor of %s lacks", host);
  const char* comma = "";
  for (int i = 0; i < row_count; ++i)
    if (missing >> i & 1) {
      text.add("%s %s", comma, rows[i].name);
      comma = ",";
    }
  const int level = level_of(available);
  char name[] = "x86-64-vN";
  name[8] = static_cast<char>('0' + level);
  if (level == 1) name[6] = '\0';
  text.add(", which %s was built with (TERN_ARCH=%s); build with -DTERN_ARCH=%s",
           program_invocation_short_name, arch, name);
  return false;
}

void require_instructions(Instructions needed, const char* arch) {
  char message[1024];
  if (instructions_suffice(needed, instructions_available(), arch, message, sizeof(message)))
    return;
  if (local_rank() == 0) {
    dprintf(STDERR_FILENO, "error: %s\n", message);
  } else {
    const timespec pause{1, 0};  // the first rank that ends may take the others with it
    nanosleep(&pause, nullptr);
  }
  _exit(1);
}

}  // namespace tern
