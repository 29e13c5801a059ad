# Finds the program `streamsan` for the files beside this one: STREAMSAN_EXECUTABLE (cached) and STREAMSAN_VERSION.
# A package has it in bin/, three folders above; a build of the sources in the folder that STREAMSAN_BIN names.
find_program(STREAMSAN_EXECUTABLE streamsan
             HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" ENV STREAMSAN_BIN
             DOC "StreamSan: finds data races between CUDA streams")
mark_as_advanced(STREAMSAN_EXECUTABLE)
set(STREAMSAN_VERSION)
if(STREAMSAN_EXECUTABLE)
  execute_process(COMMAND "${STREAMSAN_EXECUTABLE}" --version OUTPUT_VARIABLE STREAMSAN_VERSION ERROR_QUIET)
  string(REGEX MATCH "[0-9]+(\\.[0-9]+)+" STREAMSAN_VERSION "${STREAMSAN_VERSION}")
endif()
