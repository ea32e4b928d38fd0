// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b in 16: for j in 16: t[j, b] = x[b, j]  -->  copy_transposed 16 of x[0, 0] to t[0, 0]
///
/// A tile that reaches past the end of an axis is copied element by element.
#include "TransposeTile.h"
#include "lacis/Transforms/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

namespace {

/// Of a tile in a tensor.
struct Axes {
  unsigned rows, along;
  bool outerAlong; // neighbours in memory are those of the outer loop
};

class TileCopy {
public:
  TileCopy(LoopOp outer, LoopOp inner) : outer(outer), inner(inner), size(*inner.getVectorize()), b(outer) {}

  LogicalResult run() {
    if (!matches())
      return outer.emitError("vectorize: loops '") << outer.getName() << "' and '" << inner.getName()
                                                   << "' stand one in the other and copy no tile to its transpose";
    outer.removeVectorizeAttr();
    inner.removeVectorizeAttr();
    if (guards.empty()) {
      copy();
      outer.erase();
      return success();
    }
    Value whole;
    for (Value guard : guards) {
      Value last = at(guard, size - 1, size - 1);
      whole = whole ? arith::AndIOp::create(b, outer.getLoc(), whole, last).getResult() : last;
    }
    auto choice = scf::IfOp::create(b, outer.getLoc(), whole, /*withElseRegion=*/true);
    outer->moveBefore(choice.elseBlock(), choice.elseBlock()->begin());
    b.setInsertionPointToStart(choice.thenBlock());
    copy();
    return success();
  }

private:
  bool matches() {
    if (outer.getNumResults() != 0 || inner.getNumResults() != 0 || int64_t(*outer.getVectorize()) != size ||
        !llvm::isPowerOf2_64(size) || &outer.getBlock()->front() != inner.getOperation() ||
        std::next(outer.getBlock()->begin()) != std::prev(outer.getBlock()->end()))
      return false;
    WalkResult walked = inner.getRegion().walk([&](Operation *op) { return take(op); });
    return !walked.wasInterrupted() && read && write && isWhatWasRead(write.getValue()) &&
           (source = axesOf(read.getTensor(), read.getIndices())) &&
           (target = axesOf(write.getTensor(), write.getIndices())) && source->outerAlong != target->outerAlong;
  }

  WalkResult take(Operation *op) {
    bool known =
        llvm::TypeSwitch<Operation *, bool>(op)
            .Case([&](ReadOp found) { return !std::exchange(read, found) && !found.getAlong(); })
            .Case([&](WriteOp found) {
              return !std::exchange(write, found) && !found.getAlong() && !found.getAtomic();
            })
            .Case([&](scf::IfOp guard) { return guards.push_back(guard.getCondition()), grows(guard.getCondition()); })
            .Case<scf::YieldOp, YieldOp>([](auto) { return true; })
            .Default([](Operation *other) { return other->getNumRegions() == 0 && isPure(other); });
    return known ? WalkResult::advance() : WalkResult::interrupt();
  }

  bool isWhatWasRead(Value value) {
    while (auto guard = value.getDefiningOp<scf::IfOp>())
      value = guard.thenYield().getOperand(cast<OpResult>(value).getResultNumber());
    return value == read.getResult();
  }

  bool varies(Value value) {
    if (value == outer.getCoordinate() || value == inner.getCoordinate())
      return true;
    Operation *op = value.getDefiningOp();
    return op && outer->isAncestor(op) && llvm::any_of(op->getOperands(), [&](Value v) { return varies(v); });
  }

  /// A guard that holds for the last element of a tile holds for all; a value that is largest for the last.
  bool grows(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op))
      return compare.getPredicate() == arith::CmpIPredicate::slt && grows(compare.getLhs()) &&
             !varies(compare.getRhs());
    bool sums = isa_and_nonnull<arith::AndIOp, arith::AddIOp, arith::MulIOp>(op);
    return !varies(value) || !op || (sums && llvm::all_of(op->getOperands(), [&](Value v) { return grows(v); }));
  }

  /// `coordinate` plus what does not depend on it.
  bool isConsecutive(Value value, Value coordinate) {
    auto sum = value.getDefiningOp<arith::AddIOp>();
    return value == coordinate || (sum && ((isConsecutive(sum.getLhs(), coordinate) && !varies(sum.getRhs())) ||
                                           (isConsecutive(sum.getRhs(), coordinate) && !varies(sum.getLhs()))));
  }

  /// Along which axis neighbours lie side by side in memory, along which these rows begin; nothing where it is neither.
  std::optional<Axes> axesOf(Value tensor, ValueRange indices) {
    auto type = cast<RankedTensorType>(tensor.getType());
    unsigned along = type.getRank() - 1;
    if (type.getEncoding()) {
      ArrayRef<Digit> last = formatOf(tensor).getLevels().back().getDigits();
      if (last.size() != 1 || last[0].div != 1 || (last[0].mod && last[0].mod % size != 0))
        return std::nullopt;
      along = last[0].axis;
    }
    for (bool outerAlong : {true, false}) {
      Value within = outer.getCoordinate(), across = inner.getCoordinate();
      if (!outerAlong)
        std::swap(within, across);
      for (unsigned rows = 0; rows < indices.size(); ++rows)
        if (rows != along && isConsecutive(indices[along], within) && isConsecutive(indices[rows], across))
          return Axes{rows, along, outerAlong};
    }
    return std::nullopt;
  }

  /// A value of the body at one element of the tile, computed where the builder stands.
  Value at(Value value, int64_t row, int64_t column) {
    IRMapping mapping;
    mapping.map(outer.getCoordinate(), arith::ConstantIndexOp::create(b, outer.getLoc(), row).getResult());
    mapping.map(inner.getCoordinate(), arith::ConstantIndexOp::create(b, outer.getLoc(), column).getResult());
    return cloned(value, mapping);
  }

  Value cloned(Value value, IRMapping &mapping) {
    Operation *op = value.getDefiningOp();
    if (mapping.contains(value) || !op || !outer->isAncestor(op))
      return mapping.lookupOrDefault(value);
    for (Value operand : op->getOperands())
      cloned(operand, mapping);
    b.clone(*op, mapping);
    return mapping.lookup(value);
  }

  SmallVector<Value> first(ValueRange indices) {
    return llvm::map_to_vector(indices, [&](Value index) { return at(index, 0, 0); });
  }

  void copy() {
    CopyTransposedOp::create(b, outer.getLoc(), read.getTensor(), first(read.getIndices()), write.getTensor(),
                             first(write.getIndices()), size, source->rows, source->along, target->rows, target->along);
  }

  LoopOp outer, inner;
  int64_t size;
  OpBuilder b;
  ReadOp read;
  WriteOp write;
  SmallVector<Value> guards;
  std::optional<Axes> source, target;
};

} // namespace

LogicalResult lacis::transposeTile(LoopOp outer, LoopOp inner) { return TileCopy(outer, inner).run(); }
