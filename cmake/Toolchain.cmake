# Language standard, warnings, sanitizers, compiler cache, and the version recorded in every run.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(TERN_CCACHE "Compile through ccache where it is installed" ON)
find_program(CCACHE ccache)
if(TERN_CCACHE AND CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the checkout, so that clones share the cache; precompiled headers are compared by contents.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_link_options(LINKER:--as-needed)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

add_library(tern_flags INTERFACE)
target_compile_options(tern_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>)
if(TERN_WERROR)
  # g++ 13 reports false array-bounds errors in fmt 9's headers (Ubuntu 24.04). If a precompiled header does not match
  # the system's flags, the compiler reads the text.
  target_compile_options(tern_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Werror;-Wno-error=array-bounds;-Wno-error=invalid-pch>")
endif()
# Stack protector and checked library calls, since programs read files from strangers. -U: some systems predefine it.
if(NOT TERN_SANITIZE)
  target_compile_options(tern_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fstack-protector-strong>)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")  # they need optimization
    target_compile_options(tern_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  endif()
endif()
# Test programs compute little themselves; the libraries that they test keep full optimization.
set(TERN_TESTS_OPTIONS "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
if(TERN_SANITIZE)
  target_compile_options(tern_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(tern_flags INTERFACE -fsanitize=address,undefined)
endif()

# Processor that kernels and Kokkos are compiled for (-march=NAME). Programs check at start that they run on it. With a
# GPU the processor computes little, so the build runs on any.
set(TERN_ARCH_DEFAULT native)
if(TERN_BACKEND MATCHES "^(cuda|hip)$")
  set(TERN_ARCH_DEFAULT none)
endif()
if(NOT "$ENV{TERN_ARCH}" STREQUAL "")
  set(arch $ENV{TERN_ARCH})
else()
  set(arch ${TERN_ARCH_DEFAULT})
endif()
set(TERN_ARCH ${arch} CACHE STRING "Processor that kernels are compiled for: native, x86-64-v3, ...; none: the compiler's")
if(NOT TERN_ARCH STREQUAL "none")
  include(CheckCXXCompilerFlag)
  string(MAKE_C_IDENTIFIER "TERN_HAS_ARCH_${TERN_ARCH}" has_arch)
  check_cxx_compiler_flag(-march=${TERN_ARCH} ${has_arch})
  if(NOT ${has_arch})
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} has no -march=${TERN_ARCH}; "
      "set TERN_ARCH to a name that it has (e.g. native, x86-64-v3, x86-64-v4, sapphirerapids, znver3) or to none.")
  endif()
endif()

if(TERN_BACKEND STREQUAL "cuda")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90a CACHE STRING "GPU architectures (90a: H100, H200)")
  endif()
  enable_language(CUDA)
  if("90a" IN_LIST CMAKE_CUDA_ARCHITECTURES)
    add_compile_definitions("$<$<COMPILE_LANGUAGE:CUDA>:TERN_SM90A>")  # kernels with sm_90a instructions
  endif()
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake < 3.26 does not know that nvcc >= 12 supports it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  # fmt 9 assumes that nvcc has no constexpr, which its consteval constructor needs.
  add_compile_definitions("$<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>")
endif()

if(TERN_BACKEND STREQUAL "hip")
  include(Hip)
endif()

# version.cpp is updated at each build, so that a run records the commit it was built from.
set(TERN_GENERATED ${CMAKE_BINARY_DIR}/generated)
set(TERN_COMMIT "" CACHE STRING "Commit of sources without git's folder")
add_custom_target(tern_version ALL
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${TERN_GENERATED}/version.cpp
          -DVERSION=${PROJECT_VERSION} -DCOMMIT=${TERN_COMMIT} -P ${CMAKE_SOURCE_DIR}/cmake/Version.cmake
  BYPRODUCTS ${TERN_GENERATED}/version.cpp COMMENT "")
