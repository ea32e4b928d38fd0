// SPDX-License-Identifier: Apache-2.0
/// \file
/// for k0: y += x[f(k0)]  -->  for k0: t = x[tile], by all threads of the block; y += t[f]
///
/// Guards that only some threads pass move inside the loop, so that all of them load and meet at the barriers.
#include "../Buffers/SharedArray.h"
#include "../Buffers/Footprint.h"
#include "lacis/Transforms/Passes.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace lacis {
#define GEN_PASS_DEF_LACISSTAGEOPERANDS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// The tile of one tensor, and who reads it.
struct Tile {
  SmallVector<ReadOp> reads;
  SmallVector<IndexRange> box;  // by axis
  SmallVector<int64_t> filled;  // what is read, by axis
  SmallVector<int64_t> extents; // of the tile: that of the last axis in its order is padded
  SmallVector<unsigned> order;  // of the axes of the tile; vectors run along the last
};

class StagedLoop {
public:
  explicit StagedLoop(LoopOpInterface round)
      : round(round), name(round.getName()), loc(round->getLoc()), footprint(round) {}

  LogicalResult run(int64_t &bytes);

private:
  InFlightDiagnostic refuse() { return emitError(loc) << "stage: "; }
  LogicalResult checkAround();
  LogicalResult pushGuards();
  LogicalResult pushInto(scf::IfOp guard, Operation *inner);
  LogicalResult findTiles();
  LogicalResult addToBox(Tile &tile, ReadOp read);
  Value makeTile(OpBuilder &b, Type element, Tile &tile);
  void fill(OpBuilder &b, Value source, Value target, Tile &tile);

  LoopOpInterface round;
  std::string name;
  Location loc;
  Footprint footprint;
  llvm::MapVector<Value, Tile> tiles;
};

} // namespace

static Block *bodyOf(Operation *op) { return &op->getRegion(0).front(); }

/// The threads of a block run the loops around together.
LogicalResult StagedLoop::checkAround() {
  if (auto own = dyn_cast<LoopOp>(round.getOperation()); own && isOnThreads(own))
    return refuse() << "loop '" << name << "' runs on '" << stringifyParallelUnit(*own.getBind())
                    << "'; the threads of a block load together, in a loop that all of them run";
  for (Operation *op = round; !isa<func::FuncOp>(op); op = op->getParentOp()) {
    auto loop = dyn_cast<LoopOp>(op);
    auto walk = dyn_cast<LevelLoopOp>(op);
    if ((loop && !footprint.isCommon(loop.getUpper())) || (walk && !footprint.isCommon(walk.getParent())))
      return refuse() << "how often loop '" << cast<LoopOpInterface>(op).getName()
                      << "' runs differs between the threads of a block, which load together at '" << name << "'";
  }
  return success();
}

/// A guard around `inner` moves into its body; what stands beside it gets a guard of its own.
LogicalResult StagedLoop::pushInto(scf::IfOp guard, Operation *inner) {
  Block *then = guard.thenBlock();
  for (Operation &op : llvm::make_early_inc_range(llvm::make_range(then->begin(), inner->getIterator()))) {
    auto locate = dyn_cast<LocateOp>(op); // a link is stored
    bool loadsNothing = isa<arith::ArithDialect>(op.getDialect()) || (locate && !locate.getDigits().empty());
    bool common = llvm::all_of(op.getOperands(), [&](Value v) { return footprint.isCommon(v); });
    if (!isPure(&op) || op.getNumRegions() != 0 || !(common || loadsNothing))
      return refuse() << "before loop '" << name << "' stands what only some threads of a block may do ('" << op.getName()
                      << "')";
    op.moveBefore(guard);
  }
  inner->moveBefore(guard);
  OpBuilder b(inner);
  Block *body = bodyOf(inner);
  Operation *end = body->getTerminator();
  SmallVector<Value> yielded(end->getOperands()), carried;
  if (!isa<scf::IfOp>(inner))
    carried.assign(std::prev(body->args_end(), yielded.size()), body->args_end());
  b.setInsertionPointToStart(body);
  auto own = scf::IfOp::create(b, guard.getLoc(), ValueRange(yielded).getTypes(), guard.getCondition(),
                               /*addThenBlock=*/true, /*addElseBlock=*/!yielded.empty());
  Block *inside = own.thenBlock();
  inside->getOperations().splice(inside->end(), body->getOperations(), std::next(own->getIterator()), end->getIterator());
  OpBuilder in = OpBuilder::atBlockEnd(inside);
  scf::YieldOp::create(in, guard.getLoc(), yielded);
  if (!yielded.empty()) {
    OpBuilder out = OpBuilder::atBlockEnd(own.elseBlock());
    scf::YieldOp::create(out, guard.getLoc(), carried);
    end->setOperands(own.getResults());
  }
  if (guard.getNumResults() == 0 && then->without_terminator().empty())
    guard.erase();
  return success();
}

