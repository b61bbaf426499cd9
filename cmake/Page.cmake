# Embeds lib/report/page and dygraphs (MIT license; Debian, Ubuntu: libjs-dygraphs) into tern_report. Without dygraphs a
# report has still pictures only. Its folder may be named with -D DYGRAPHS=FOLDER.
find_path(DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs PATH_SUFFIXES share/javascript/dygraphs
          DOC "Folder of dygraph.min.js and dygraph.min.css")
if(NOT DYGRAPHS)
  message(STATUS "dygraphs not found: report.html has still pictures only (Debian, Ubuntu: libjs-dygraphs)")
endif()
set(page ${CMAKE_SOURCE_DIR}/lib/report/page)
set(output ${TERN_GENERATED}/page_files.host.cpp)
add_custom_command(OUTPUT ${output}
  COMMAND ${CMAKE_COMMAND} -D PAGE=${page} -D "DYGRAPHS=$<$<BOOL:${DYGRAPHS}>:${DYGRAPHS}>" -D OUTPUT=${output}
          -P ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
  DEPENDS ${page}/pictures.css ${page}/report.css ${page}/report.js ${CMAKE_SOURCE_DIR}/cmake/Embed.cmake
  COMMENT "Embedding the report's styles and scripts")
target_sources(tern_report PRIVATE ${output})
set_source_files_properties(${output} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
