// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a nest as values of tiles.
#include "TileStatements.h"

#include "KeptTiles.h"
#include "TileFactors.h"
#include "TileGuards.h"
#include "TileVectors.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

Value RoleScalars::get(OpBuilder &b, Value number) {
  if (Value known = mapping.lookupOrNull(number))
    return known;
  Operation *op = number.getDefiningOp();
  if (!op || !replaced->isProperAncestor(op))
    return number;
  for (Value taken : takenBy(op))
    mapping.map(taken, get(b, taken));
  Operation *made = b.clone(*op, mapping);
  SmallVector<Value> folded;
  if (succeeded(b.tryFold(made, folded)) && !folded.empty()) {
    mapping.map(op->getResults(), folded);
    made->erase();
  }
  return mapping.lookup(number);
}

Value RoleScalars::all(OpBuilder &b, ArrayRef<Value> conditions) {
  Value found;
  for (Value condition : conditions) {
    Value own = get(b, condition);
    found = found ? arith::AndIOp::create(b, condition.getLoc(), found, own).getResult() : own;
  }
  return found;
}

Value RoleScalars::baseOf(OpBuilder &b, const TileVariance::Place &place, Location loc) {
  return place.base ? get(b, place.base) : arith::ConstantIndexOp::create(b, loc, 0).getResult();
}

void RoleScalars::gather(ArrayRef<Value> before, ArrayRef<SmallVector<Value>> after) {
  parts.clear(); // those of a round are copies of what is known outside
  gathered.assign(before.begin(), before.end());
  std::vector<RoleScalars> made(after.size(), *this);
  for (auto [part, values] : llvm::zip(made, after))
    part.mapping.map(before, values);
  parts = std::move(made);
}

bool RoleScalars::isGathered(Value number) {
  if (gathered.empty() || !number || llvm::is_contained(gathered, number))
    return number && !gathered.empty();
  Operation *op = number.getDefiningOp();
  return op && replaced->isProperAncestor(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isGathered(operand); });
}

LogicalResult lacis::refuseStatement(Operation *op) {
  auto loop = dyn_cast<LoopOpInterface>(op);
  return op->emitError("tiles: '") << (loop ? loop.getName() : op->getName().getStringRef())
                                   << "' is no statement of a tile: that sums up products of rows and of columns, reduces "
                                      "rows, or is arithmetic on what others made for the same row";
}

//===- Boxes --------------------------------------------------------------===//

/// A tile of a ring: the box, or a vector beside it.
Value TileStatements::acquire(OpBuilder &b, StagedBox &box, unsigned tile) {
  StagedBox &ring = boxes.ringOf(box);
  if (ring.held.empty())
    ring.held = AcquireOp::create(b, ring.read.getLoc(), boxes.types(ring, variance), ring.place).getTiles();
  return ring.held[box.tiles + tile];
}

/// A read of a round is done; the last one hands the place over.
void TileStatements::release(OpBuilder &b, StagedBox &box) {
  StagedBox &ring = boxes.ringOf(box);
  if (!ring.inRound || --ring.left != 0)
    return;
  ring.place = ReleaseOp::create(b, ring.read.getLoc(), ring.place.getType(), ring.place);
  ring.held.clear();
  ring.left = ring.uses;
}

StagedBox *TileStatements::boxOf(Value factor) {
  std::optional<Access> access = Access::ofFactor(factor);
  auto [box, tile] = access ? boxes.find(access->op) : std::pair<StagedBox *, unsigned>();
  return tile == 0 ? box : nullptr;
}

//===- Statements ---------------------------------------------------------===//

LogicalResult TileStatements::emit(OpBuilder &b, LoopOp statement) {
  row = statement.getCoordinate();
  return emitBlock(b, *statement.getBlock());
}

LogicalResult TileStatements::emitBlock(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult done = success();
    if (auto guard = dyn_cast<scf::IfOp>(op); guard && guard.getNumResults() == 0 && !guard.elseBlock())
      done = emitBlock(b, *guard.thenBlock()); // stores of blocks ask it; of a workspace nothing reads the other places
    else if (auto loop = dyn_cast<LoopOp>(op))
      done = loop.getNumResults() == 0 ? emitBlock(b, *loop.getBlock()) : reduce(b, loop);
    else if (auto read = dyn_cast<ReadOp>(op))
      done = this->read(b, read);
    else if (auto write = dyn_cast<WriteOp>(op))
      done = this->write(b, write);
    else if (auto set = dyn_cast<SetOp>(op))
      done = store(b, set, set.getValue());
    else if (!isMemoryEffectFree(&op))
      done = refuseStatement(&op);
    if (failed(done))
      return failure();
  }
  return success();
}

