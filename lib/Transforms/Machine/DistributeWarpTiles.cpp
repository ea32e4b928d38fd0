// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in 16: for b in 8: for j in row: for k in 16: y += w * x  -->  a warp multiplies tiles, its lanes hold their pieces
///
/// The factors are read from memory into the registers where `mma.sync` wants them: no shared memory, no copy. The sum
/// over the depth of a tile has no order, so a lane takes neighbours of a row, as many as one load brings; where they do
/// not lie side by side, or are computed, it takes them one by one. What stands around the sum and behind it runs as the
/// nest says, for the elements that a lane holds.
#include "WarpTile.h"

#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace lacis {
#define GEN_PASS_DEF_LACISDISTRIBUTEWARPTILES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

class WarpLanes {
public:
  explicit WarpLanes(WarpTile &tile)
      : tile(tile), loc(tile.rows.getLoc()), m(*tile.rows.getTrip() / kRows), n(*tile.columns.getTrip() / kColumns) {}
  LogicalResult run();

private:
  using Accumulators = SmallVector<Value>;

  Value eval(OpBuilder &b, Value value, IRMapping &known);
  void cloneShared(OpBuilder &b, Operation &op);
  OpBuilder openGuards(OpBuilder b);
  FailureOr<Accumulators> sumOf(OpBuilder &b, Operation *op, Accumulators accs);
  FailureOr<Accumulators> sumOfBlock(OpBuilder &b, Block &block, Accumulators accs);
  Accumulators multiply(OpBuilder &b, Accumulators accs);
  Value load(OpBuilder &b, Value factor, VectorType type, IRMapping &known);
  SmallVector<Value> registersOf(OpBuilder &b, Value factor, Value first, IRMapping known);
  IRMapping placeOf(OpBuilder &b, LoopOp side, int64_t number);
  Accumulators products(OpBuilder &b, ArrayRef<SmallVector<Value>> w, ArrayRef<SmallVector<Value>> x, Accumulators accs);
  Value inside(OpBuilder &b, ArrayRef<LoopOp> sides, IRMapping &known);
  void finish(OpBuilder &b, ArrayRef<Value> accs);
  Value constant(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value add(OpBuilder &b, Value value, int64_t number) {
    return number == 0 ? value : arith::AddIOp::create(b, loc, value, constant(b, number)).getResult();
  }

  WarpTile &tile;
  Location loc;
  int64_t m, n;        // instructions along rows and columns
  Value group, member; // of the lane
  IRMapping shared;    // what all elements of the tile share
};

} // namespace

/// `value` for the coordinates that `known` has.
Value WarpLanes::eval(OpBuilder &b, Value value, IRMapping &known) {
  if (Value found = known.lookupOrNull(value))
    return found;
  if (!tile.varies(value))
    return shared.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value taken : takenBy(op))
    known.map(taken, eval(b, taken, known));
  b.clone(*op, known);
  return known.lookup(value);
}

/// What has the same result for the whole tile: arithmetic, and elements of operands, which nobody writes.
void WarpLanes::cloneShared(OpBuilder &b, Operation &op) {
  if (!op.hasTrait<OpTrait::IsTerminator>() && !writes(&op) &&
      llvm::none_of(op.getResults(), [&](Value v) { return tile.varies(v); }))
    b.clone(op, shared);
}

//===- The sum ------------------------------------------------------------===//

FailureOr<SmallVector<Value>> WarpLanes::sumOfBlock(OpBuilder &b, Block &block, Accumulators accs) {
  for (Operation &op : block.without_terminator()) {
    if (!op.isAncestor(tile.depth)) {
      cloneShared(b, op);
      continue;
    }
    FailureOr<Accumulators> next = sumOf(b, &op, accs);
    if (failed(next))
      return failure();
    accs = *next;
  }
  return accs;
}

/// A loop or a guard around the depth, which carries the accumulators in place of one element.
FailureOr<SmallVector<Value>> WarpLanes::sumOf(OpBuilder &b, Operation *op, Accumulators accs) {
  if (op == tile.depth)
    return multiply(b, std::move(accs));
  SmallVector<Type> types(accs.size(), b.getF32Type());
  if (auto guard = dyn_cast<scf::IfOp>(op)) {
    if (tile.varies(guard.getCondition()))
      return tile.refuse("have no guard inside their sum");
    auto made = scf::IfOp::create(b, loc, types, shared.lookupOrDefault(guard.getCondition()), /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
    OpBuilder then = OpBuilder::atBlockEnd(made.thenBlock()), otherwise = OpBuilder::atBlockEnd(made.elseBlock());
    FailureOr<Accumulators> next = sumOfBlock(then, *guard.thenBlock(), accs);
    if (failed(next))
      return failure();
    scf::YieldOp::create(then, loc, *next);
    scf::YieldOp::create(otherwise, loc, accs);
    return SmallVector<Value>(made.getResults());
  }
  unsigned fixed = op->getNumOperands() - op->getNumResults();
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands().take_front(fixed))
    state.operands.push_back(shared.lookupOrDefault(operand));
  if (!isa<LoopOp, LevelLoopOp>(op) || llvm::any_of(op->getOperands().take_front(fixed), [&](Value v) { return tile.varies(v); }))
    return tile.refuse("have sums whose bounds do not depend on them");
  state.addOperands(accs);
  state.addTypes(types);
  state.attributes = op->getAttrs();
  Block *source = &op->getRegion(0).front();
  auto *fresh = new Block;
  state.addRegion()->push_back(fresh);
  Operation *made = b.create(state);
  for (BlockArgument argument : source->getArguments().drop_back(op->getNumResults()))
    shared.map(argument, fresh->addArgument(argument.getType(), argument.getLoc()));
  Accumulators carried;
  for (Type type : types)
    carried.push_back(fresh->addArgument(type, loc));
  OpBuilder inner = OpBuilder::atBlockEnd(fresh);
  FailureOr<Accumulators> next = sumOfBlock(inner, *source, carried);
  if (failed(next))
    return failure();
  YieldOp::create(inner, loc, *next);
  return SmallVector<Value>(made->getResults());
}

