# Writes the version source if the commit changed since the last build.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
set(text "#include \"base/version.hpp\"\nnamespace tern {\nstd::string_view version() { return \"${VERSION}\"; }\nstd::string_view commit() { return \"${commit}\"; }\n}  // namespace tern\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
