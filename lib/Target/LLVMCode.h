// SPDX-License-Identifier: Apache-2.0
/// \file
/// What backends that go through LLVM share: optimise a module, print assembly or an object.
#ifndef LACIS_LIB_TARGET_LLVMCODE_H
#define LACIS_LIB_TARGET_LLVMCODE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class Module;
class TargetMachine;
class Triple;
} // namespace llvm

namespace lacis {

/// The machine description for a processor; the registered LLVM target must exist.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const llvm::Triple &triple, llvm::StringRef cpu,
                                                                   llvm::StringRef features, unsigned optLevel);

/// Sets triple and data layout, then runs LLVM's standard pipeline of that level, or the passes named.
/// No function of the C library is assumed: loops never become calls.
llvm::Error optimiseModule(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel,
                           llvm::StringRef named = "");

/// Assembly or an object file.
llvm::Expected<std::string> emitModule(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType type);

} // namespace lacis

#endif // LACIS_LIB_TARGET_LLVMCODE_H
