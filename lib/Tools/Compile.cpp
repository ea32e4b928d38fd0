// SPDX-License-Identifier: Apache-2.0
/// \file
/// lacis-compile: a file of text to any stage or to code.
#include "lacis-c/lacis.h"
#include "lacis/Compiler/Compiler.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace lacis;
namespace cl = llvm::cl;
using llvm::StringRef;

namespace {

enum ExitCode { exitDone = 0, exitRefused = 1, exitUsage = 2 };

struct CommandLine {
  cl::OptionCategory category{"lacis-compile"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<file.mlir>, '-' is standard input"), cl::init("-"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("where the result goes"), cl::value_desc("file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<std::string> target{"target", cl::desc("cpu, cuda:sm_80, cuda:sm_90a"), cl::Required, cl::cat(category)};
  cl::opt<std::string> emit{"emit", cl::desc("lacis, loops, tiles, buffers, target, llvm, ptx, asm, obj, artifact"),
                            cl::init("obj"), cl::cat(category)};
  cl::opt<std::string> from{"from", cl::desc("the stage of the text, if it does not say"), cl::cat(category)};
  cl::opt<unsigned> optLevel{"opt-level", cl::desc("of LLVM, 0 to 3"), cl::init(3), cl::cat(category)};
  cl::opt<std::string> cpu{"cpu", cl::desc("processor for target cpu"), cl::init("host"), cl::cat(category)};
  cl::opt<std::string> features{"features", cl::desc("of the processor, +a,-b"), cl::cat(category)};
  cl::opt<std::string> ptxas{"ptxas", cl::desc("assembler that makes a cubin"), cl::cat(category)};
  cl::opt<std::string> ptxasOptions{"ptxas-options", cl::desc("further words for ptxas"), cl::cat(category)};
  cl::opt<bool> checkPtxas{"check-ptxas", cl::desc("refuse spills and C75xx warnings"), cl::cat(category)};
  cl::opt<bool> remarks{"remarks", cl::desc("say which rules of the default schedule did not apply, and why"),
                        cl::cat(category)};
  cl::opt<bool> locations{"locations", cl::desc("print source locations"), cl::cat(category)};
  cl::opt<std::string> dumpDir{"dump-dir", cl::desc("write every stage there"), cl::cat(category)};

  bool emitsCode() const { return emit == "obj" || emit == "artifact"; }
  CompileOptions options() const;
};

} // namespace

CompileOptions CommandLine::options() const {
  CompileOptions options;
  options.from = from;
  options.to = emitsCode() ? "" : emit.getValue();
  options.file = input == "-" ? "<stdin>" : input.getValue();
  options.locations = locations;
  options.dumpDir = dumpDir;
  options.whole = emit == "obj";
  options.code = {optLevel, cpu, features, ptxas, ptxasOptions, checkPtxas};
  return options;
}

static bool isEmitted(StringRef kind) {
  static constexpr StringRef kinds[] = {"lacis", "loops", "tiles", "buffers", "target",
                                        "llvm",  "ptx",   "asm",   "obj",     "artifact"};
  return llvm::is_contained(kinds, kind);
}

static int usage(const llvm::Twine &message) {
  llvm::errs() << "lacis-compile: " << message << "\n";
  return exitUsage;
}

static int write(StringRef path, StringRef bytes) {
  std::error_code problem;
  llvm::ToolOutputFile file(path, problem, llvm::sys::fs::OF_None);
  if (problem)
    return usage("cannot write '" + path + "': " + problem.message());
  file.os() << bytes;
  file.keep();
  return exitDone;
}

static int run(const CommandLine &command) {
  if (!isEmitted(command.emit))
    return usage("--emit: no kind '" + command.emit + "'");
  if (command.optLevel > 3)
    return usage("--opt-level: 0 to 3, got " + llvm::Twine(command.optLevel));
  auto text = llvm::MemoryBuffer::getFileOrSTDIN(command.input, /*IsText=*/true);
  if (!text)
    return usage("cannot read '" + command.input + "': " + text.getError().message());
  CompileResult result = compile((*text)->getBuffer(), command.target, command.options());
  llvm::errs() << result.diagnostics;
  if (result.status != CompileStatus::Done)
    return exitRefused;
  if (command.remarks && result.artifact)
    for (const std::string &remark : result.artifact->remarks)
      llvm::errs() << "remark: " << remark << "\n";
  if (command.emit == "artifact")
    return write(command.output, result.artifact->serialise());
  if (command.emit == "obj")
    return write(command.output, result.artifact->code);
  if (const std::string *stage = result.stage(command.emit))
    return write(command.output, *stage);
  return usage("--emit: this kernel has no stage '" + command.emit + "'");
}

int lacis_compile_main(int argc, char **argv) {
  CommandLine command;
  cl::HideUnrelatedOptions(command.category);
  if (!cl::ParseCommandLineOptions(argc, argv, "Lacis kernels from text, at any stage\n", &llvm::errs()))
    return exitUsage;
  return run(command);
}
