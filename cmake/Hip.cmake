# For TERN_BACKEND=hip: sets the architecture and the flags with which the compiler finds ROCm (TERN_HIP_FLAGS), and
# stops if it does not find ROCm. Sources are C++; Kokkos adds the flags that compile them for the GPU (-xhip
# --offload-arch).
set(CMAKE_HIP_ARCHITECTURES gfx90a CACHE STRING "AMD GPU architecture: gfx90a (MI200), gfx942 (MI300), ...")
if(NOT CMAKE_HIP_ARCHITECTURES MATCHES "^gfx[0-9a-f]+$")
  message(FATAL_ERROR "CMAKE_HIP_ARCHITECTURES is '${CMAKE_HIP_ARCHITECTURES}'; Kokkos compiles for one, e.g. gfx90a.")
endif()

# tern_compiles_hip(FLAGS RESULT): whether a kernel compiles, without linking.
include(CheckCXXSourceCompiles)
function(tern_compiles_hip flags result)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(CMAKE_REQUIRED_FLAGS "-xhip --offload-arch=${CMAKE_HIP_ARCHITECTURES} ${flags}")
  set(CMAKE_REQUIRED_QUIET ON)
  string(MAKE_C_IDENTIFIER "TERN_HIP_${CMAKE_HIP_ARCHITECTURES}_${flags}" cached)
  check_cxx_source_compiles("#include <hip/hip_runtime.h>
    __global__ void sine(float* x) { *x = sinf(*x); }" ${cached})
  set(${result} ${${cached}} PARENT_SCOPE)
  if(NOT ${cached})
    unset(${cached} CACHE)  # check again after packages have been installed
  endif()
endfunction()

# ROCm's own compiler finds ROCm; Debian's clang++ needs the paths of the packages.
find_path(TERN_HIP_BITCODE ocml.bc PATHS /usr/lib/${CMAKE_CXX_LIBRARY_ARCHITECTURE} PATH_SUFFIXES amdgcn/bitcode NO_DEFAULT_PATH)
foreach(flags "" "--rocm-path=/usr --rocm-device-lib-path=${TERN_HIP_BITCODE}")
  tern_compiles_hip("${flags}" found)
  if(found)
    set(TERN_HIP_FLAGS "${flags}")
    break()
  endif()
endforeach()
if(NOT found)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} does not compile HIP for ${CMAKE_HIP_ARCHITECTURES} (CMakeFiles/CMakeError.log says why). "
    "Name one that does with -DCMAKE_CXX_COMPILER=...: amdclang++ or hipcc of ROCm, or clang++ 17 or newer; Debian's needs the "
    "packages clang-19 clang-tools-19 lld-19 libamdhip64-dev rocm-device-libs, and knows gfx90a but not gfx942.")
endif()
message(STATUS "HIP for ${CMAKE_HIP_ARCHITECTURES} by ${CMAKE_CXX_COMPILER} ${TERN_HIP_FLAGS}")
# clang warns of libstdc++'s own uses of deprecated names.
target_compile_options(tern_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
