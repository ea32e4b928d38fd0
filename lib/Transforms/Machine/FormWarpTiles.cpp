// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in 16: for b in 8: for j in row: for k in 16: y += w * x  -->  a warp multiplies tiles, its lanes hold their pieces
///
/// The operands are read from memory into the registers where `mma.sync` wants them: no shared memory, no copy. The sum
/// over the depth of a tile has no order, so a lane takes neighbours of a row, as many as one load brings.
#include "../Tiles/TileVariance.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace lacis {
#define GEN_PASS_DEF_LACISFORMWARPTILES
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// The shape of one instruction, m16n8k16; a lane is 4 * group + member.
constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16, kLanes = 32, kMembers = 4, kPieces = 4;

class WarpForm {
public:
  explicit WarpForm(LoopOp rows) : rows(rows), loc(rows.getLoc()) {}
  LogicalResult run();

private:
  using Accumulators = SmallVector<Value>;

  LogicalResult read();
  bool varies(Value value) { return !variance.of(value).empty(); }
  bool isConsecutive(Value value);
  Value eval(OpBuilder &b, Value value, IRMapping &known);
  void cloneShared(OpBuilder &b, Operation &op);
  FailureOr<Accumulators> sumOf(OpBuilder &b, Operation *op, Accumulators accs);
  FailureOr<Accumulators> sumOfBlock(OpBuilder &b, Block &block, Accumulators accs);
  FailureOr<Accumulators> multiply(OpBuilder &b, Accumulators accs);
  Accumulators products(OpBuilder &b, ArrayRef<SmallVector<Value>> w, ArrayRef<SmallVector<Value>> x, Accumulators accs);
  Value inside(OpBuilder &b, IRMapping &known);
  LogicalResult finish(OpBuilder &b, ArrayRef<Value> accs);
  Value constant(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value add(OpBuilder &b, Value value, int64_t number) {
    return number == 0 ? value : arith::AddIOp::create(b, loc, value, constant(b, number)).getResult();
  }
  LogicalResult refuse(const Twine &why) { return rows.emitError("tensorize: loops of a warp's tile ") << why; }

  LoopOp rows, columns, depth;
  Location loc;
  Block *body = nullptr;       // where the sum stands
  Operation *sum = nullptr;    // the outermost loop that carries it
  SmallVector<Block *> around; // the blocks from the columns to the sum
  SmallVector<Value> guards;   // of columns past the end
  ValueOp stored;
  ReadOp dense;
  int64_t m = 0, n = 0;        // instructions along rows and columns
  Value group, member;         // of the lane
  IRMapping shared;            // what all elements of the tile share
  TileVariance variance;
};

} // namespace

/// The loops, the guards of columns around the sum, and the two operands.
LogicalResult WarpForm::read() {
  SmallVector<LoopOp> chain = perfectChain(rows);
  if (chain.size() != 2 || chain[1].getMma() != TileSide::Columns)
    return refuse("are rows around columns, with nothing between them");
  columns = chain[1];
  columns->walk([&](LoopOp loop) {
    if (loop != columns && loop.getMma())
      depth = loop;
  });
  m = *rows.getTrip() / kRows;
  n = *columns.getTrip() / kColumns;
  if (!depth || *rows.getTrip() % kRows != 0 || *columns.getTrip() % kColumns != 0 || !depth.getTrip() ||
      (depth.getTrip() != kDepth && depth.getTrip() != 2 * kDepth))
    return refuse("run 16 times or a multiple along rows, 8 or a multiple along columns, and 16 or 32 along the depth");
  body = columns.getBlock();
  while (true) {
    around.push_back(body);
    Operation *inner = depth;
    while (inner->getBlock() != body)
      inner = inner->getParentOp();
    auto guard = dyn_cast<scf::IfOp>(inner);
    if (!guard || guard.getNumResults() != 0) {
      sum = inner;
      break;
    }
    guards.push_back(guard.getCondition());
    body = guard.thenBlock();
  }
  unsigned values = 0, reads = 0;
  depth->walk([&](Operation *op) {
    if (auto value = dyn_cast<ValueOp>(op))
      stored = value, ++values;
    if (auto element = dyn_cast<ReadOp>(op))
      dense = element, ++reads;
  });
  if (values != 1 || reads != 1 || !factorsOf(depth) || sum->getNumResults() != 1 || !stored.getType().isIntOrFloat() ||
      stored.getType().getIntOrFloatBitWidth() != 16 || stored.getType() != dense.getType())
    return refuse("sum products of one stored and one dense element of a half type");
  llvm::for_each(ArrayRef{rows, columns, depth}, [&](LoopOp loop) { variance.add(loop); });
  auto place = stored.getPosition().getDefiningOp<LocateOp>();
  if (!place || place.getDigits().size() != 1 || !isConsecutive(place.getDigits()[0]) ||
      !isConsecutive(dense.getIndices().back()))
    return refuse("have the depth along rows of the stored blocks and of the dense operand");
  return success();
}

