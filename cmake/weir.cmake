# weir_library(NAME SOURCES ... DEPENDS ... [LIBS ...]): the static library of src/NAME. DEPENDS are
# folders of src/ that it may include; the include test reads the same list (see weir_write_layers).
function(weir_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPENDS;LIBS" ${ARGN})
  add_library(weir_${name} STATIC ${A_SOURCES})
  target_include_directories(weir_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(weir_${name} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(weir_${name} PRIVATE weir_flags PUBLIC ${A_LIBS})
  foreach(dep ${A_DEPENDS})
    target_link_libraries(weir_${name} PUBLIC weir_${dep})
  endforeach()
  set_property(GLOBAL APPEND_STRING PROPERTY WEIR_LAYERS "${name}: ${name} ${A_DEPENDS}\n")
endfunction()

# weir_kernel(FOLDER FILE FLAGS...): adds one SIMD file, compiled with its own ISA flags. The file
# itself compiles to nothing where the ISA is absent.
function(weir_kernel folder file)
  target_sources(weir_${folder} PRIVATE ${file})
  if(ARGN)
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${ARGN}")
  endif()
endfunction()

# Writes the table that tests/layers.sh checks every #include against.
function(weir_write_layers)
  get_property(layers GLOBAL PROPERTY WEIR_LAYERS)
  string(REPLACE ";" " " layers "${layers}")
  file(WRITE ${PROJECT_BINARY_DIR}/layers.txt "${layers}")
endfunction()