TileMaps TileStatements::maps() {
  TileMaps made(variance, scalars, known, row);
  if (branches)
    made.branchOnTiles();
  return made;
}

void TileStatements::loadAhead(OpBuilder &b, Value value, Value row) {
  this->row = row;
  TileVariance::Coordinates rows;
  rows.insert(row);
  maps().loadAhead(b, value, {});
  maps().loadAhead(b, value, rows);
  fixed = known;
}

FailureOr<Value> TileStatements::tile(OpBuilder &b, Value value, Value column, Location loc, int64_t across) {
  return maps().make(b, value, column, loc, across);
}

LogicalResult TileStatements::write(OpBuilder &b, WriteOp op) {
  auto target = op.getTensor().getDefiningOp<WorkspaceOp>();
  if (!target)
    return store(b, op, op.getValue());
  if (PostponedSum *sum = postponed(target); sum && op.getValue() == sum->sum.getResult(0))
    return success();
  ValueRange at = op.getIndices();
  if (isKept(target)) {
    FailureOr<Value> made = tile(b, op.getValue(), variance.placeOf(at[0])->coordinate, op.getLoc());
    return failed(made) ? failure() : storeKept(b, op, *made, variance, scalars);
  }
  if (at.front() != row || (at.size() == 2 && !variance.isOfTile(at[1])))
    return refuseStatement(op);
  Value column = at.size() == 2 ? at[1] : Value(), sum = known.lookup(op.getValue());
  int64_t across = sum && !column ? cast<AccType>(sum.getType()).getColumns() : 1; // a sum may stand in parts
  auto added = op.getValue().getDefiningOp<arith::AddFOp>();
  auto kept = added ? added.getRhs().getDefiningOp<ReadOp>() : ReadOp();
  bool isOnto = kept && isKept(kept.getTensor());
  FailureOr<Value> made = tile(b, isOnto ? added.getLhs() : op.getValue(), column, op.getLoc(), across);
  if (isOnto && succeeded(made))
    made = loadKept(b, kept, *made, variance, scalars);
  if (succeeded(made))
    state(target) = *made;
  return made;
}

LogicalResult TileStatements::store(OpBuilder &b, Operation *op, Value value) {
  std::optional<Access> to = Access::ofStore(op);
  if (!to)
    return refuseStatement(op);
  auto guard = op->getParentOfType<scf::IfOp>();
  if (guard && isInBlocks(*to))
    return storeBlocks(b, *to, value);
  if (guard && cast<BlockArgument>(row).getOwner()->getParentOp()->isProperAncestor(guard))
    return op->emitError("tiles: a condition within a tile stands around what is stored of it, and a tile is stored "
                         "whole, or block by block where its output has stored blocks");
  FailureOr<StoreTileOp> made = maps().store(b, *to, value);
  if (succeeded(made) && *made && !made->getTransposed())
    if (auto [free, first] = freeBox(*made); free) {
      made->getThroughMutable().assign(free);
      if (first)
        made->getSlotMutable().assign(first);
    }
  return made;
}

/// A held box as large as what is stored, once, or null; and the first tile of it where it is a part of a list.
std::pair<Value, Value> TileStatements::freeBox(StoreTileOp store) {
  AccType type = store.getValue().getType();
  Type element = cast<RankedTensorType>(store.getTarget().getType()).getElementType();
  auto isStored = [](Operation *user) { return isa<StoreTileOp>(user); };
  for (StagedBox &box : boxes) {
    bool fits = type.getShape()[0] == box.tile.getRows() && type.getColumns() == box.tile.getCount() * box.tile.getColumns();
    if (!storesThrough || !fits || box.inRound || box.isShared || element != box.tile.getElementType())
      continue;
    auto read = box.held[0].getDefiningOp<ReadTileOp>(); // registers have what was in it
    Value tile = read ? Value(read.getTile()) : box.held[0];
    if (llvm::none_of(tile.getUsers(), isStored))
      return {tile, box.first};
  }
  return {};
}

//===- Reductions ---------------------------------------------------------===//

