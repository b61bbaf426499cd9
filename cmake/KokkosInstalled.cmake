# tern_find_kokkos(options of find_package...): finds an installed Kokkos Kernels and checks its Kokkos. It does not ask
# for a version: the version file accepts only one major version, and Trilinos installs none.
set(TERN_KOKKOS_MINIMUM 4.5.0)

macro(tern_find_kokkos)
  find_package(KokkosKernels ${ARGN})
  if(KokkosKernels_FOUND)
    if(NOT DEFINED Kokkos_VERSION)  # the Kokkos file that Trilinos includes has no version
      find_package(Kokkos QUIET HINTS ${KokkosKernels_DIR}/../Kokkos)
    endif()
    tern_check_kokkos()
  endif()
endmacro()

function(tern_check_kokkos)
  set(remedy "Point CMAKE_PREFIX_PATH at another, or let Tern build one: -DCMAKE_DISABLE_FIND_PACKAGE_KokkosKernels=ON.")
  if(Kokkos_VERSION VERSION_LESS TERN_KOKKOS_MINIMUM)
    message(FATAL_ERROR "The installed Kokkos (${Kokkos_DIR}) is version '${Kokkos_VERSION}'; "
      "Tern needs ${TERN_KOKKOS_MINIMUM} or newer. ${remedy}")
  endif()
  string(TOUPPER "${TERN_BACKEND}" device)
  if(NOT device STREQUAL "SERIAL" AND NOT device IN_LIST Kokkos_DEVICES)
    message(FATAL_ERROR "The installed Kokkos (${Kokkos_DIR}) has devices '${Kokkos_DEVICES}', not ${TERN_BACKEND}. ${remedy}")
  endif()
endfunction()
