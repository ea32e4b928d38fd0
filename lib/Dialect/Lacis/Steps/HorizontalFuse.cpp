// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s += ell; s += rest  -->  for i: for ell_rest in 2: s += part(ell_rest)
///
/// The parts of a sum become the iterations of one loop that carries it, so that units run them side by side.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// The loops of a part that are in no other loop of it.
static SmallVector<Operation *> loopsOf(Nest &nest, StringRef part) {
  SmallVector<Operation *> found;
  nest.getFunction().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isInPart(op, part))
      return WalkResult::advance();
    found.push_back(op);
    return WalkResult::skip();
  });
  return found;
}

/// The one loop of each part, where each carries on the sum of the part before; else says why not.
static FailureOr<SmallVector<Operation *>> chainOf(Nest &nest, ArrayRef<StringRef> parts, Location loc) {
  SmallVector<Operation *> chain;
  for (StringRef part : parts) {
    SmallVector<Operation *> loops = loopsOf(nest, part);
    if (loops.size() != 1 || loops[0]->getNumResults() != 1)
      return emitError(loc) << "horizontal_fuse: part '" << part << "' is not one loop that carries the sum";
    auto own = dyn_cast<LoopOp>(loops[0]);
    if (own && isMarked(own))
      return emitError(loc) << "horizontal_fuse: loop '" << own.getName() << "' is marked already";
    bool follows = chain.empty() || (chain.back()->getBlock() == loops[0]->getBlock() && chain.back()->hasOneUse() &&
                                     *chain.back()->user_begin() == loops[0]);
    if (!follows)
      return emitError(loc) << "horizontal_fuse: part '" << part << "' does not follow part '"
                            << parts[chain.size() - 1] << "' in the nest; neighbours run side by side, in their order";
    chain.push_back(loops[0]);
  }
  return chain;
}

/// The parts from number `which` on: each where the coordinate says so.
static Value choose(OpBuilder &b, LoopOp all, ArrayRef<Operation *> chain, size_t which) {
  Location loc = all.getLoc();
  auto place = [&](OpBuilder &at) {
    Operation *loop = chain[which];
    loop->moveBefore(at.getInsertionBlock(), at.getInsertionPoint());
    loop->setOperand(loop->getNumOperands() - 1, all.getIterArgs()[0]);
    return loop->getResult(0);
  };
  if (which + 1 == chain.size())
    return place(b);
  Value number = arith::ConstantIndexOp::create(b, loc, which);
  Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, all.getCoordinate(), number);
  auto choice = scf::IfOp::create(b, loc, all.getResultTypes(), is, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(choice.thenBlock()), otherwise = OpBuilder::atBlockEnd(choice.elseBlock());
  scf::YieldOp::create(then, loc, place(then));
  scf::YieldOp::create(otherwise, loc, choose(otherwise, all, chain, which + 1));
  return choice.getResult(0);
}

/// Loops of parts, none of the main nest.
SmallVector<StringRef> HorizontalFuseStepAttr::namedLoops() const {
  SmallVector<StringRef> names(getParts().getAsValueRange<StringAttr>());
  return names.empty() ? SmallVector<StringRef>{""} : names;
}

LogicalResult HorizontalFuseStepAttr::apply(Nest &nest, Location loc) const {
  SmallVector<StringRef> known = nest.parts(), parts;
  for (Attribute attr : getParts()) {
    auto name = dyn_cast<StringAttr>(attr);
    if (!name || !llvm::is_contained(known, name.getValue())) {
      auto diagnostic = emitError(loc) << "horizontal_fuse: no part " << attr << " of a sum; ";
      if (known.empty())
        return diagnostic << "no operand is one, see decompose";
      diagnostic << "parts are ";
      llvm::interleaveComma(known, diagnostic, [&](StringRef part) { diagnostic << "'" << part << "'"; });
      return diagnostic;
    }
    parts.push_back(name.getValue());
  }
  if (parts.empty())
    parts = known;
  if (parts.size() < 2)
    return emitError(loc) << "horizontal_fuse: side by side run two parts of a sum, or more, see decompose";
  FailureOr<SmallVector<Operation *>> chain = chainOf(nest, parts, loc);
  if (failed(chain))
    return failure();
  OpBuilder b(chain->front());
  // What the parts are walked by is found before the first of them.
  for (Operation *op = chain->front(); op != chain->back();) {
    Operation *next = op->getNextNode();
    if (!llvm::is_contained(*chain, op))
      op->moveBefore(chain->front());
    op = next;
  }
  Value size = arith::ConstantIndexOp::create(b, loc, parts.size());
  Value before = chain->front()->getOperands().back();
  auto all = LoopOp::create(b, loc, llvm::join(parts, "_"), size, before, reductionOf(chain->front()));
  chain->back()->getResult(0).replaceAllUsesWith(all.getResult(0));
  OpBuilder body = OpBuilder::atBlockEnd(all.getBlock());
  YieldOp::create(body, loc, choose(body, all, *chain, 0));
  return success();
}
