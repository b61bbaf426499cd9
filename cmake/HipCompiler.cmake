# Selects a C++ compiler for AMD GPUs if none is named: ROCm's, or clang++ 17 or newer (Debian's hipcc uses clang 15,
# which crashes on Kokkos). Include before project().
if(TERN_BACKEND STREQUAL "hip" AND NOT CMAKE_CXX_COMPILER AND "$ENV{CXX}" STREQUAL "")
  find_program(TERN_HIP_COMPILER NAMES amdclang++ clang++-22 clang++-21 clang++-20 clang++-19 clang++-18 clang++-17 clang++
               HINTS ENV ROCM_PATH /opt/rocm PATH_SUFFIXES bin llvm/bin)
  if(TERN_HIP_COMPILER)
    set(CMAKE_CXX_COMPILER ${TERN_HIP_COMPILER})
  endif()
endif()
