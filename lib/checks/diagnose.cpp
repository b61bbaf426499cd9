#include "checks/diagnose.hpp"

#include "checks/diagnosis.hpp"
#include "comm/waits.hpp"

namespace tern::checks {
namespace {
constexpr int wait_minutes = 10;  // limit of a rank's wait for another
}  // namespace

int diagnose(const DiagnoseOptions& options, const comm::Session& session, comm::Group& group,
             Log& log) {
  comm::limit_waits(wait_minutes);
  const Diagnosis found = examine(options, session, group);
  log.line("{}", options.json ? to_json(found) : to_text(found, options.verbose));
  return found.passed() ? 0 : 1;
}

}  // namespace tern::checks