LogicalResult StagedLoop::pushGuards() {
  for (Operation *op = round->getParentOp(), *inner = round; !isa<func::FuncOp>(op);) {
    auto guard = dyn_cast<scf::IfOp>(op);
    Operation *around = op->getParentOp();
    if (!guard || footprint.isCommon(guard.getCondition())) {
      inner = op, op = around;
      continue;
    }
    if (isa<scf::IfOp>(inner) && inner->getNumResults() != 0)
      return refuse() << "loop '" << name << "' stands under a guard that only some threads of a block pass";
    if (inner->getParentRegion() != &guard.getThenRegion() || failed(pushInto(guard, inner)))
      return inner->getParentRegion() != &guard.getThenRegion()
                 ? refuse() << "loop '" << name << "' stands where a guard fails"
                 : failure();
    op = round->getParentOp(), inner = round; // what was pushed may stand around the loop again
  }
  return success();
}

LogicalResult StagedLoop::addToBox(Tile &tile, ReadOp read) {
  for (auto [axis, index] : llvm::enumerate(read.getIndices())) {
    std::optional<IndexRange> range = footprint.rangeOf(index);
    if (!range)
      return refuse() << "axis " << axis << " of the operand is read at coordinates that loop '" << name
                      << "' does not know when it begins (they are found inside, or have no constant range)";
    if (auto vector = dyn_cast<VectorType>(read.getType()); vector && read.getAlong() == axis)
      range->hi += vector.getDimSize(0) - 1;
    if (tile.reads.empty()) {
      tile.box.push_back(*range);
      continue;
    }
    IndexRange &box = tile.box[axis];
    if (!haveSameBegin(box, *range))
      return refuse() << "axis " << axis << " of the operand is read in two places that are not a constant apart";
    box.lo = std::min(box.lo, range->lo), box.hi = std::max(box.hi, range->hi);
  }
  tile.reads.push_back(read);
  return success();
}

/// The axes of a tensor, the one that neighbours in memory run along last; or `last`.
static SmallVector<unsigned> orderOf(Value tensor, std::optional<unsigned> last) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (auto layout = dyn_cast_or_null<FormatAttr>(type.getEncoding()); layout && !last)
    last = layout.getLevels().back().getDigits().back().axis;
  SmallVector<unsigned> order;
  for (unsigned axis = 0; axis < type.getRank(); ++axis)
    if (axis != last)
      order.push_back(axis);
  if (last)
    order.push_back(*last);
  return order;
}

LogicalResult StagedLoop::findTiles() {
  WalkResult walked = round->walk([&](ReadOp read) {
    bool isOwn = read.getStaged() == StringRef(name);
    return isOwn && failed(addToBox(tiles[read.getTensor()], read)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (auto &[tensor, tile] : tiles) {
    int64_t lanes = 1;
    std::optional<unsigned> along;
    for (ReadOp read : tile.reads) {
      auto vector = dyn_cast<VectorType>(read.getType());
      if (vector && along.value_or(*read.getAlong()) != *read.getAlong())
        return refuse() << "vectors run along two axes of the operand; a tile has them along one";
      if (vector)
        lanes = std::max(lanes, vector.getDimSize(0)), along = *read.getAlong();
    }
    for (IndexRange &range : tile.box)
      tile.filled.push_back(range.hi - range.lo + 1);
    tile.order = orderOf(tensor, along);
    // Rows begin in different banks.
    tile.extents = tile.filled;
    int64_t &row = tile.extents[tile.order.back()];
    if (tile.extents.size() > 1)
      row = lanes * (static_cast<int64_t>(llvm::divideCeil(row, lanes)) | 1);
  }
  return success();
}

static int64_t sizeOf(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<int64_t>());
}

Value StagedLoop::makeTile(OpBuilder &b, Type element, Tile &tile) {
  return lacis::makeTile(b, loc, element, tile.extents, WorkspacePlace::Shared, tile.order);
}

/// All threads of the block copy the tile; what lies outside of the operand is zero.
void StagedLoop::fill(OpBuilder &b, Value source, Value target, Tile &tile) {
  auto constant = [&](OpBuilder &at, int64_t value) { return arith::ConstantIndexOp::create(at, loc, value).getResult(); };
  SmallVector<Value> begins;
  for (IndexRange &range : tile.box)
    begins.push_back(footprint.begin(b, range));
  auto loop = LoopOp::create(b, loc, {"tile", nestOf(b.getContext(), round.getLoopName())}, constant(b, sizeOf(tile.filled)));
  loop.setBind(ParallelUnit::Threads);
  OpBuilder body = OpBuilder::atBlockEnd(loop.getBlock());
  Value rest = loop.getCoordinate(), inside;
  SmallVector<Value> to(tile.filled.size()), from(tile.filled.size());
  SmallVector<unsigned> order = orderOf(source, std::nullopt); // neighbouring threads read neighbours
  for (unsigned axis : llvm::reverse(order)) {
    Value extent = constant(body, tile.filled[axis]);
    to[axis] = axis == order.front() ? rest : arith::RemUIOp::create(body, loc, rest, extent).getResult();
    rest = arith::DivUIOp::create(body, loc, rest, extent);
    from[axis] = arith::AddIOp::create(body, loc, begins[axis], to[axis]);
    auto workspace = source.getDefiningOp<WorkspaceOp>();
    OpBuilder top(outermostLoop(loop));
    Value size = workspace ? workspace.getSizes()[axis]
                           : tensor::DimOp::create(top, loc, source, static_cast<int64_t>(axis)).getResult();
    Value below = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, from[axis], size);
    inside = inside ? arith::AndIOp::create(body, loc, inside, below).getResult() : below;
  }
  Type element = cast<RankedTensorType>(source.getType()).getElementType();
  auto guard = scf::IfOp::create(body, loc, element, inside, /*withElseRegion=*/true);
  OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
  Value loaded = ReadOp::create(then, loc, element, source, from, Value(), IntegerAttr());
  scf::YieldOp::create(then, loc, loaded);
  Value zero = arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(element));
  scf::YieldOp::create(otherwise, loc, zero);
  WriteOp::create(body, loc, guard.getResult(0), target, to, Value(), IntegerAttr());
  YieldOp::create(body, loc);
}

