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
    return variesWith(value, outer.getCoordinate()) || variesWith(value, inner.getCoordinate());
  }

  bool variesWith(Value value, Value coordinate) {
    Operation *op = value.getDefiningOp();
    return value == coordinate || (op && outer->isAncestor(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
                                     return variesWith(operand, coordinate);
                                   }));
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
    return cloned(value, outer.getCoordinate(), mapping, mapping);
  }

  /// A copy of a value: from `mapping` what varies with `coordinate`, the rest from `shared`.
  Value cloned(Value value, Value coordinate, IRMapping &mapping, IRMapping &shared) {
    IRMapping &own = variesWith(value, coordinate) ? mapping : shared;
    Operation *op = value.getDefiningOp();
    if (own.contains(value) || !op || !outer->isAncestor(op))
      return own.lookupOrDefault(value);
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, cloned(operand, coordinate, mapping, shared));
    Operation *copy = b.clone(*op, operands);
    own.map(op->getResults(), copy->getResults());
    return own.lookup(value);
  }

  /// Where the vectors begin that run along the outer loop or the inner one, and their axis.
  std::pair<SmallVector<SmallVector<Value>>, IntegerAttr> places(ValueRange indices, bool alongOuter) {
    Value along = outer.getCoordinate(), across = inner.getCoordinate();
    if (!alongOuter)
      std::swap(along, across);
    IRMapping first; // what all vectors share
    first.map(along, arith::ConstantIndexOp::create(b, outer.getLoc(), 0).getResult());
    SmallVector<SmallVector<Value>> places(size);
    for (int64_t n = 0; n < size; ++n) {
      IRMapping mapping;
      mapping.map(across, arith::ConstantIndexOp::create(b, outer.getLoc(), n).getResult());
      for (Value index : indices)
        places[n].push_back(cloned(index, across, mapping, first));
    }
    auto axis = llvm::find_if(indices, [&](Value index) { return isConsecutive(index, along); });
    return {places, b.getI64IntegerAttr(std::distance(indices.begin(), axis))};
  }

  void copy() {
    Location loc = outer.getLoc();
    auto type = VectorType::get({size}, read.getType());
    SmallVector<Value> rows;
    auto [sources, readAxis] = places(read.getIndices(), *readOuter);
    for (ValueRange source : sources)
      rows.push_back(ReadOp::create(b, loc, type, read.getTensor(), source, Value(), readAxis));
    transpose(rows);
    auto [targets, writeAxis] = places(write.getIndices(), *writeOuter);
    for (auto [row, place] : llvm::zip(rows, targets))
      WriteOp::create(b, loc, row, write.getTensor(), place, Value(), writeAxis);
  }

  /// Rows are interleaved within parts of 128 bits, then whole parts sorted: each step is one instruction of AVX.
  void transpose(MutableArrayRef<Value> rows) {
    int64_t part = std::clamp<int64_t>(128 / read.getType().getIntOrFloatBitWidth(), 1, size);
    for (int64_t run = 1; run < part; run *= 2)
      exchange(rows, run, part / 2, [&](int64_t lane) {
        int64_t at = lane % part, second = at / run % 2;
        return lane - at + at / run / 2 * run + at % run + second * size;
      });
    for (int64_t run = part; run < size; run *= 2)
      exchange(rows, run, part, [&](int64_t lane) { return lane + lane / part * part; });
    for (int64_t row = 0; row < size; ++row) // what was interleaved lies in the order of reversed bits
      if (int64_t other = row - row % part + reversed(row % part, part); other > row)
        std::swap(rows[row], rows[other]);
  }

  /// Each pair of rows `distance` apart becomes the lanes `source` of both, and those `further` on.
  void exchange(MutableArrayRef<Value> rows, int64_t distance, int64_t further,
                llvm::function_ref<int64_t(int64_t)> source) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < size; ++lane) {
      low.push_back(source(lane));
      high.push_back(source(lane) + further);
    }
    for (int64_t row = 0; row < size; ++row) {
      if (row & distance)
        continue;
      Value first = rows[row], second = rows[row + distance];
      rows[row] = vector::ShuffleOp::create(b, outer.getLoc(), first, second, low);
      rows[row + distance] = vector::ShuffleOp::create(b, outer.getLoc(), first, second, high);
    }
  }

  static int64_t reversed(int64_t number, int64_t end) {
    int64_t result = 0;
    for (int64_t bit = 1; bit < end; bit *= 2, number /= 2)
      result = 2 * result + number % 2;
    return result;
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
