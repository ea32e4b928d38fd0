# SPDX-License-Identifier: Apache-2.0
# Everything that comes from outside: LLVM and MLIR 22 (static archives), threads, ccache, lld.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Lacis needs MLIR 22, found ${LLVM_VERSION}; pass -DMLIR_DIR=<llvm-22>/lib/cmake/mlir")
endif()
find_package(Threads REQUIRED)

find_program(LACIS_MLIR_TBLGEN mlir-tblgen HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
find_program(LACIS_CCACHE ccache)
find_program(LACIS_LLD NAMES ld.lld-22 ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})

# Every exported MLIR target names the shared LLVM as well. The core links the static archives:
# two LLVMs in one process would clash.
function(lacis_remove_shared_llvm target)
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  if(libraries)
    list(REMOVE_ITEM libraries LLVM MLIR "$<LINK_ONLY:LLVM>" "$<LINK_ONLY:MLIR>")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")
  endif()
endfunction()

get_property(LACIS_MLIR_TARGETS GLOBAL PROPERTY MLIR_ALL_LIBS)
foreach(target IN LISTS LACIS_MLIR_TARGETS MLIR_EXPORTED_TARGETS)
  if(TARGET ${target})
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      lacis_remove_shared_llvm(${target})
    endif()
  endif()
endforeach()

# Only what the code refers to is taken from an archive, so naming all dialects costs nothing.
get_property(LACIS_MLIR_DIALECTS GLOBAL PROPERTY MLIR_DIALECT_LIBS)
get_property(LACIS_MLIR_CONVERSIONS GLOBAL PROPERTY MLIR_CONVERSION_LIBS)
get_property(LACIS_MLIR_EXTENSIONS GLOBAL PROPERTY MLIR_EXTENSION_LIBS)
set(LACIS_MLIR_LIBRARIES
    ${LACIS_MLIR_DIALECTS} ${LACIS_MLIR_CONVERSIONS} ${LACIS_MLIR_EXTENSIONS}
    MLIROptLib MLIRLspServerLib MLIRParser MLIRPass MLIRTransforms MLIRTargetLLVMIRExport
    MLIRBuiltinToLLVMIRTranslation MLIRLLVMToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation
    MLIRGPUToLLVMIRTranslation)
llvm_map_components_to_libnames(LACIS_LLVM_LIBRARIES
    Core Support SupportLSP TargetParser Analysis Passes IPO Instrumentation Linker BitReader BitWriter IRReader AsmParser
    FrontendOpenMP FrontendOffloading Remarks DebugInfoDWARF PerfJITEvents
    OrcJIT ExecutionEngine RuntimeDyld JITLink Object MC
    X86CodeGen X86AsmParser X86Desc X86Info NVPTXCodeGen NVPTXDesc NVPTXInfo)
