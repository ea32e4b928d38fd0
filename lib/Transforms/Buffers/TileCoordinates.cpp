// SPDX-License-Identifier: Apache-2.0
/// \file
/// load_tile x[i64, i64]  -->  load_tile x[i32, i32]
#include "TileCoordinates.h"

#include "Addressing.h"

using namespace mlir;
using namespace lacis;

/// Does the operand count elements of an array, or is it given to arithmetic of the kernel's own width?
static bool keepsWidth(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto entries = dyn_cast<LoadEntriesOp>(op))
    return &operand == &entries.getSizeMutable();
  return isa<LoadRowsOp, LoadColumnsOp, StoreRowsOp, MapOp, LoadAccOp, StoreAccOp>(op);
}

static bool isOnTiles(Operation *op) {
  return isa<LacisDialect>(op->getDialect()) && llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TileType, AccType>);
}

void lacis::narrowTileCoordinates(func::FuncOp kernel) {
  kernel.walk([](Operation *op) {
    if (!isOnTiles(op) && !isa<LoadEntriesOp>(op))
      return;
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getType().isInteger(64) && !keepsWidth(operand))
        operand.set(castInteger(b, op->getLoc(), operand.get(), b.getI32Type()));
  });
}
