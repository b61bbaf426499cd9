# cmake --install BUILD --prefix PREFIX: programs, man pages, completion, an environment module, decks, job scripts.
# Libraries of other prefixes are found at the paths they were linked with; those below PREFIX/lib also after a move.
install(TARGETS trainer prepare diagnose RUNTIME DESTINATION bin)
install(DIRECTORY input jobs DESTINATION share/tern USE_SOURCE_PERMISSIONS
        PATTERN jobs/install.sh EXCLUDE PATTERN jobs/local.sh EXCLUDE PATTERN "jobs/distill_*.sh" EXCLUDE)   # only for a checkout
install(DIRECTORY docs DESTINATION share/doc/tern)
install(FILES README.md LICENSE DESTINATION share/doc/tern)
install(FILES packaging/completion.bash DESTINATION share/bash-completion/completions RENAME trainer)
install(FILES packaging/completion.zsh DESTINATION share/zsh/site-functions RENAME _trainer)
install(FILES packaging/completion.fish DESTINATION share/fish/vendor_completions.d RENAME trainer.fish)
foreach(name prepare diagnose)
  install(CODE "file(CREATE_LINK trainer \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions/${name}\" SYMBOLIC)
    file(CREATE_LINK trainer.fish \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/fish/vendor_completions.d/${name}.fish\" SYMBOLIC)")
endforeach()

# Man pages are stored as text (the programs' --help), since a build for a GPU or another processor may not run here.
foreach(name trainer prepare diagnose)
  configure_file(packaging/man/${name}.1.in ${CMAKE_BINARY_DIR}/man/${name}.1 @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/man/${name}.1 DESTINATION share/man/man1)
endforeach()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_custom_target(man_pages COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/packaging/man_page.py ${CMAKE_BINARY_DIR}
                    DEPENDS trainer prepare diagnose COMMENT "Writing packaging/man")
endif()

install(CODE "
  set(TERN_VERSION ${PROJECT_VERSION})
  set(TERN_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
  set(TERN_BACKEND ${TERN_BACKEND})
  set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/tern/modulefiles/tern/${PROJECT_VERSION}.lua\")
  message(STATUS \"Installing: \${file}\")
  configure_file(${CMAKE_SOURCE_DIR}/packaging/tern.lua.in \"\${file}\" @ONLY)")
