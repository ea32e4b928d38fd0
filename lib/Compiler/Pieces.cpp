// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pieces of a module that become code apart from each other: one function each, or all where one calls another.
#include "Pieces.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

/// Others may know such a function by its name alone.
static bool staysAlone(FunctionOpInterface function, Region *module) {
  auto helper = dyn_cast<LLVM::LLVMFuncOp>(function.getOperation());
  return (helper && helper.getNoInline()) || SymbolTable::symbolKnownUseEmpty(function, module);
}

/// Declares the functions that a piece calls and that have become pieces of their own.
static void declareCallees(ModuleOp piece, ArrayRef<FunctionOpInterface> functions) {
  for (FunctionOpInterface callee : functions)
    if (!piece.lookupSymbol(callee.getName()) &&
        !SymbolTable::symbolKnownUseEmpty(callee.getNameAttr(), &piece.getBodyRegion()))
      piece.push_back(callee->cloneWithoutRegions());
}

std::vector<OwningOpRef<ModuleOp>> lacis::takeApart(OwningOpRef<ModuleOp> module) {
  module->getOperation()->removeDiscardableAttr("lacis.artifact");
  auto functions = llvm::to_vector(module->getOps<FunctionOpInterface>());
  for (FunctionOpInterface function : functions)
    function->removeDiscardableAttr("lacis.steps");
  std::vector<OwningOpRef<ModuleOp>> pieces;
  Region *body = &module->getBodyRegion();
  if (!llvm::all_of(functions, [&](FunctionOpInterface function) { return staysAlone(function, body); })) {
    pieces.push_back(std::move(module));
    return pieces;
  }
  for (FunctionOpInterface function : functions)
    function->remove();
  for (FunctionOpInterface function : functions) {
    pieces.emplace_back(module->clone());
    pieces.back()->getBody()->push_back(function);
    declareCallees(*pieces.back(), functions);
  }
  return pieces;
}

std::vector<std::unique_ptr<llvm::Module>> lacis::takeApart(std::unique_ptr<llvm::Module> module) {
  std::vector<std::unique_ptr<llvm::Module>> pieces;
  bool apart = llvm::all_of(module->functions(), [](const llvm::Function &function) {
    return function.isDeclaration() || function.use_empty() || function.hasFnAttribute(llvm::Attribute::NoInline);
  });
  if (!apart) {
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
