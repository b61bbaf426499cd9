# tern_library(NAME [LIBRARIES l...] [LINKS target...] [KOKKOS | KERNELS]): target tern_NAME, built from all sources below
# lib/NAME; NAME may be a folder within another (ops/linear: tern_ops_linear). It sees only the headers of the libraries
# that it names, and of those that these name: any other include does not compile. KERNELS: operations.
# tern_headers(NAME LIBRARIES l... [KOKKOS]): the same, of the headers right in lib/NAME.
# tern_app(NAME ...): app/NAME.cpp, linked as ./NAME at the root of the checkout.
# tern_test(NAME ...): one GoogleTest program.

function(tern_compile_as_cuda target)
  if(TERN_BACKEND STREQUAL "cuda")
    get_target_property(sources ${target} SOURCES)
    foreach(source ${sources})
      if(source MATCHES "\\.(cpp|cu)$" AND NOT source MATCHES "\\.host\\.cpp$")
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CUDA)
      endif()
    endforeach()
  endif()
endfunction()

# tern_targets(LIST): names of libraries to those of their targets.
function(tern_targets list)
  set(names ${${list}})
  list(TRANSFORM names REPLACE "/" "_")
  list(TRANSFORM names PREPEND tern_)
  set(${list} ${names} PARENT_SCOPE)
endfunction()

# The headers of a library are found through a folder with a single link to `path`, its folder or header below lib.
function(tern_expose_headers target scope path)
  set(folder ${CMAKE_BINARY_DIR}/include/${target})
  get_filename_component(within ${path} DIRECTORY)
  file(MAKE_DIRECTORY ${folder}/${within})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/lib/${path} ${folder}/${path} SYMBOLIC)
  target_include_directories(${target} ${scope} ${folder})
endfunction()

function(tern_headers name)
  cmake_parse_arguments(L "KOKKOS" "" "LIBRARIES" ${ARGN})
  tern_targets(L_LIBRARIES)
  set(target ${name})
  tern_targets(target)
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE ${L_LIBRARIES})
  if(L_KOKKOS)
    target_link_libraries(${target} INTERFACE Kokkos::kokkos)
  endif()
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/lib ${CMAKE_SOURCE_DIR}/lib/${name}/*.hpp)
  foreach(header ${headers})
    tern_expose_headers(${target} INTERFACE ${header})
  endforeach()
endfunction()

function(tern_library name)
  cmake_parse_arguments(L "KOKKOS;KERNELS" "" "LIBRARIES;LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/lib/${name}/*.cpp)
  if(NOT TERN_BACKEND STREQUAL "cuda")
    list(FILTER sources EXCLUDE REGEX "/cuda/")
  endif()
  list(TRANSFORM sources PREPEND ${CMAKE_SOURCE_DIR}/)
  if(name STREQUAL "base")
    list(APPEND sources ${TERN_GENERATED}/version.cpp)
    set_source_files_properties(${TERN_GENERATED}/version.cpp PROPERTIES GENERATED TRUE)
  endif()
  tern_targets(L_LIBRARIES)
  set(target ${name})
  tern_targets(target)
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC ${L_LIBRARIES} ${L_LINKS} PRIVATE tern_flags)
  set(flavor host)
  if(L_KOKKOS OR L_KERNELS)
    set(flavor kokkos)
    target_link_libraries(${target} PUBLIC Kokkos::kokkos)
    tern_compile_as_cuda(${target})
  endif()
  if(L_KERNELS)
    set(flavor kernels)
    # No kernel reads errno, and square roots are vectorized only without it.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)
  endif()
  tern_precompiled(${target} ${flavor})
  if(name STREQUAL "base")
    add_dependencies(tern_base tern_version)
  endif()
  tern_expose_headers(${target} PUBLIC ${name})
endfunction()

function(tern_app name)
  cmake_parse_arguments(A "KOKKOS" "" "LIBRARIES;LINKS" ${ARGN})
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/app/${name}.cpp)
    return()
  endif()
  tern_targets(A_LIBRARIES)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/app/${name}.cpp ${CMAKE_SOURCE_DIR}/app/instructions.host.cpp)
  target_link_libraries(${name} PRIVATE ${A_LIBRARIES} ${A_LINKS} tern_flags)
  if(A_KOKKOS)
    target_link_libraries(${name} PRIVATE Kokkos::kokkos)
    tern_compile_as_cuda(${name})
  endif()
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${name}> ${CMAKE_SOURCE_DIR}/${name})
endfunction()

# Sanitizer options of programs that start MPI. OpenMPI unloads its modules before the leak check, which then cannot
# attribute leaks. Allocations that are too large must throw, not abort. Unused without sanitizers.
set(TERN_MPI_SANITIZER "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1")

# Goes before the command of every test, with its limit in seconds. tests/limited.py does not count the time that a busy
# machine makes a test wait, as CTest's own wall-clock limit would.
set(TERN_LIMITED python3 ${CMAKE_SOURCE_DIR}/tests/limited.py)

# tern_test(NAME SOURCES s... LIBRARIES l... [KOKKOS] [LABEL unit] [RANKS 1 2 4] [SECONDS limit]
#           [LINKS target...] [ENVIRONMENT k=v...])
# KOKKOS: main() also starts MPI and Kokkos (tests/main_kokkos.cpp). RANKS: the test runs under mpirun, once for
# each count.
function(tern_test name)
  cmake_parse_arguments(T "KOKKOS" "LABEL;SECONDS" "SOURCES;LIBRARIES;RANKS;LINKS;ENVIRONMENT" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  if(NOT T_SECONDS)
    set(T_SECONDS 600)
  endif()
  tern_targets(T_LIBRARIES)
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBRARIES} ${T_LINKS} tern_flags GTest::gtest)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TERN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${TERN_TESTS_OPTIONS})
  if(T_KOKKOS)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:main_kokkos>)
    target_link_libraries(${name} PRIVATE Kokkos::kokkos MPI::MPI_CXX)
    tern_compile_as_cuda(${name})
    list(APPEND T_ENVIRONMENT "${TERN_MPI_SANITIZER}")
  else()
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  set(flavor tests)
  foreach(library ${T_LIBRARIES})  # a library passes on the flags of what it links
    get_target_property(linked ${library} LINK_LIBRARIES)
    if(T_KOKKOS OR "Kokkos::kokkos" IN_LIST linked)
      set(flavor kokkos_tests)
    endif()
  endforeach()
  tern_precompiled(${name} ${flavor})
  # Waiting threads must not spin: several tests run at once.
  set(environment "OMP_PROC_BIND=false" "OMP_WAIT_POLICY=passive" ${T_ENVIRONMENT})
  if(NOT T_RANKS)
    # Lower priority than tests with several ranks, all of which wait whenever one of them is not scheduled.
    add_test(NAME ${name} COMMAND ${TERN_LIMITED} ${T_SECONDS} nice -n 10 $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES LABELS ${T_LABEL} ENVIRONMENT "${environment}")
  endif()
  foreach(ranks ${T_RANKS})
    add_test(NAME ${name}_${ranks} COMMAND ${TERN_LIMITED} ${T_SECONDS} ${MPIEXEC_EXECUTABLE} --allow-run-as-root
             --oversubscribe -n ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_${ranks} PROPERTIES LABELS ${T_LABEL}
      ENVIRONMENT "OMP_NUM_THREADS=1;${environment}" PROCESSORS 2)
  endforeach()
endfunction()
