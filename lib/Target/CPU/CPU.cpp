// SPDX-License-Identifier: Apache-2.0
/// \file
/// The host: one relocatable object that calls nothing outside itself.
#include "../ConvertToLLVM.h"
#include "../LLVMCode.h"
#include "lacis/Target/CPU/HostProcessor.h"
#include "lacis/Target/Target.h"

#include "llvm/IR/Module.h"
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
  using Target::Target;

  static Expected<std::unique_ptr<Target>> create(StringRef name, StringRef arch, const CodeOptions &options);

  StringRef getAssemblyStage() const override { return "asm"; }
  void registerDialects(mlir::DialectRegistry &registry) const override { registerCommonDialects(registry); }
  void addPasses(mlir::OpPassManager &pm) const override {
    addToLLVMPasses(pm, HalfTypes::Emulated, ApproximateExp2::Expanded, /*populate=*/nullptr);
  }
  Error optimise(llvm::Module &module) const override;
  Expected<Code> emit(llvm::Module &module, bool assembly) const override;

private:
  Expected<std::unique_ptr<llvm::TargetMachine>> machine() const;
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
  auto target = std::make_unique<CPU>(name, options);
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = target->machine();
  if (!machine)
    return machine.takeError();
  return target;
}

Expected<std::unique_ptr<llvm::TargetMachine>> CPU::machine() const {
  bool isHost = options.cpu == "host";
  std::string features = isHost ? hostFeatures() : "";
  if (!options.features.empty())
    features += (features.empty() ? "" : ",") + options.features;
  llvm::Triple triple(llvm::sys::getProcessTriple());
  return createMachine(triple, isHost ? hostName() : options.cpu, features, options.optLevel);
}

Error CPU::optimise(llvm::Module &module) const {
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = this->machine();
  if (!machine)
    return machine.takeError();
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      function.setDoesNotThrow(); // no unwind tables
  return optimiseModule(module, **machine, options.optLevel);
}

/// What the launcher lends to an object: memory functions, and conversions of half types for processors without them.
static bool isLent(StringRef name) {
  static constexpr StringRef lent[] = {"memcpy",        "memmove",      "memset",       "memcmp",       "__extendhfsf2",
                                       "__extendhfdf2", "__truncsfhf2", "__truncdfhf2", "__truncsfbf2", "__truncdfbf2"};
  return llvm::is_contained(lent, name);
}

/// Refuses an object that needs a function which nobody has.
static Error checkSymbols(StringRef bytes) {
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
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() && !isLent(*name))
      return llvm::createStringError("the kernel calls '" + *name + "', which no library of Lacis has");
  }
  return Error::success();
}

Expected<Code> CPU::emit(llvm::Module &module, bool assembly) const {
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = this->machine();
  if (!machine)
    return machine.takeError();
  Code code;
  code.kind = "object";
  if (assembly) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    Expected<std::string> text = emitModule(*copy, **machine, llvm::CodeGenFileType::AssemblyFile);
    if (!text)
      return text.takeError();
    code.assembly = std::move(*text);
  }
  Expected<std::string> object = emitModule(module, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return object.takeError();
  if (Error error = checkSymbols(*object))
    return error;
  code.bytes = std::move(*object);
  return code;
}

static const TargetRegistration registration("cpu", CPU::create);
