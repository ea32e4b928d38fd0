// SPDX-License-Identifier: Apache-2.0
/// \file
/// A module's functions in modules of their own, so that each becomes code apart from the others.
#include "TakeApart.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace lacis;
using namespace mlir;

StringRef lacis::nameOf(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>())
    return function.getName();
  return "module";
}

/// Others may know such a function by its name alone.
static bool staysAlone(FunctionOpInterface function, Region *module, Apart which) {
  auto helper = dyn_cast<LLVM::LLVMFuncOp>(function.getOperation());
  return (which == Apart::All && helper && helper.getNoInline()) || SymbolTable::symbolKnownUseEmpty(function, module);
}

/// Declares the functions that a piece calls and that have become pieces of their own.
static void declareCallees(ModuleOp piece, ArrayRef<FunctionOpInterface> functions) {
  for (FunctionOpInterface callee : functions)
    if (!piece.lookupSymbol(callee.getName()) &&
        !SymbolTable::symbolKnownUseEmpty(callee.getNameAttr(), &piece.getBodyRegion()))
      piece.push_back(callee->cloneWithoutRegions());
}

std::vector<OwningOpRef<ModuleOp>> lacis::takeApart(OwningOpRef<ModuleOp> module, Apart which) {
  module->getOperation()->removeDiscardableAttr("lacis.artifact");
  auto functions = llvm::to_vector(module->getOps<FunctionOpInterface>());
  for (FunctionOpInterface function : functions)
    for (StringRef told : {"lacis.steps", "lacis.remarks"})
      function->removeDiscardableAttr(told);
  std::vector<OwningOpRef<ModuleOp>> pieces;
  Region *body = &module->getBodyRegion();
  if (!llvm::all_of(functions, [&](FunctionOpInterface function) { return staysAlone(function, body, which); })) {
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
