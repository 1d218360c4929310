# What `cmake --install` and the .deb put in place. The man page, the completion and the sample configuration
# are printed by the binary itself, from its tables.
install(TARGETS weir RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(generated ${PROJECT_BINARY_DIR}/generated)
add_custom_command(OUTPUT ${generated}/weir.1 ${generated}/weir.bash ${generated}/weir.conf.sample
  COMMAND weir help --man >${generated}/weir.1
  COMMAND weir help --completion >${generated}/weir.bash
  COMMAND weir config sample >${generated}/weir.conf.sample
  DEPENDS weir)
add_custom_target(weir_texts ALL DEPENDS ${generated}/weir.1 ${generated}/weir.bash ${generated}/weir.conf.sample)
install(FILES ${generated}/weir.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${generated}/weir.bash RENAME weir
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES README.md LICENSE ${generated}/weir.conf.sample DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_CONTACT "Weir maintainers <maintainers@weir.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
include(CPack)
