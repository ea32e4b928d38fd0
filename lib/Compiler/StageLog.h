// SPDX-License-Identifier: Apache-2.0
/// \file
/// Keeps the text of every stage for who asked: the caller, the dump folder.
#ifndef LACIS_LIB_COMPILER_STAGELOG_H
#define LACIS_LIB_COMPILER_STAGELOG_H

#include "lacis/Compiler/Compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
} // namespace llvm

namespace lacis {

class StageLog {
public:
  StageLog(llvm::StringRef text, llvm::StringRef target, const CompileOptions &options, CompileResult &result);

  /// Whether anybody wants the text of that stage.
  bool wants(llvm::StringRef stage) const { return keeps(stage) || !options.dumpDir.empty(); }

  void record(llvm::StringRef stage, mlir::ModuleOp module);
  void record(llvm::StringRef stage, const llvm::Module &module);
  void record(llvm::StringRef stage, const std::string &text);
  void recordArtifact(const Artifact &artifact);

private:
  bool keeps(llvm::StringRef stage) const { return options.stages || options.to == stage; }
  void dump(llvm::StringRef stage, llvm::StringRef suffix, llvm::StringRef bytes);

  const CompileOptions &options;
  CompileResult &result;
  std::string name; // of the dumped files: the kernel, and a digest of text and target
  std::string digest;
};

/// The command line that repeats a run, as the last line of a failure.
std::string repeatCommand(llvm::StringRef target, const CompileOptions &options);

} // namespace lacis

#endif // LACIS_LIB_COMPILER_STAGELOG_H
