/// Runs a script below tests/ with the interpreter of TERN_PYTHON, or python3.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace tern::test {

struct Outcome {
  int status;
  std::string text;  // standard output and error
};

inline Outcome run_shell(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return {-1, "popen failed"};
  Outcome outcome{0, ""};
  for (int c; (c = std::fgetc(pipe)) != EOF;) outcome.text += static_cast<char>(c);
  outcome.status = ::pclose(pipe);
  return outcome;
}

inline Outcome run_python(const std::string& script, const std::vector<std::string>& arguments) {
  const char* python = std::getenv("TERN_PYTHON");
  std::string command =
      fmt::format("'{}' '{}/tests/{}'", python ? python : "python3", TERN_SOURCE_DIR, script);
  for (const std::string& argument : arguments) command += fmt::format(" '{}'", argument);
  return run_shell(command);
}

}  // namespace tern::test