/// Neighbours of a factor along the depth, in one load.
Value WarpLanes::load(OpBuilder &b, Value factor, VectorType type, IRMapping &known) {
  if (auto value = factor.getDefiningOp<ValueOp>()) {
    Value position = eval(b, value.getPosition(), known);
    Value tensor = shared.lookupOrDefault(value.getTensor());
    Value copy = value.getBatch() ? eval(b, value.getBatch(), known) : Value();
    return ValueOp::create(b, loc, type, tensor, position, copy, /*streamed=*/true);
  }
  auto read = factor.getDefiningOp<ReadOp>();
  SmallVector<Value> indices = llvm::map_to_vector(read.getIndices(), [&](Value index) { return eval(b, index, known); });
  auto along = b.getI64IntegerAttr(static_cast<int64_t>(indices.size()) - 1);
  return ReadOp::create(b, loc, type, read.getTensor(), indices, Value(), along);
}

/// What a lane takes of the depth of a factor, from `first` on, in pairs, as the registers of an instruction.
SmallVector<Value> WarpLanes::registersOf(OpBuilder &b, Value factor, Value first, IRMapping known) {
  int64_t run = *tile.depth.getTrip() / kMembers;
  Value taken;
  auto type = VectorType::get({run}, factor.getType());
  if (tile.liesAlong(factor)) {
    known.map(tile.depth.getCoordinate(), first);
    taken = load(b, factor, type, known);
  } else {
    SmallVector<Value> elements;
    for (int64_t number = 0; number < run; ++number) {
      IRMapping own = known;
      own.map(tile.depth.getCoordinate(), add(b, first, number));
      elements.push_back(eval(b, factor, own));
    }
    taken = vector::FromElementsOp::create(b, loc, type, elements);
  }
  Value packed = vector::BitCastOp::create(b, loc, VectorType::get({run / 2}, b.getI32Type()), taken);
  SmallVector<Value> registers;
  for (int64_t word = 0; word < run / 2; ++word) {
    Value pair = vector::ExtractOp::create(b, loc, packed, word);
    if (factor.getType().isF16())
      pair = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()), pair);
    registers.push_back(pair);
  }
  return registers;
}

/// A lane's row or column in one instruction; those past the end read the first.
IRMapping WarpLanes::placeOf(OpBuilder &b, LoopOp side, int64_t number) {
  IRMapping known;
  Value coordinate = add(b, group, number);
  known.map(side.getCoordinate(), coordinate);
  if (Value own = inside(b, side, known)) {
    coordinate = arith::SelectOp::create(b, loc, own, coordinate, constant(b, 0));
    known = IRMapping();
    known.map(side.getCoordinate(), coordinate);
  }
  return known;
}

/// One round of the depth: what each lane reads, then the products.
SmallVector<Value> WarpLanes::multiply(OpBuilder &b, Accumulators accs) {
  SmallVector<SmallVector<Value>> w, x;
  Value first = arith::MulIOp::create(b, loc, member, constant(b, *tile.depth.getTrip() / kMembers));
  for (Operation &op : tile.depth.getBlock()->without_terminator())
    cloneShared(b, op);
  for (int64_t half = 0; half < 2 * m; ++half)
    w.push_back(registersOf(b, tile.left, first, placeOf(b, tile.rows, half * kRows / 2)));
  for (int64_t column = 0; column < n; ++column)
    x.push_back(registersOf(b, tile.right, first, placeOf(b, tile.columns, column * kColumns)));
  return products(b, w, x, std::move(accs));
}

