# SPDX-License-Identifier: Apache-2.0
# How folders become rooms of the core: every folder with a .cpp is an object library, every .td is generated.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(LACIS_GENERATED_DIR ${CMAKE_BINARY_DIR}/include)

# Paths below the base count as relative, so that a checkout elsewhere finds what this one has compiled.
if(LACIS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${LACIS_CCACHE})
endif()

# What every room compiles with.
add_library(lacis_options INTERFACE)
target_include_directories(lacis_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${LACIS_GENERATED_DIR})
target_compile_definitions(lacis_options INTERFACE LACIS_VERSION="${PROJECT_VERSION}")
target_compile_options(lacis_options INTERFACE -Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(lacis_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

# Rooms that know LLVM (JITLink, errors, containers) but not MLIR.
add_library(lacis_llvm INTERFACE)
target_link_libraries(lacis_llvm INTERFACE lacis_options)
target_include_directories(lacis_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(LACIS_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(lacis_llvm INTERFACE ${LACIS_LLVM_DEFINITIONS})

# Rooms that speak MLIR share one precompiled header.
add_library(lacis_mlir INTERFACE)
target_link_libraries(lacis_mlir INTERFACE lacis_llvm)
target_include_directories(lacis_mlir SYSTEM INTERFACE ${MLIR_INCLUDE_DIRS})
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/pch.cpp CONTENT "// The object that carries the precompiled header.\n")
add_library(lacis_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cpp)
target_link_libraries(lacis_pch PUBLIC lacis_mlir)
target_precompile_headers(lacis_pch PRIVATE
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/GPU/IR/GPUDialect.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h> <mlir/Dialect/Linalg/IR/Linalg.h> <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Tensor/IR/Tensor.h> <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/DialectImplementation.h> <mlir/IR/PatternMatch.h>
  <mlir/Interfaces/ControlFlowInterfaces.h> <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Bytecode/BytecodeOpInterface.h>
  <mlir/Pass/PassManager.h> <mlir/Transforms/DialectConversion.h>)

set_property(GLOBAL PROPERTY LACIS_OBJECTS lacis_pch)
set_property(GLOBAL PROPERTY LACIS_GENERATED "")

# One generated file next to its .td, under the same relative path in the build tree.
function(lacis_tablegen_file td relative suffix)
  get_filename_component(folder ${relative} DIRECTORY)
  get_filename_component(name ${relative} NAME_WE)
  set(output ${LACIS_GENERATED_DIR}/${folder}/${name}${suffix})
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${LACIS_GENERATED_DIR}/${folder}
    COMMAND ${LACIS_MLIR_TBLGEN} ${ARGN} -I ${PROJECT_SOURCE_DIR}/include -I ${MLIR_INCLUDE_DIRS} ${td}
            --write-if-changed -o ${output} -d ${output}.d
    DEPENDS ${td} DEPFILE ${output}.d COMMENT "tablegen ${folder}/${name}${suffix}" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY LACIS_GENERATED ${output})
endfunction()

# The last word of a .td's name says what it declares: Dialect, Ops, Types, OpInterface, Interface, Enums, Passes, Base
# (classes only); anything else declares attributes.
function(lacis_tablegen td relative)
  get_filename_component(name ${relative} NAME_WE)
  if(name MATCHES "Base$")
    return()
  elseif(name MATCHES "Passes$")
    string(REGEX REPLACE "Passes$" "" group ${name})
    lacis_tablegen_file(${td} ${relative} .h.inc -gen-pass-decls -name=Lacis${group})
    return()
  elseif(name MATCHES "Dialect$")
    set(kind dialect)
  elseif(name MATCHES "Ops$")
    set(kind op)
  elseif(name MATCHES "Types$")
    set(kind typedef)
  elseif(name MATCHES "OpInterfaces?$")
    set(kind op-interface)
  elseif(name MATCHES "Interfaces?$")
    set(kind attr-interface)
  elseif(name MATCHES "Enums$")
    set(kind enum)
  else()
    set(kind attrdef)
  endif()
  lacis_tablegen_file(${td} ${relative} .h.inc -gen-${kind}-decls)
  lacis_tablegen_file(${td} ${relative} .cpp.inc -gen-${kind}-defs)
endfunction()

function(lacis_tablegen_tree root)
  file(GLOB_RECURSE files RELATIVE ${root} CONFIGURE_DEPENDS ${root}/*.td)
  foreach(file IN LISTS files)
    lacis_tablegen(${root}/${file} ${file})
  endforeach()
endfunction()

# One room: the sources of one folder. Rooms under Runtime/ do not see MLIR.
function(lacis_add_room target)
  add_library(${target} OBJECT ${ARGN})
  if(target MATCHES "^LacisRuntime")
    target_link_libraries(${target} PUBLIC lacis_llvm)
  else()
    target_link_libraries(${target} PUBLIC lacis_mlir)
    target_precompile_headers(${target} REUSE_FROM lacis_pch)
    add_dependencies(${target} lacis_generated)
  endif()
endfunction()

function(lacis_add_rooms root)
  file(GLOB_RECURSE sources RELATIVE ${root} CONFIGURE_DEPENDS ${root}/*.cpp)
  set(folders "")
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    list(APPEND folders "${folder}")
    list(APPEND sources_of_${folder} ${root}/${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    string(REPLACE "/" "" target "Lacis${folder}")
    lacis_add_room(${target} ${sources_of_${folder}})
    set_property(GLOBAL APPEND PROPERTY LACIS_OBJECTS ${target})
  endforeach()
endfunction()

# A room outside of lib/: its .td files are generated into include/<folder's name>/. `objects` is the property that
# gathers it: LACIS_OBJECTS for the core.
function(lacis_add_extra objects folder)
  get_filename_component(folder ${folder} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  get_filename_component(name ${folder} NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB_RECURSE declarations RELATIVE ${folder} CONFIGURE_DEPENDS ${folder}/*.td)
  foreach(td IN LISTS declarations)
    lacis_tablegen(${folder}/${td} ${name}/${td})
  endforeach()
  lacis_add_room(LacisExtra_${name} ${sources})
  target_include_directories(LacisExtra_${name} PRIVATE ${folder})
  set_property(GLOBAL APPEND PROPERTY ${objects} LacisExtra_${name})
endfunction()

# Everything that tablegen makes; called once, after the last room.
function(lacis_add_generated)
  get_property(generated GLOBAL PROPERTY LACIS_GENERATED)
  add_custom_target(lacis_generated DEPENDS ${generated})
  add_dependencies(lacis_pch lacis_generated)
endfunction()

# A library of the rooms in `objects`: static LLVM inside, only `extern "C"` entries outside.
function(lacis_add_core core)
  add_library(${core} SHARED)
  foreach(object IN LISTS ARGN)
    target_sources(${core} PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
  target_include_directories(${core} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${core} PRIVATE
    ${LACIS_MLIR_LIBRARIES} ${LACIS_LLVM_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${core} PRIVATE
    LINKER:--gc-sections LINKER:--as-needed LINKER:--exclude-libs,ALL LINKER:-z,defs LINKER:--build-id=sha1
    LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/lacis_core.map)
  set_target_properties(${core} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/lacis_core.map)
  if(LACIS_LLD)
    target_link_options(${core} PRIVATE -fuse-ld=lld)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_link_options(${core} PRIVATE LINKER:--strip-all)
  endif()
endfunction()

# Every folder under tools/ is a small main that calls one C function of the core.
function(lacis_add_tools root)
  file(GLOB mains RELATIVE ${root} CONFIGURE_DEPENDS ${root}/*/*.cpp)
  foreach(main IN LISTS mains)
    get_filename_component(tool ${main} DIRECTORY)
    add_executable(${tool} ${root}/${main})
    target_link_libraries(${tool} PRIVATE lacis_core)
    if(LACIS_LLD)
      target_link_options(${tool} PRIVATE -fuse-ld=lld)
    endif()
    set_target_properties(${tool} PROPERTIES
      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib" LINK_WHAT_YOU_USE OFF)
    install(TARGETS ${tool} RUNTIME DESTINATION lacis/bin)
  endforeach()
endfunction()
