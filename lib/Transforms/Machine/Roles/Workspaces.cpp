// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accumulators from and to workspaces that lie tile by tile: each thread moves two neighbours at once, so that a quad
/// moves 32 bytes of a row.
#include "../../Buffers/Addressing.h"
#include "RoleBody.h"
#include "WarpInstructions.h"

using namespace mlir;
using namespace lacis;

/// Where element `own` of a thread (i32) is in the tile `place`.
static Value tileElement(OpBuilder &b, Location loc, AccType type, Value workspace, Value place, Value own) {
  Value size = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(type.getRows() * type.getColumns()));
  Value first = arith::MulIOp::create(b, loc, castInteger(b, loc, place, b.getI64Type()), size);
  Value element = arith::AddIOp::create(b, loc, first, castInteger(b, loc, own, b.getI64Type()));
  return elementAddress(b, loc, workspace, element, type.getElementType());
}

static Value pairAddress(OpBuilder &b, Location loc, Value base, int64_t offset) {
  auto place = static_cast<int32_t>(offset);
  return LLVM::GEPOp::create(b, loc, base.getType(), b.getF32Type(), base, ArrayRef<LLVM::GEPArg>{place});
}

/// The pairs of a thread in the tile `place` of a workspace; the first is an address.
FailureOr<RoleBody::TilePairs> RoleBody::pairsAt(OpBuilder &b, Operation *op, AccType type, Value workspace,
                                                 Value place) {
  FailureOr<TilePairs> own = tilePairs(b, op, type);
  if (succeeded(own))
    own->first = tileElement(b, op->getLoc(), type, mapping.lookupOrDefault(workspace), mapping.lookupOrDefault(place),
                             own->first);
  return own;
}

LogicalResult RoleBody::lower(OpBuilder &b, LoadAccOp op) {
  Location loc = op.getLoc();
  WarpInstructions i(b, loc);
  FailureOr<TilePairs> own = pairsAt(b, op, op.getAcc().getType(), op.getSource(), op.getPlace());
  if (failed(own))
    return failure();
  Pieces values;
  for (int64_t offset : own->offsets) {
    Value both =
        LLVM::LoadOp::create(b, loc, VectorType::get(2, b.getF32Type()), pairAddress(b, loc, own->first, offset),
                             /*alignment=*/8);
    for (int64_t side : {0, 1})
      values.push_back(LLVM::ExtractElementOp::create(b, loc, both, i.constant(side)));
  }
  if (op.getOnto())
    for (auto [value, before] : llvm::zip(values, pieces(op.getOnto())))
      value = arith::AddFOp::create(b, loc, before, value);
  setPieces(op.getAcc(), values);
  return success();
}

LogicalResult RoleBody::lower(OpBuilder &b, StoreAccOp op) {
  Location loc = op.getLoc();
  WarpInstructions i(b, loc);
  FailureOr<TilePairs> own = pairsAt(b, op, op.getAcc().getType(), op.getTarget(), op.getPlace());
  if (failed(own))
    return failure();
  Pieces values = pieces(op.getAcc());
  for (auto [n, offset] : llvm::enumerate(own->offsets)) {
    Value both = LLVM::PoisonOp::create(b, loc, VectorType::get(2, b.getF32Type()));
    for (int64_t side : {0, 1})
      both = LLVM::InsertElementOp::create(b, loc, both, values[2 * n + side], i.constant(side));
    LLVM::StoreOp::create(b, loc, both, pairAddress(b, loc, own->first, offset), /*alignment=*/8);
  }
  return success();
}