AccType TileStatements::partsOf(AccType rows) {
  constexpr int64_t threads = 4; // that share a row of an accumulator
  return AccType::get(rows.getContext(), {rows.getShape()[0], threads}, rows.getElementType());
}

/// In how many parts the state of the tensor stands that the sum goes to.
static int64_t partsOfState(LoopOp sum, llvm::function_ref<Value(Value)> state) {
  for (Operation *user : sum.getResult(0).getUsers())
    if (auto write = dyn_cast<WriteOp>(user); write && state(write.getTensor()))
      return cast<AccType>(state(write.getTensor()).getType()).getColumns();
  return 1;
}

LogicalResult TileStatements::reduce(OpBuilder &b, LoopOp loop) {
  Location loc = loop.getLoc();
  std::optional<Reduction> kind = reductionOf(loop);
  std::optional<Combination> round = kind ? combinationOf(loop) : std::nullopt;
  auto isNeeded = [&](Value condition) { return !isZeroWithout(condition, round->added); };
  if (!round || llvm::any_of(round->conditions, isNeeded))
    return refuseStatement(loop);
  if (failed(emitBlock(b, *loop.getBlock())))
    return failure();
  if (std::optional<Product> product = productOf(loop))
    return multiply(b, loop, *product);
  bool isSum = kind == Reduction::Add;
  bool isOfRows = llvm::all_of(variance.of(loop.getResult(0)), [&](Value along) { return along == row; });
  if (!isOfRows || !(isSum || (kind == Reduction::Max && round->conditions.empty())))
    return refuseStatement(loop);
  int64_t parts = isSum ? partsOfState(loop, [&](Value tensor) { return states.lookup(tensor); }) : 1;
  FailureOr<Value> whole = tile(b, round->added, loop.getCoordinate(), loc);
  FailureOr<Value> onto = failed(whole) ? whole : tile(b, loop.getInits()[0], Value(), loc, parts);
  if (failed(onto))
    return failure();
  known[loop.getResult(0)] =
      ReduceRowsOp::create(b, loc, onto->getType(), b.getStringAttr(isSum ? "sum" : "max"), *whole, *onto);
  return success();
}

//===- Products -----------------------------------------------------------===//

std::optional<TileStatements::Product> TileStatements::productOf(LoopOp loop) {
  arith::MulFOp product = factorsOf(loop);
  if (!product)
    return std::nullopt;
  SmallVector<Value> along(variance.of(loop.getResult(0)).getArrayRef());
  llvm::erase(along, row);
  if (along.size() != 1)
    return std::nullopt;
  Product found{product.getLhs(), product.getRhs(), along[0]};
  if (!variance.of(found.one).contains(row))
    std::swap(found.one, found.other);
  found.left = boxOf(found.one);
  found.right = boxOf(found.other);
  auto isGathered = [](StagedBox *box) { return box && box->window; };
  bool hasSides = found.right && isGathered(found.left) == isGathered(found.right) && variance.of(found.one).contains(row) && !variance.of(found.other).contains(row);
  return hasSides ? std::optional(found) : std::nullopt;
}

void TileStatements::findTiles(OpBuilder &b, ArrayRef<LoopOp> statements) {
  StepTiles::Found last;
  for (LoopOp statement : statements) {
    row = statement.getCoordinate();
    statement->walk([&](LoopOp loop) {
      std::optional<Product> product = productOf(loop);
      std::optional<Access> access = product ? Access::ofFactor(product->one) : std::nullopt;
      if (std::optional<StepTiles> step = access ? StepTiles::of(*access) : std::nullopt)
        found[loop] = last = step->find(b, scalars, last);
    });
  }
}

void TileStatements::begin(OpBuilder &b, LoopOp statement) {
  row = statement.getCoordinate();
  statement->walk([&](LoopOp loop) {
    std::optional<Product> product = productOf(loop);
    if (product && product->left && matchPattern(loop.getInits()[0], m_AnyZeroFloat()))
      begun[loop] = *beginProduct(b, loop, *product);
  });
}