SmallVector<Value> WarpLanes::products(OpBuilder &b, ArrayRef<SmallVector<Value>> w, ArrayRef<SmallVector<Value>> x,
                                      Accumulators accs) {
  auto kind = tile.left.getType().isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Type f32 = b.getF32Type();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  for (int64_t step = 0; step < *tile.depth.getTrip() / kDepth; ++step)
    for (int64_t row = 0; row < m; ++row)
      for (int64_t column = 0; column < n; ++column) {
        ArrayRef<Value> upper = w[2 * row], lower = w[2 * row + 1], right = x[column];
        MutableArrayRef<Value> own = MutableArrayRef(accs).slice((row * n + column) * kPieces, kPieces);
        Value result = NVVM::MmaOp::create(
            b, loc, type, ValueRange{upper[2 * step], lower[2 * step], upper[2 * step + 1], lower[2 * step + 1]},
            ValueRange{right[2 * step], right[2 * step + 1]}, ValueRange(own), {kRows, kColumns, kDepth}, std::nullopt,
            std::nullopt, std::array{kind, kind}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
        for (int64_t piece = 0; piece < kPieces; ++piece)
          own[piece] = LLVM::ExtractValueOp::create(b, loc, result, piece);
      }
  return accs;
}

//===- After the sum ------------------------------------------------------===//

/// Do the guards along these sides hold for what `known` has? Null where there are none.
Value WarpLanes::inside(OpBuilder &b, ArrayRef<LoopOp> sides, IRMapping &known) {
  Value all;
  for (auto [block, guard] : tile.around) {
    if (!guard || llvm::none_of(sides, [&, guard = guard](LoopOp side) { return tile.variesAlong(guard, side); }))
      continue;
    Value own = eval(b, guard, known);
    all = all ? arith::AndIOp::create(b, loc, all, own).getResult() : own;
  }
  return all;
}

/// Each element that a lane holds is finished and written as the nest says.
void WarpLanes::finish(OpBuilder &b, ArrayRef<Value> accs) {
  auto behind = llvm::make_range(std::next(tile.sum->getIterator()), tile.sum->getBlock()->without_terminator().end());
  for (Operation &op : behind)
    cloneShared(b, op);
  Value pair = arith::MulIOp::create(b, loc, member, constant(b, 2));
  for (auto [number, acc] : llvm::enumerate(accs)) {
    auto index = static_cast<int64_t>(number);
    int64_t piece = index % kPieces, column = index / kPieces % n, row = index / kPieces / n;
    IRMapping known;
    known.map(tile.rows.getCoordinate(), add(b, group, row * kRows + piece / 2 * kRows / 2));
    known.map(tile.columns.getCoordinate(), add(b, pair, column * kColumns + piece % 2));
    OpBuilder at = b;
    if (Value own = inside(b, {tile.rows, tile.columns}, known))
      at = scf::IfOp::create(b, loc, own, /*withElseRegion=*/false).getThenBodyBuilder();
    known.map(tile.sum->getResult(0), acc);
    for (Operation &op : behind) {
      if (!writes(&op))
        continue; // made where it is needed
      for (Value taken : takenBy(&op))
        known.map(taken, eval(at, taken, known));
      at.clone(op, known);
    }
  }
}

/// What stands before the sum, under the guards that are the same for all of the tile.
OpBuilder WarpLanes::openGuards(OpBuilder b) {
  for (auto [block, guard] : tile.around) {
    for (Operation &op : *block)
      if (!op.isAncestor(tile.depth) && (guard || op.isBeforeInBlock(tile.sum)))
        cloneShared(b, op);
    if (guard && !tile.varies(guard))
      b = scf::IfOp::create(b, loc, shared.lookupOrDefault(guard), /*withElseRegion=*/false).getThenBodyBuilder();
  }
  return b;
}

LogicalResult WarpLanes::run() {
  OpBuilder b(tile.rows);
  auto name = joined(b.getContext(), tile.rows.getLoopName(), tile.columns.getLoopName());
  auto lanes = LoopOp::create(b, loc, name, constant(b, kLanes));
  lanes.setBind(ParallelUnit::Lane);
  OpBuilder in = OpBuilder::atBlockEnd(lanes.getBlock());
  group = arith::DivUIOp::create(in, loc, lanes.getCoordinate(), constant(in, kMembers));
  member = arith::RemUIOp::create(in, loc, lanes.getCoordinate(), constant(in, kMembers));
  OpBuilder inner = openGuards(in);
  Accumulators begun(m * n * kPieces, shared.lookupOrDefault(tile.start));
  FailureOr<Accumulators> accs = sumOf(inner, tile.sum, begun);
  if (failed(accs))
    return failure();
  finish(inner, *accs);
  in.setInsertionPointToEnd(lanes.getBlock());
  YieldOp::create(in, loc, ValueRange());
  tile.rows.erase();
  return success();
}

namespace {

struct DistributeWarpTiles : lacis::impl::LacisDistributeWarpTilesBase<DistributeWarpTiles> {
  void runOnOperation() override {
    SmallVector<LoopOp> found;
    getOperation().walk([&](LoopOp loop) {
      if (loop.getMma() == TileSide::Rows)
        found.push_back(loop);
    });
    for (LoopOp rows : found) {
      FailureOr<WarpTile> tile = readWarpTile(rows);
      if (failed(tile) || failed(WarpLanes(*tile).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
