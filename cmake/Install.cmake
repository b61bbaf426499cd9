# cmake --install BUILD --prefix PREFIX: programs, man pages, completion, an environment module, decks, job scripts.
# Libraries of other prefixes are found by the paths they were linked with; those below PREFIX/lib wherever it is moved.
install(TARGETS trainer prepare diagnose RUNTIME DESTINATION bin)
install(DIRECTORY input jobs DESTINATION share/tern USE_SOURCE_PERMISSIONS
        PATTERN jobs/install.sh EXCLUDE PATTERN jobs/local.sh EXCLUDE PATTERN "jobs/distill_*.sh" EXCLUDE)   # of a checkout
install(DIRECTORY docs DESTINATION share/doc/tern)
install(FILES README.md LICENSE DESTINATION share/doc/tern)
install(FILES packaging/completion.bash DESTINATION share/bash-completion/completions RENAME trainer)
foreach(name prepare diagnose)
  install(CODE "file(CREATE_LINK trainer \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions/${name}\" SYMBOLIC)")
endforeach()

# Man pages are the programs' own help, which needs no MPI start.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
function(tern_man_page name summary others)
  install(CODE "
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/man/man1\")
    file(MAKE_DIRECTORY \"\${folder}\")
    message(STATUS \"Installing: \${folder}/${name}.1\")
    execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/packaging/man_page.py $<TARGET_FILE:${name}> ${PROJECT_VERSION} \"${summary}\" ${others}
                    OUTPUT_FILE \"\${folder}/${name}.1\" COMMAND_ERROR_IS_FATAL ANY)")
endfunction()
tern_man_page(trainer "trains, evaluates and samples language models on MPI ranks" prepare,diagnose)
tern_man_page(prepare "makes the data that trainer reads" trainer,diagnose)
tern_man_page(diagnose "checks operations and measures rates of a device" trainer,prepare)

install(CODE "
  set(TERN_VERSION ${PROJECT_VERSION})
  set(TERN_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
  set(TERN_BACKEND ${TERN_BACKEND})
  set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/tern/modulefiles/tern/${PROJECT_VERSION}.lua\")
  message(STATUS \"Installing: \${file}\")
  configure_file(${CMAKE_SOURCE_DIR}/packaging/tern.lua.in \"\${file}\" @ONLY)")
