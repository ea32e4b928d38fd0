// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pieces of a module that become code apart from each other: one function each, or all where one calls another.
#include "Pieces.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace lacis;
using namespace mlir;

StringRef lacis::nameOf(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>())
    return function.getName();
  return "module";
}

std::vector<OwningOpRef<ModuleOp>> lacis::takeApart(OwningOpRef<ModuleOp> module) {
  module->getOperation()->removeDiscardableAttr("lacis.artifact");
  auto functions = llvm::to_vector(module->getOps<FunctionOpInterface>());
  for (FunctionOpInterface function : functions)
    function->removeDiscardableAttr("lacis.steps");
  std::vector<OwningOpRef<ModuleOp>> pieces;
  Region *body = &module->getBodyRegion();
  if (!llvm::all_of(functions, [&](FunctionOpInterface f) { return SymbolTable::symbolKnownUseEmpty(f, body); })) {
    pieces.push_back(std::move(module));
    return pieces;
  }
  for (FunctionOpInterface function : functions)
    function->remove();
  for (FunctionOpInterface function : functions) {
    pieces.emplace_back(module->clone());
    pieces.back()->getBody()->push_back(function);
  }
  return pieces;
}

std::vector<std::unique_ptr<llvm::Module>> lacis::takeApart(std::unique_ptr<llvm::Module> module) {
  std::vector<std::unique_ptr<llvm::Module>> pieces;
  if (!llvm::all_of(module->functions(), [](const llvm::Function &f) { return f.isDeclaration() || f.use_empty(); })) {
    pieces.push_back(std::move(module));
    return pieces;
  }
  for (const llvm::Function &function : module->functions())
    if (!function.isDeclaration()) {
      llvm::ValueToValueMapTy values;
      pieces.push_back(llvm::CloneModule(*module, values, [&](const llvm::GlobalValue *value) {
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
