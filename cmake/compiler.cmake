# Warnings, hardening and instrumentation: one interface target that every target of ours links.
add_library(weir_flags INTERFACE)
target_compile_definitions(weir_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wformat=2 -Werror=format-security -Wstrict-prototypes
  -Wmissing-prototypes -Wvla -Wwrite-strings -fno-common -fstack-protector-strong -fPIE)
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()

# -z relro,now,noexecstack and PIE for every binary; the compile-time half depends on the build.
target_link_options(weir_flags INTERFACE -pie LINKER:-z,relro,-z,now,-z,noexecstack)
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weir_flags INTERFACE -Wno-unknown-warning-option)
  set(WEIR_AUTO_INIT -ftrivial-auto-var-init=pattern)
else()
  # A cut snprintf is meant (messages) or asked for by its return value (names); gcc sees neither.
  target_compile_options(weir_flags INTERFACE -Wno-format-truncation)
  set(WEIR_AUTO_INIT -ftrivial-auto-var-init=zero)
endif()
if(NOT WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE -fstack-clash-protection ${WEIR_AUTO_INIT})
  target_compile_options(weir_flags INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=3>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_compile_options(weir_flags INTERFACE -fcf-protection)
  endif()
else()
  target_compile_options(weir_flags INTERFACE
    -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_FUZZ)
  target_compile_options(weir_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(WEIR_COVERAGE)
  target_compile_options(weir_flags INTERFACE --coverage)
  target_link_options(weir_flags INTERFACE --coverage)
endif()
# -O2 everywhere: what is measured, tested and shipped is the same code.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
