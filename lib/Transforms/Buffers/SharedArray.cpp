// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared memory of a block.
#include "SharedArray.h"

using namespace mlir;
using namespace lacis;

Value lacis::sharedArray(OpBuilder &b, func::FuncOp function, int64_t bytes) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string name;
  for (unsigned number = 0; number == 0 || module.lookupSymbol(name); ++number)
    name = (function.getName() + "_shared" + Twine(number)).str();
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
  LLVM::GlobalOp::create(top, function.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                         kSharedAlignment, kSharedSpace);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  return LLVM::AddressOfOp::create(b, function.getLoc(), pointer, name);
}