/// All that the statement reads is there, and none of those before it writes that anew.
bool TileStatements::isReady(LoopOp statement, ArrayRef<LoopOp> before) {
  llvm::SmallDenseSet<Value> written;
  for (LoopOp other : before)
    other->walk([&](WriteOp write) { written.insert(write.getTensor()); });
  WalkResult found = statement->walk([&](ReadOp read) {
    bool isTile = read.getTensor().getDefiningOp<WorkspaceOp>() != nullptr;
    bool isThere = isTile ? state(read.getTensor()) && !written.contains(read.getTensor()) : boxes.find(read).second == 0;
    return isThere ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !found.wasInterrupted();
}

LogicalResult TileStatements::beginAhead(OpBuilder &b, ArrayRef<LoopOp> statements) {
  LogicalResult done = success();
  for (size_t number = 1; number < statements.size(); ++number) {
    LoopOp statement = statements[number];
    if (!isReady(statement, statements.take_front(number)))
      continue;
    row = statement.getCoordinate();
    statement->walk([&](ReadOp read) { done = succeeded(done) ? this->read(b, read) : done; });
    statement->walk([&](LoopOp loop) {
      std::optional<Product> product = begun.contains(loop) ? std::nullopt : productOf(loop);
      FailureOr<Value> sum = product && succeeded(done) ? beginProduct(b, loop, *product) : FailureOr<Value>(Value());
      done = failed(sum) ? failure() : done;
      if (product && succeeded(sum))
        begun[loop] = *sum;
    });
  }
  return done;
}

FailureOr<std::pair<Value, Value>> TileStatements::accsOf(OpBuilder &b, LoopOp loop, const Product &product) {
  Value left, onto, init = loop.getInits()[0];
  if (!product.left) {
    FailureOr<Value> wide = tile(b, product.one, loop.getCoordinate(), loop.getLoc());
    if (failed(wide))
      return failure();
    left = TileMaps::rounded(b, *wide, product.right->tile.getElementType());
  }
  if (!matchPattern(init, m_AnyZeroFloat())) {
    FailureOr<Value> from = tile(b, init, product.column, loop.getLoc());
    if (failed(from))
      return failure();
    onto = *from;
  }
  return std::pair(left, onto);
}

Value TileStatements::makeMma(OpBuilder &b, LoopOp loop, const Product &product, Value left, Value onto) {
  Location loc = loop.getLoc();
  TileFactor one{left};
  auto liesAcross = [&](Value factor) { // its rows lie along the sum
    Value rows = ArrayRef(Access::ofFactor(factor)->indices).drop_back().back();
    return variance.of(rows).contains(loop.getCoordinate());
  };
  if (product.left) {
    one.tile = acquire(b, *product.left);
    one.isTransposed = liesAcross(product.one);
  }
  if (product.left && isa<TileType>(one.tile.getType()))
    one.place = product.left->first;
  if (auto tiles = found.find(loop); tiles != found.end())
    one.place = tiles->second.first, one.present = tiles->second.stored;
  auto type = AccType::get(b.getContext(), {variance.sizeOf(row), variance.sizeOf(product.column)}, b.getF32Type());
  if (product.left && product.left->window)
    return MmaGatheredOp::create(b, loc, type, one.tile, product.left->offsets, acquire(b, *product.right),
                                 product.right->offsets, onto);
  TileFactor other{acquire(b, *product.right), liesAcross(product.other), product.right->first};
  for (auto [factor, box] : {std::pair(&one, product.left), std::pair(&other, product.right)})
    if (box && box->partIndex && cast<TileType>(factor->tile.getType()).isList() && !factor->place)
      factor->place = arith::ConstantIndexOp::create(b, loc, 0); // parts stand side by side
  return multiplyTiles(b, loc, type, one, other, onto, loop.getTf32());
}

FailureOr<Value> TileStatements::beginProduct(OpBuilder &b, LoopOp loop, const Product &product) {
  auto accs = accsOf(b, loop, product);
  if (failed(accs))
    return failure();
  return makeMma(b, loop, product, accs->first, accs->second);
}

LogicalResult TileStatements::multiply(OpBuilder &b, LoopOp loop, const Product &product) {
  if (PostponedSum *sum = postponedBy(loop)) {
    auto accs = accsOf(b, loop, product);
    if (succeeded(accs))
      std::tie(sum->left, sum->onto) = *accs;
    return accs;
  }
  FailureOr<Value> sum = begun.contains(loop) ? FailureOr<Value>(begun[loop]) : beginProduct(b, loop, product);
  if (failed(sum))
    return failure();
  known[loop.getResult(0)] =
      isUnderWay ? *sum : CompleteOp::create(b, loop.getLoc(), TypeRange(sum->getType()), *sum).getResult(0);
  for (StagedBox *box : {product.left, product.right})
    if (box)
      release(b, *box);
  return success();
}
