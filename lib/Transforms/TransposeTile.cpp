// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b in 16: for j in 16: t[j, b] = x[b, j]  -->  16 vectors x[b, :], transposed in registers to 16 vectors t[j, :]
///
/// A tile that reaches past the end of an axis is copied element by element.
#include "TransposeTile.h"
#include "lacis/Transforms/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

namespace {

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
           (readOuter = runsAlong(read.getTensor(), read.getIndices())) &&
           (writeOuter = runsAlong(write.getTensor(), write.getIndices())) && *readOuter != *writeOuter;
  }

  WalkResult take(Operation *op) {
    bool known =
        llvm::TypeSwitch<Operation *, bool>(op)
            .Case([&](ReadOp found) { return !std::exchange(read, found) && !found.getAlong(); })
            .Case([&](WriteOp found) {
              return !std::exchange(write, found) && !found.getAlong() && found->getDiscardableAttrDictionary().empty();
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

  /// Is it the outer loop whose neighbours are neighbours in memory, or the inner one? Nothing where neither is.
  std::optional<bool> runsAlong(Value tensor, ValueRange indices) {
    auto type = cast<RankedTensorType>(tensor.getType());
    unsigned axis = type.getRank() - 1;
    if (type.getEncoding()) {
      ArrayRef<Digit> last = formatOf(tensor).getLevels().back().getDigits();
      if (last.size() != 1 || last[0].div != 1 || (last[0].mod && last[0].mod % size != 0))
        return std::nullopt;
      axis = last[0].axis;
    }
    for (bool isOuter : {true, false})
      if (isConsecutive(indices[axis], isOuter ? outer.getCoordinate() : inner.getCoordinate()))
        return isOuter;
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

  /// Where the vector number `n` begins that runs along the outer loop or the inner one, and its axis.
  std::pair<SmallVector<Value>, IntegerAttr> place(ValueRange indices, bool alongOuter, int64_t n) {
    SmallVector<Value> places;
    int64_t axis = 0;
    for (auto [number, index] : llvm::enumerate(indices)) {
      places.push_back(alongOuter ? at(index, 0, n) : at(index, n, 0));
      if (isConsecutive(index, alongOuter ? outer.getCoordinate() : inner.getCoordinate()))
        axis = number;
    }
    return {places, b.getI64IntegerAttr(axis)};
  }

  void copy() {
    Location loc = outer.getLoc();
    auto type = VectorType::get({size}, read.getType());
    SmallVector<Value> rows;
    for (int64_t n = 0; n < size; ++n) {
      auto [places, axis] = place(read.getIndices(), *readOuter, n);
      rows.push_back(ReadOp::create(b, loc, type, read.getTensor(), places, Value(), axis));
    }
    transpose(rows);
    for (int64_t n = 0; n < size; ++n) {
      auto [places, axis] = place(write.getIndices(), *writeOuter, n);
      WriteOp::create(b, loc, rows[n], write.getTensor(), places, Value(), axis);
    }
  }

  /// Halves of ever smaller squares change places.
  void transpose(MutableArrayRef<Value> rows) {
    for (int64_t half = size / 2; half > 0; half /= 2)
      for (int64_t row = 0; row < size; ++row) {
        if (row & half)
          continue;
        SmallVector<int64_t> low, high;
        for (int64_t lane = 0; lane < size; ++lane) {
          low.push_back(lane & half ? size + lane - half : lane);
          high.push_back(lane & half ? size + lane : lane + half);
        }
        Value first = rows[row], second = rows[row + half];
        rows[row] = vector::ShuffleOp::create(b, outer.getLoc(), first, second, low);
        rows[row + half] = vector::ShuffleOp::create(b, outer.getLoc(), first, second, high);
      }
  }

  LoopOp outer, inner;
  int64_t size;
  OpBuilder b;
  ReadOp read;
  WriteOp write;
  SmallVector<Value> guards;
  std::optional<bool> readOuter, writeOuter; // neighbours in memory are those of the outer loop
};

} // namespace

LogicalResult lacis::transposeTile(LoopOp outer, LoopOp inner) { return TileCopy(outer, inner).run(); }
