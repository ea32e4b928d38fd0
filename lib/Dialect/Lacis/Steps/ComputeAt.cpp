// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest that empties a copy of the output runs inside a loop of the nest that fills it, a tile at a time:
/// for b0: for i0: s(t); for b0, i0: y = t  -->  for b0: for i0: s(tile); y = tile
/// Of a list of rows the zeros of the others are written in its strips.
#include "ListStrips.h"

#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

namespace {
/// A coordinate and what it is multiplied by in an index.
struct Term {
  LoopOp loop;
  int64_t times;
};
using Terms = SmallVector<Term, 4>;

/// The nest of a copy moves into a loop of the nest before it.
class Move {
public:
  Move(LoopOp at, LoopOp copy, Location loc) : at(at), copy(copy), loc(loc) {}

  LogicalResult run();

private:
  InFlightDiagnostic refuse() { return emitError(loc) << "compute_at: "; }
  LogicalResult findAccesses();
  LogicalResult pair(LoopOp around);
  LogicalResult checkTile(ArrayRef<Terms> axes, StringRef who);
  SmallVector<Value> inTile(OpBuilder b, ArrayRef<Terms> axes);
  void moveNest();

  LoopOp at, copy;
  Location loc;
  WorkspaceOp whole;
  SmallVector<WriteOp> writes;         // in the nest of `at`
  ReadOp read;                         // in that of the copy
  SmallVector<Terms> written, emptied; // by axis
  SmallVector<LoopOp> around;
  llvm::MapVector<LoopOp, LoopOp> pairs; // loop of the copy to the one around that takes its place
  SmallVector<int64_t> extents;          // of the tile; 0: not known yet
};
} // namespace

/// Adds the terms of an index that is a sum of multiples of loops' coordinates.
static bool addTerms(Value index, int64_t times, Terms &terms) {
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    auto loop = dyn_cast<LoopOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getCoordinate())
      return false;
    terms.push_back({loop, times});
    return true;
  }
  Operation *op = index.getDefiningOp();
  if (isa<arith::AddIOp>(op))
    return addTerms(op->getOperand(0), times, terms) && addTerms(op->getOperand(1), times, terms);
  auto factor = isa<arith::MulIOp>(op) ? getConstantIntValue(op->getOperand(1)) : std::nullopt;
  return factor && addTerms(op->getOperand(0), times * *factor, terms);
}

static FailureOr<SmallVector<Terms>> termsOf(ValueRange indices) {
  SmallVector<Terms> axes(indices.size());
  for (auto [index, terms] : llvm::zip(indices, axes))
    if (!addTerms(index, 1, terms))
      return failure();
  return axes;
}

LogicalResult Move::findAccesses() {
  copy->walk([&](ReadOp op) {
    if (auto workspace = op.getTensor().getDefiningOp<WorkspaceOp>())
      read = op, whole = workspace;
  });
  bool others = !read;
  if (read)
    for (Operation *user : whole->getUsers()) {
      auto write = dyn_cast<WriteOp>(user);
      others |= user != read && !(write && at->isProperAncestor(write));
      if (write)
        writes.push_back(write);
    }
  if (others || writes.empty())
    return refuse() << "the copy that nest '" << copy.getName() << "' empties is not filled in loop '" << at.getName()
                    << "' alone";
  auto mine = termsOf(writes.front().getIndices()), theirs = termsOf(read.getIndices());
  bool agree = succeeded(mine) && succeeded(theirs) &&
               llvm::all_of(writes, [&](WriteOp write) { return write.getIndices() == writes.front().getIndices(); });
  if (!agree)
    return refuse() << "what loop '" << at.getName() << "' fills is no sum of its loops' coordinates";
  written = *mine, emptied = *theirs;
  extents.assign(written.size(), 0);
  return success();
}

/// Finds the loop of the copy that counts the same tiles as a loop around the place.
LogicalResult Move::pair(LoopOp loop) {
  for (auto [axis, terms] : llvm::enumerate(written))
    for (Term &own : terms) {
      if (own.loop != loop)
        continue;
      for (Term &other : emptied[axis]) {
        bool sameCount = !other.loop.getTrip() || other.loop.getTrip() == loop.getTrip();
        if (other.times != own.times || !sameCount || pairs.contains(other.loop))
          continue;
        pairs[other.loop] = loop;
        extents[axis] = extents[axis] ? std::min(extents[axis], own.times) : own.times;
        return success();
      }
    }
  return refuse() << "loop '" << loop.getName() << "' and nest '" << copy.getName()
                  << "' do not count the same tiles; split both by the same factor";
}

