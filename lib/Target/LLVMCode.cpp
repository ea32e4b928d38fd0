// SPDX-License-Identifier: Apache-2.0
/// \file
/// What backends that go through LLVM share: optimise a module, print assembly or an object.
#include "LLVMCode.h"

#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

using namespace lacis;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

/// Collects LLVM's errors while it stands; without one LLVM ends the process on the first.
class Errors {
public:
  explicit Errors(llvm::LLVMContext &context) : context(context), previous(context.getDiagnosticHandler()) {
    context.setDiagnosticHandler(std::make_unique<Handler>(text));
  }
  ~Errors() { context.setDiagnosticHandler(std::move(previous)); }
  Error take() { return text.empty() ? Error::success() : llvm::createStringError(text); }

private:
  struct Handler final : llvm::DiagnosticHandler {
    explicit Handler(std::string &text) : text(text) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
      if (info.getSeverity() != llvm::DS_Error)
        return true;
      llvm::raw_string_ostream stream(text);
      stream << (text.empty() ? "" : "\n");
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      return true;
    }
    std::string &text;
  };

  llvm::LLVMContext &context;
  std::unique_ptr<llvm::DiagnosticHandler> previous;
  std::string text;
};

} // namespace

static llvm::CodeGenOptLevel codeGenLevel(unsigned optLevel) {
  return optLevel >= 3   ? llvm::CodeGenOptLevel::Aggressive
         : optLevel == 2 ? llvm::CodeGenOptLevel::Default
         : optLevel == 1 ? llvm::CodeGenOptLevel::Less
                         : llvm::CodeGenOptLevel::None;
}

static llvm::OptimizationLevel passLevel(unsigned optLevel) {
  return optLevel >= 3   ? llvm::OptimizationLevel::O3
         : optLevel == 2 ? llvm::OptimizationLevel::O2
         : optLevel == 1 ? llvm::OptimizationLevel::O1
                         : llvm::OptimizationLevel::O0;
}

/// LLVM only warns about names that it does not know, and goes on with another processor.
static Error checkProcessor(const llvm::Target &target, const llvm::Triple &triple, StringRef cpu, StringRef features) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(target.createMCSubtargetInfo(triple, "", ""));
  assert(info && "LLVM describes the processors that it has a target for");
  if (!info->isCPUStringValid(cpu))
    return llvm::createStringError("no processor '" + cpu + "' for " + triple.str());
  llvm::SmallVector<StringRef> words;
  features.split(words, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    bool known = llvm::any_of(info->getAllProcessorFeatures(), [&](const llvm::SubtargetFeatureKV &feature) {
      return word.drop_front() == feature.Key;
    });
    if (!known || (word[0] != '+' && word[0] != '-'))
      return llvm::createStringError("no processor feature '" + word + "' for " + triple.str());
  }
  return Error::success();
}

Expected<std::unique_ptr<llvm::TargetMachine>> lacis::createMachine(const llvm::Triple &triple, StringRef cpu,
                                                                    StringRef features, unsigned optLevel) {
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return llvm::createStringError(message);
  if (Error error = checkProcessor(*target, triple, cpu, features))
    return error;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast; // products and sums fuse into fma, nothing else is relaxed
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt, codeGenLevel(optLevel)));
  assert(machine && "LLVM was built with the targets that Lacis has");
  return machine;
}

Error lacis::optimiseModule(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel, StringRef named) {
  Errors errors(module.getContext());
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());

  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = optLevel >= 2;
  tuning.LoopInterleaving = tuning.LoopUnrolling = optLevel >= 2;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass([&] {
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions();
    return llvm::TargetLibraryAnalysis(library);
  });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::ModulePassManager passes;
  if (!named.empty())
    llvm::cantFail(builder.parsePassPipeline(passes, named));
  else if (optLevel == 0)
    passes = builder.buildO0DefaultPipeline(passLevel(0));
  else
    passes = builder.buildPerModuleDefaultPipeline(passLevel(optLevel));
  passes.run(module, modules);
  return errors.take();
}

Expected<std::string> lacis::emitModule(llvm::Module &module, llvm::TargetMachine &machine,
                                        llvm::CodeGenFileType type) {
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return llvm::createStringError("invalid LLVM IR: " + problem);

  Errors errors(module.getContext());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    llvm_unreachable("a target prints the files that it is asked for");
  passes.run(module);
  if (Error error = errors.take())
    return error;
  return std::string(bytes.begin(), bytes.end());
}