/// The depth's coordinate, or that plus what has nothing to do with it.
bool WarpForm::isConsecutive(Value value) {
  if (value == depth.getCoordinate())
    return true;
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && ((isConsecutive(sum.getLhs()) && !varies(sum.getRhs())) ||
                 (isConsecutive(sum.getRhs()) && !varies(sum.getLhs())));
}

/// `value` for the coordinates that `known` has.
Value WarpForm::eval(OpBuilder &b, Value value, IRMapping &known) {
  if (Value found = known.lookupOrNull(value))
    return found;
  if (!varies(value))
    return shared.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value taken : takenBy(op))
    known.map(taken, eval(b, taken, known));
  b.clone(*op, known);
  return known.lookup(value);
}

/// What has the same result for the whole tile: arithmetic, and elements of operands, which nobody writes.
void WarpForm::cloneShared(OpBuilder &b, Operation &op) {
  bool hasNoEffect = isPure(&op) || hasSingleEffect<MemoryEffects::Read>(&op);
  bool same = op.getNumRegions() == 0 && hasNoEffect && !op.hasTrait<OpTrait::IsTerminator>() &&
              llvm::none_of(op.getResults(), [&](Value v) { return varies(v); });
  if (same)
    b.clone(op, shared);
}

//===- The sum ------------------------------------------------------------===//

