# Precompiled headers: common headers of libraries, compiled once for each set of flags (a `flavor`: an object
# library with an empty source). They include no header of Tern, so that the order of the libraries holds.
# tern_flavor(NAME HEADERS <h>... [LINKS target...] [OPTIONS o...] [PROGRAM]): PROGRAM for executables.
# tern_precompiled(TARGET NAME): TARGET uses flavor NAME; its flags must be the flavor's.
if(TERN_BACKEND MATCHES "^(cuda|hip)$" OR TERN_SANITIZE)
  set(TERN_PRECOMPILED_DEFAULT OFF)  # device compilers cannot; the sanitized build finds missing includes
else()
  set(TERN_PRECOMPILED_DEFAULT ON)
endif()
option(TERN_PRECOMPILED "Precompile the headers of libraries" ${TERN_PRECOMPILED_DEFAULT})

function(tern_flavor name)
  if(NOT TERN_PRECOMPILED)
    return()
  endif()
  cmake_parse_arguments(F "PROGRAM" "" "HEADERS;LINKS;OPTIONS" ${ARGN})
  if(F_PROGRAM)
    list(APPEND F_OPTIONS ${CMAKE_CXX_COMPILE_OPTIONS_PIE})
  else()
    list(APPEND F_OPTIONS ${CMAKE_CXX_COMPILE_OPTIONS_PIC})
  endif()
  file(CONFIGURE OUTPUT ${TERN_GENERATED}/precompiled_${name}.cpp CONTENT "")
  add_library(precompiled_${name} OBJECT ${TERN_GENERATED}/precompiled_${name}.cpp)
  set_target_properties(precompiled_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_link_libraries(precompiled_${name} PRIVATE ${F_LINKS} tern_flags)
  target_compile_options(precompiled_${name} PRIVATE ${F_OPTIONS})
  target_precompile_headers(precompiled_${name} PRIVATE ${F_HEADERS})
endfunction()

function(tern_precompiled target flavor)
  if(TERN_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM precompiled_${flavor})
  endif()
endfunction()

if(TERN_PRECOMPILED)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # both are for ccache
    target_compile_options(tern_flags INTERFACE -fpch-preprocess)
  else()
    target_compile_options(tern_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()
set(common <algorithm> <filesystem> <functional> <map> <memory> <optional> <string> <unordered_map> <vector>
           <fmt/format.h>)
set(json <nlohmann/json.hpp>)
tern_flavor(host HEADERS ${common} ${json} LINKS fmt::fmt nlohmann_json::nlohmann_json)
tern_flavor(kokkos HEADERS ${common} ${json} <Kokkos_Core.hpp> LINKS fmt::fmt nlohmann_json::nlohmann_json Kokkos::kokkos)
tern_flavor(kernels HEADERS ${common} <Kokkos_Core.hpp> LINKS fmt::fmt Kokkos::kokkos OPTIONS -fno-math-errno)
if(TERN_TESTS)
  tern_flavor(tests PROGRAM HEADERS ${common} ${json} <gtest/gtest.h>
               LINKS fmt::fmt nlohmann_json::nlohmann_json GTest::gtest OPTIONS ${TERN_TESTS_OPTIONS})
  tern_flavor(kokkos_tests PROGRAM HEADERS ${common} <gtest/gtest.h> <Kokkos_Core.hpp>
               LINKS fmt::fmt GTest::gtest Kokkos::kokkos OPTIONS ${TERN_TESTS_OPTIONS})
endif()