/// The loops inside run over the tile and no further.
LogicalResult Move::checkTile(ArrayRef<Terms> axes, StringRef who) {
  for (auto [axis, terms] : llvm::enumerate(axes)) {
    int64_t last = 0;
    for (Term term : terms) {
      if (pairs.contains(term.loop) || llvm::is_contained(around, term.loop))
        continue;
      std::optional<int64_t> trip = term.loop.getTrip();
      if (!trip || !extents[axis])
        return refuse() << "loop '" << term.loop.getName() << "' " << who << " the whole of axis " << axis
                        << ", which no loop around '" << at.getName() << "' cuts into tiles; split it";
      last += term.times * (*trip - 1);
    }
    if (last >= std::max<int64_t>(extents[axis], 1))
      return refuse() << "the loops in '" << at.getName() << "' reach " << last + 1 << " elements along axis " << axis
                      << ", a tile has " << extents[axis];
  }
  return success();
}

/// The place in the tile: the index without the coordinates of loops around it.
SmallVector<Value> Move::inTile(OpBuilder b, ArrayRef<Terms> axes) {
  SmallVector<Value> indices;
  for (const Terms &terms : axes) {
    Value sum;
    for (Term term : terms) {
      if (pairs.contains(term.loop) || llvm::is_contained(around, term.loop))
        continue;
      Value part = term.loop.getCoordinate();
      if (term.times != 1)
        part = arith::MulIOp::create(b, loc, part, arith::ConstantIndexOp::create(b, loc, term.times));
      sum = sum ? arith::AddIOp::create(b, loc, sum, part).getResult() : part;
    }
    indices.push_back(sum ? sum : arith::ConstantIndexOp::create(b, loc, 0).getResult());
  }
  return indices;
}

/// Puts the copy's own loops at the end of the place; those that count tiles are the loops around it.
void Move::moveNest() {
  LoopOp main = outermostLoop(at);
  SmallVector<Operation *> sizes;
  for (Operation *op = main->getNextNode(); op != copy; op = op->getNextNode())
    if (!isa<LoopOp>(op))
      sizes.push_back(op);
  for (Operation *op : sizes)
    op->moveBefore(main);
  copy->moveBefore(at.getBlock()->getTerminator());
  for (auto [loop, outer] : pairs) {
    loop.getCoordinate().replaceAllUsesWith(outer.getCoordinate());
    loop.getBlock()->getTerminator()->erase();
    loop->getBlock()->getOperations().splice(loop->getIterator(), loop.getBlock()->getOperations());
    loop.erase();
  }
}

LogicalResult Move::run() {
  for (auto loop = at; loop; loop = loop->getParentOfType<LoopOp>())
    around.insert(around.begin(), loop);
  if (failed(findAccesses()))
    return failure();
  for (LoopOp loop : around)
    if (failed(pair(loop)))
      return failure();
  if (failed(checkTile(written, "fills")) || failed(checkTile(emptied, "empties")))
    return failure();
  OpBuilder b(at.getBlock(), at.getBlock()->begin());
  SmallVector<Value> sizes;
  for (int64_t extent : extents)
    sizes.push_back(arith::ConstantIndexOp::create(b, loc, extent));
  auto tile = WorkspaceOp::create(b, loc, whole.getType(), sizes);
  tile.setPlace(WorkspacePlace::Private);
  for (WriteOp write : writes) {
    write.getIndicesMutable().assign(inTile(OpBuilder(write), written));
    write.getTensorMutable().assign(tile);
  }
  read.getIndicesMutable().assign(inTile(OpBuilder(read), emptied));
  read.getTensorMutable().assign(tile);
  whole.erase();
  moveNest();
  return success();
}

SmallVector<StringRef> ComputeAtStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult ComputeAtStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> at = nest.require(getLoop(), "compute_at", loc);
  if (failed(at))
    return failure();
  if (beginsAsZeros(nest, getOperand())) {
    std::string why = fillInStrips(*at, loc);
    return why.empty() ? success() : LogicalResult(emitError(loc) << "compute_at: " << why);
  }
  LoopOp main = outermostLoop(*at), copy;
  for (LoopOp loop : nest.getFunction().getBody().getOps<LoopOp>())
    if (loop.getPathAttr() && loop.getPathAttr().spell() == prefixOf(getOperand()) && main->isBeforeInBlock(loop))
      copy = loop;
  if (!copy || at->getNumResults() != 0)
    return emitError(loc) << "compute_at: no nest after that of loop '" << getLoop() << "' empties a copy of '"
                          << getOperand() << "'; relayout makes one of the output";
  return Move(*at, copy, loc).run();
}