FailureOr<SmallVector<Value>> WarpForm::sumOfBlock(OpBuilder &b, Block &block, Accumulators accs) {
  for (Operation &op : block.without_terminator()) {
    if (!op.isAncestor(depth)) {
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
FailureOr<SmallVector<Value>> WarpForm::sumOf(OpBuilder &b, Operation *op, Accumulators accs) {
  if (op == depth)
    return multiply(b, accs);
  SmallVector<Type> types(accs.size(), b.getF32Type());
  if (auto guard = dyn_cast<scf::IfOp>(op)) {
    if (varies(guard.getCondition()))
      return refuse("have no guard inside their sum");
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
  if (!isa<LoopOp, LevelLoopOp>(op) || llvm::any_of(op->getOperands().take_front(fixed), [&](Value v) { return varies(v); }))
    return refuse("have sums whose bounds do not depend on them");
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

/// Pairs of a lane's neighbours, as the registers of an instruction.
static SmallVector<Value> registersOf(OpBuilder &b, Location loc, Value run) {
  auto type = cast<VectorType>(run.getType());
  int64_t words = type.getDimSize(0) / 2;
  Value packed = vector::BitCastOp::create(b, loc, VectorType::get({words}, b.getI32Type()), run);
  SmallVector<Value> registers;
  for (int64_t word = 0; word < words; ++word) {
    Value pair = vector::ExtractOp::create(b, loc, packed, word);
    if (type.getElementType().isF16())
      pair = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()), pair);
    registers.push_back(pair);
  }
  return registers;
}

/// One round of the depth: what each lane reads, then the products.
FailureOr<SmallVector<Value>> WarpForm::multiply(OpBuilder &b, Accumulators accs) {
  int64_t run = *depth.getTrip() / kMembers;
  auto type = VectorType::get({run}, stored.getType());
  Value first = arith::MulIOp::create(b, loc, member, constant(b, run));
  SmallVector<SmallVector<Value>> w, x;
  for (Operation &op : depth.getBlock()->without_terminator())
    cloneShared(b, op);
  for (int64_t half = 0; half < 2 * m; ++half) {
    IRMapping known;
    known.map(rows.getCoordinate(), add(b, group, half * kRows / 2));
    known.map(depth.getCoordinate(), first);
    Value position = eval(b, stored.getPosition(), known);
    Value tensor = shared.lookupOrDefault(stored.getTensor());
    Value copy = stored.getBatch() ? eval(b, stored.getBatch(), known) : Value();
    w.push_back(registersOf(b, loc, ValueOp::create(b, loc, type, tensor, position, copy, /*streamed=*/true)));
  }
  for (int64_t tile = 0; tile < n; ++tile) {
    IRMapping known;
    Value column = add(b, group, tile * kColumns);
    known.map(columns.getCoordinate(), column);
    if (!guards.empty()) { // columns past the end read the first
      column = arith::SelectOp::create(b, loc, inside(b, known), column, constant(b, 0));
      known = IRMapping();
      known.map(columns.getCoordinate(), column);
    }
    known.map(depth.getCoordinate(), first);
    SmallVector<Value> indices;
    for (Value index : dense.getIndices())
      indices.push_back(eval(b, index, known));
    auto along = b.getI64IntegerAttr(static_cast<int64_t>(indices.size()) - 1);
    x.push_back(registersOf(b, loc, ReadOp::create(b, loc, type, dense.getTensor(), indices, Value(), along)));
  }
  return products(b, w, x, accs);
}

SmallVector<Value> WarpForm::products(OpBuilder &b, ArrayRef<SmallVector<Value>> w, ArrayRef<SmallVector<Value>> x,
                                      Accumulators accs) {
  auto kind = stored.getType().isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Type f32 = b.getF32Type();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  for (int64_t step = 0; step < *depth.getTrip() / kDepth; ++step)
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

/// Is the column that `known` has one of the output?
Value WarpForm::inside(OpBuilder &b, IRMapping &known) {
  Value all;
  for (Value guard : guards) {
    Value own = eval(b, guard, known);
    all = all ? arith::AndIOp::create(b, loc, all, own).getResult() : own;
  }
  return all;
}

/// Each element that a lane holds is finished and written as the nest says.
LogicalResult WarpForm::finish(OpBuilder &b, ArrayRef<Value> accs) {
  for (Operation *op = sum->getNextNode(); op; op = op->getNextNode())
    cloneShared(b, *op);
  Value pair = arith::MulIOp::create(b, loc, member, constant(b, 2));
  for (auto [number, acc] : llvm::enumerate(accs)) {
    auto index = static_cast<int64_t>(number);
    int64_t piece = index % kPieces, column = index / kPieces % n, row = index / kPieces / n;
    IRMapping known;
    known.map(rows.getCoordinate(), add(b, group, row * kRows + piece / 2 * kRows / 2));
    known.map(columns.getCoordinate(), add(b, pair, column * kColumns + piece % 2));
    OpBuilder at = b;
    if (Value own = inside(b, known))
      at = scf::IfOp::create(b, loc, own, /*withElseRegion=*/false).getThenBodyBuilder();
    known.map(sum->getResult(0), acc);
    for (Operation *op = sum->getNextNode(); op && !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
      if (op->getNumRegions() != 0)
        return refuse("are written without a guard of their own");
      if (!isa<WriteOp>(op))
        continue;
      for (Value operand : op->getOperands())
        known.map(operand, eval(at, operand, known));
      at.clone(*op, known);
    }
  }
  return success();
}

LogicalResult WarpForm::run() {
  if (failed(read()))
    return failure();
  OpBuilder b(rows);
  auto lanes = LoopOp::create(b, loc, joined(b.getContext(), rows.getLoopName(), columns.getLoopName()), constant(b, kLanes));
  lanes.setBind(ParallelUnit::Lane);
  OpBuilder in = OpBuilder::atBlockEnd(lanes.getBlock());
  group = arith::DivUIOp::create(in, loc, lanes.getCoordinate(), constant(in, kMembers));
  member = arith::RemUIOp::create(in, loc, lanes.getCoordinate(), constant(in, kMembers));
  for (Block *block : around)
    for (Operation &op : *block)
      if (!op.isAncestor(depth) && (block != body || op.isBeforeInBlock(sum)))
        cloneShared(in, op);
  Value init = shared.lookupOrDefault(sum->getOperand(sum->getNumOperands() - 1));
  FailureOr<Accumulators> accs = sumOf(in, sum, Accumulators(m * n * kPieces, init));
  if (failed(accs) || failed(finish(in, *accs)))
    return failure();
  YieldOp::create(in, loc, ValueRange());
  rows.erase();
  return success();
}

namespace {

struct FormWarpTiles : lacis::impl::LacisFormWarpTilesBase<FormWarpTiles> {
  void runOnOperation() override {
    SmallVector<LoopOp> found;
    getOperation().walk([&](LoopOp loop) {
      if (loop.getMma() == TileSide::Rows)
        found.push_back(loop);
    });
    for (LoopOp rows : found)
      if (failed(WarpForm(rows).run()))
        return signalPassFailure();
  }
};

} // namespace
