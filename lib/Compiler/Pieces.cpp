// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pieces of a module that become code apart from each other: one function each, and what is no function.
#include "Pieces.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace lacis;
using namespace mlir;

StringRef lacis::nameOf(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>())
    return function.getName();
  return "module";
}

std::vector<OwningOpRef<ModuleOp>> lacis::takeApart(ModuleOp module) {
  SmallVector<Operation *> functions;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      functions.push_back(function);
  for (Operation *function : functions) {
    function->remove();
    function->removeDiscardableAttr("lacis.steps");
  }
  module->removeDiscardableAttr("lacis.artifact");
  std::vector<OwningOpRef<ModuleOp>> pieces;
  for (Operation *function : functions) {
    pieces.emplace_back(module.clone());
    pieces.back()->getBody()->push_back(function);
  }
  return pieces;
}

std::vector<std::unique_ptr<llvm::Module>> lacis::takeApart(const llvm::Module &module) {
  std::vector<std::unique_ptr<llvm::Module>> pieces;
  for (const llvm::Function &function : module)
    if (!function.isDeclaration()) {
      llvm::ValueToValueMapTy values;
      pieces.push_back(llvm::CloneModule(module, values, [&](const llvm::GlobalValue *value) {
        return value == &function || !llvm::isa<llvm::Function>(value);
      }));
    }
  return pieces;
}

std::unique_ptr<llvm::Module> lacis::putTogether(llvm::ArrayRef<Piece> pieces) {
  std::unique_ptr<llvm::Module> whole = llvm::CloneModule(*pieces.front().module);
  for (const Piece &piece : pieces.drop_front())
    if (llvm::Linker::linkModules(*whole, llvm::CloneModule(*piece.module)))
      llvm_unreachable("functions of one kernel have names of their own");
  return whole;
}

namespace {

struct KnownCode {
  static constexpr size_t most = 1024; // functions; some 10 KB each
  std::mutex mutex;
  llvm::StringMap<Code> codes;
};

} // namespace

static KnownCode &knownCode() {
  static KnownCode known;
  return known;
}

std::optional<Code> lacis::findCode(const std::string &key) {
  KnownCode &known = knownCode();
  std::lock_guard<std::mutex> lock(known.mutex);
  auto found = known.codes.find(key);
  return found == known.codes.end() ? std::nullopt : std::optional(found->second);
}

void lacis::keepCode(const std::string &key, const Code &code) {
  KnownCode &known = knownCode();
  std::lock_guard<std::mutex> lock(known.mutex);
  if (known.codes.size() == KnownCode::most)
    known.codes.clear();
  known.codes[key] = code;
}

std::string lacis::keyOfCode(ModuleOp piece, llvm::StringRef target, const CodeOptions &options) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  for (const std::string &word : {target.str(), std::to_string(options.optLevel), options.cpu, options.features})
    stream << word << '\0';
  piece->print(stream);
  return key;
}
