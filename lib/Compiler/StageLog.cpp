// SPDX-License-Identifier: Apache-2.0
/// \file
/// Keeps the text of every stage for who asked: the caller, the dump folder.
#include "StageLog.h"
#include "TakeApart.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace lacis;
using llvm::StringRef;

StageLog::StageLog(StringRef text, StringRef target, const CompileOptions &options, CompileResult &result)
    : options(options), result(result) {
  if (!options.dumpDir.empty())
    digest = sha256Hex((text + llvm::Twine('\0') + target).str()).substr(0, 8);
}

static std::string print(mlir::ModuleOp module, bool locations) {
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(locations);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, flags);
  stream << '\n';
  return text;
}

void StageLog::record(StringRef stage, mlir::ModuleOp module) {
  if (name.empty())
    name = nameOf(module).str();
  if (keeps(stage))
    result.stages.emplace_back(stage.str(), print(module, options.locations));
  if (!options.dumpDir.empty())
    dump(stage, "mlir", print(module, /*locations=*/true));
}

static std::string print(const llvm::Module &module, bool useLists) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, /*AAW=*/nullptr, /*ShouldPreserveUseListOrder=*/useLists);
  return text;
}

void StageLog::record(StringRef stage, const llvm::Module &module) {
  if (!wants(stage))
    return;
  if (name.empty())
    name = module.getName().str();
  if (!options.dumpDir.empty()) // code generation follows the order of uses, so the same kernel needs the same order
    dump(stage, "ll", print(module, /*useLists=*/true));
  if (keeps(stage))
    result.stages.emplace_back(stage.str(), print(module, /*useLists=*/false));
}

void StageLog::record(StringRef stage, const std::string &text) {
  if (keeps(stage))
    result.stages.emplace_back(stage.str(), text);
  if (!options.dumpDir.empty())
    dump(stage, stage == "asm" ? "s" : stage, text);
}

void StageLog::recordArtifact(const Artifact &artifact) {
  if (!options.dumpDir.empty())
    dump("artifact", "lacis", artifact.serialise());
}

/// A dump is a help, never a reason to fail: what cannot be written is said as a warning.
void StageLog::dump(StringRef stage, StringRef suffix, StringRef bytes) {
  llvm::SmallString<256> path(options.dumpDir);
  std::error_code problem = llvm::sys::fs::create_directories(path);
  llvm::sys::path::append(path, name + "-" + digest + "." + stage + "." + suffix);
  if (!problem)
    problem = llvm::errorToErrorCode(llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
      stream << bytes;
      return llvm::Error::success();
    }));
  if (problem)
    result.diagnostics += "warning: cannot write '" + path.str().str() + "': " + problem.message() + "\n";
}

std::string lacis::repeatCommand(StringRef target, const CompileOptions &options) {
  const CodeOptions defaults;
  const CodeOptions &code = options.code;
  std::string line = "note: repeat it with: lacis-compile ";
  line += options.file.empty() || options.file[0] == '<' ? "-" : options.file;
  line += " --target=" + target.str();
  auto option = [&](StringRef name, const std::string &value, const std::string &normal) {
    if (value != normal)
      line += (" --" + name + "='" + value + "'").str();
  };
  option("from", options.from, "");
  option("opt-level", std::to_string(code.optLevel), std::to_string(defaults.optLevel));
  option("cpu", code.cpu, defaults.cpu);
  option("features", code.features, "");
  option("ptxas", code.ptxas, "");
  option("ptxas-options", code.ptxasOptions, "");
  if (code.checkPtxas)
    line += " --check-ptxas";
  return line + "\n";
}
