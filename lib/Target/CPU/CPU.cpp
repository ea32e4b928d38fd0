// SPDX-License-Identifier: Apache-2.0
/// \file
/// The host: a relocatable object that calls nothing outside itself, or an archive of one for each function.
#include "../ConvertToLLVM.h"
#include "../LLVMCode.h"
#include "DecodeLoops.h"
#include "JoinLoads.h"
#include "WidenHalves.h"
#include "lacis/Target/CPU/HostProcessor.h"
#include "lacis/Target/Target.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace lacis;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {

class CPU final : public Target {
public:
  CPU(StringRef name, std::unique_ptr<llvm::TargetMachine> machine, const CodeOptions &options)
      : Target(name, options), machine(std::move(machine)) {}

  static Expected<std::unique_ptr<Target>> create(StringRef name, StringRef arch, const CodeOptions &options);

  StringRef getAssemblyStage() const override { return "asm"; }
  void registerDialects(mlir::DialectRegistry &registry) const override { registerCommonDialects(registry); }
  void addPasses(mlir::OpPassManager &pm) const override {
    pm.addPass(mlir::createCanonicalizerPass());
    pm.addPass(mlir::createCSEPass());
    pm.addPass(createDecodeLoopsPass());
    pm.addPass(createJoinLoadsPass());
    pm.addPass(createWidenHalvesPass());
    addToLLVMPasses(pm, HalfTypes::Emulated, ApproximateExp2::Expanded, /*populate=*/nullptr);
  }
  Error optimise(llvm::Module &module) const override;
  Expected<Code> emit(llvm::Module &module, bool assembly) const override;
  Apart makesApart() const override { return Apart::All; }
  Expected<Code> join(std::vector<Code> pieces) const override;

private:
  const std::unique_ptr<llvm::TargetMachine> machine; // one for all functions: 4 million instructions to make
};

} // namespace

static void initialiseOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

Expected<std::unique_ptr<Target>> CPU::create(StringRef name, StringRef arch, const CodeOptions &options) {
  if (!arch.empty())
    return llvm::createStringError("target 'cpu' takes no architecture, got '" + arch +
                                   "'; choose a processor by the option 'cpu'");
  initialiseOnce();
  bool isHost = options.cpu == "host";
  std::string features = isHost ? hostFeatures() : "";
  if (!options.features.empty())
    features += (features.empty() ? "" : ",") + options.features;
  llvm::Triple triple(llvm::sys::getProcessTriple());
  auto machine = createMachine(triple, isHost ? hostName() : options.cpu, features, options.optLevel);
  if (!machine)
    return machine.takeError();
  return std::make_unique<CPU>(name, std::move(*machine), options);
}

/// Loops that a schedule has put into vectors need no further transformation, only cleaning up: a quarter of the time.
static constexpr StringRef cleanUp = "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
                                     "loop-mssa(loop-rotate,licm),loop(loop-unroll-full),sroa,early-cse<memssa>,dse,"
                                     "simplifycfg)";

static bool isInVectors(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (instruction.getType()->isVectorTy())
        return true;
  return false;
}

Error CPU::optimise(llvm::Module &module) const {
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.setDoesNotThrow(); // no unwind tables
  bool cleans = options.optLevel > 0 && isInVectors(module);
  return optimiseModule(module, *machine, options.optLevel, cleans ? cleanUp : "");
}

/// What the launcher lends to an object: memory functions, and conversions of half types for processors without them.
static bool isLent(StringRef name) {
  static constexpr StringRef lent[] = {"memcpy",        "memmove",      "memset",       "memcmp",       "__extendhfsf2",
                                       "__extendhfdf2", "__truncsfhf2", "__truncdfhf2", "__truncsfbf2", "__truncdfbf2"};
  return llvm::is_contained(lent, name);
}

/// The names that an object defines and those that it needs.
static Error readSymbols(StringRef bytes, llvm::StringSet<> &defined, llvm::StringSet<> &needed) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object)
    return object.takeError();
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (*flags & llvm::object::SymbolRef::SF_Undefined)
      needed.insert(*name);
    else if (*flags & llvm::object::SymbolRef::SF_Global)
      defined.insert(*name);
  }
  return Error::success();
}

/// Refuses objects that need a function which nobody has.
static Error checkSymbols(llvm::ArrayRef<Code> pieces) {
  llvm::StringSet<> defined, needed;
  for (const Code &piece : pieces)
    if (Error error = readSymbols(piece.bytes, defined, needed))
      return error;
  for (StringRef name : needed.keys())
    if (!name.empty() && !defined.contains(name) && !isLent(name))
      return llvm::createStringError("the kernel calls '" + name + "', which no library of Lacis has");
  return Error::success();
}

Expected<Code> CPU::emit(llvm::Module &module, bool assembly) const {
  Code code;
  code.kind = "object";
  if (assembly) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    Expected<std::string> text = emitModule(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
    if (!text)
      return text.takeError();
    code.assembly = std::move(*text);
  }
  Expected<std::string> object = emitModule(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return object.takeError();
  code.bytes = std::move(*object);
  return code;
}

Expected<Code> CPU::join(std::vector<Code> pieces) const {
  if (Error error = checkSymbols(pieces))
    return error;
  if (pieces.size() == 1)
    return std::move(pieces.front());
  Code whole;
  whole.kind = pieces.front().kind;
  std::vector<llvm::NewArchiveMember> members;
  for (const Code &piece : pieces) {
    members.emplace_back(llvm::MemoryBufferRef(piece.bytes, "function.o"));
    whole.assembly += piece.assembly;
  }
  auto archive =
      llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                 /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return archive.takeError();
  whole.bytes = (*archive)->getBuffer().str();
  return whole;
}

static const TargetRegistration registration("cpu", CPU::create);