LogicalResult StagedLoop::run(int64_t &bytes) {
  if (failed(checkAround()) || failed(pushGuards()) || failed(findTiles()))
    return failure();
  OpBuilder b = OpBuilder::atBlockBegin(bodyOf(round));
  for (auto &[source, tile] : tiles) {
    Type element = cast<RankedTensorType>(source.getType()).getElementType();
    bytes += llvm::alignTo(sizeOf(tile.extents) * std::max(1u, element.getIntOrFloatBitWidth() / 8), 16);
    if (bytes > kStaticSharedBytes)
      return refuse() << "with the tiles of loop '" << name << "' a block takes " << bytes
                      << " bytes of shared memory, more than " << kStaticSharedBytes << "; split its loops smaller";
    Value target = makeTile(b, element, tile);
    fill(b, source, target, tile);
    for (ReadOp read : tile.reads) {
      OpBuilder at(read);
      SmallVector<Value> places;
      for (auto [index, range] : llvm::zip(read.getIndices(), tile.box))
        places.push_back(arith::AddIOp::create(at, loc, footprint.offset(at, index),
                                               arith::ConstantIndexOp::create(at, loc, -range.lo)));
      read.getTensorMutable().assign(target);
      read.getIndicesMutable().assign(places);
      read.getCountMutable().clear(); // past the end there are zeros
      read.removeStagedAttr();
    }
  }
  NVVM::BarrierOp::create(b, loc); // the tiles are whole
  b.setInsertionPoint(bodyOf(round)->getTerminator());
  NVVM::BarrierOp::create(b, loc); // and read
  round.setStages(false);
  return success();
}

namespace {

struct StageOperands : lacis::impl::LacisStageOperandsBase<StageOperands> {
  using LacisStageOperandsBase::LacisStageOperandsBase;

  void runOnOperation() override {
    SmallVector<LoopOpInterface> rounds;
    getOperation().walk([&](LoopOpInterface loop) {
      if (loop.getStages())
        rounds.push_back(loop);
    });
    for (unsigned number = 0; number < getOperation().getNumArguments(); ++number)
      if (getOperation().getArgAttr(number, "lacis.staged")) {
        auto operand = getOperation().getArgAttrOfType<StringAttr>(number, "lacis.name");
        getOperation().emitError("stage: no loop is tensorized, for which tiles of ")
            << operand << " would be loaded; name the loop in whose rounds they are: stage(" << operand << ", \"shared\", loop)";
        return signalPassFailure();
      }
    llvm::DenseMap<Operation *, int64_t> bytes; // of a nest
    for (LoopOpInterface round : rounds) {
      if (!StringRef(target).starts_with("cuda")) {
        emitError(round->getLoc()) << "stage: 'shared' is the memory that a block of a GPU has; there is none on '" << target
                                   << "'";
        return signalPassFailure();
      }
      auto own = dyn_cast<LoopOp>(round.getOperation());
      LoopOp loop = own ? own : round->getParentOfType<LoopOp>();
      if (failed(StagedLoop(round).run(bytes[outermostLoop(loop)])))
        return signalPassFailure();
    }
  }
};

} // namespace
