// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a nest over an execution layout, in the order of work lists.
#include "LayoutLoops.h"

#include "WorkLists.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

void LayoutLoops::makeTensors(int64_t columns, int64_t across, int64_t down) {
  auto attribute = LayoutAttr::get(b.getContext(), layout.format, layout.capacity, 0);
  walked = RegroupOp::create(b, loc, nest.product.isSampled() ? nest.product.stored : nest.product.tensor, attribute);
  lists = makeLists(b, nest, walked);
  workers = tensor::DimOp::create(b, loc, lists, constant(workersOf(lists)));
  if (nest.isCut())
    kept = makeKept(b, nest, workers, {columns, across, down});
}

//===- Loops --------------------------------------------------------------===//

LoopOp LayoutLoops::open(OpBuilder &at, const LoopName &name, Value upper) {
  auto loop = LoopOp::create(at, loc, name, upper);
  loops.push_back(loop);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  return loop;
}

LevelLoopOp LayoutLoops::open(OpBuilder &at, const LoopName &name, Value tensor, unsigned level, Value parent) {
  auto loop = LevelLoopOp::create(at, loc, name, tensor, level, parent, ValueRange());
  loops.push_back(loop);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  return loop;
}

void LayoutLoops::close(OpBuilder &at) {
  for (Operation *loop : llvm::reverse(loops)) {
    YieldOp::create(at, loc);
    at.setInsertionPointAfter(loop);
  }
}

void LayoutLoops::openEntries(OpBuilder &at, Value list, SmallVector<Value *> fields) {
  LoopName panels = nest.top.getLoopName(), items = nest.items.getLoopName();
  if (nest.isCut())
    fields.append({&part, &parts, &slot});
  for (auto [number, field] : llvm::enumerate(fields)) {
    LoopName name = number > 0 ? items + std::to_string(number) : nest.top == nest.items ? panels + "_panel" : panels;
    LevelLoopOp entry = open(at, name, lists, itemsOf(lists) + number, list);
    *field = entry.getCoordinates()[0];
    list = entry.getPosition();
  }
}

LoopOp LayoutLoops::openTileLoop(OpBuilder &at, LoopOp marked, int64_t size, TileSide side) {
  LoopOp loop = open(at, marked.getLoopName(), constant(size));
  loop.setTensorize(side);
  return loop;
}

Value LayoutLoops::addProducts(OpBuilder &at, LoopName depth, int64_t size, Value carried,
                               llvm::function_ref<std::pair<Value, Value>(OpBuilder &, Value)> factors) {
  auto loop = LoopOp::create(at, loc, depth, constant(size), carried, Reduction::Add);
  loop.setTensorize(TileSide::Depth);
  loop.setTf32(nest.isTf32);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  auto [left, right] = factors(in, loop.getCoordinate());
  auto wide = [&](Value value) {
    bool isWide = value.getType().isF32();
    return isWide ? value : arith::ExtFOp::create(in, loc, in.getF32Type(), value).getResult();
  };
  Value product = arith::MulFOp::create(in, loc, wide(left), wide(right));
  YieldOp::create(in, loc, arith::AddFOp::create(in, loc, loop.getIterArgs()[0], product).getResult());
  return loop.getResult(0);
}

//===- Parts of items -----------------------------------------------------===//

/// Keeps the sum of a part, where `at` goes on with whole items.
void LayoutLoops::keepPart(OpBuilder &at) {
  Value isWhole = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, slot, constant(0));
  auto guard = scf::IfOp::create(at, loc, isWhole, /*withElseRegion=*/true);
  OpBuilder otherwise = guard.getElseBodyBuilder();
  Value sum = numbers.get(otherwise, nest.product.sum->getResult(0));
  WriteOp::create(otherwise, loc, sum, kept, placeOfKept(otherwise, slot), Value(), IntegerAttr());
  at = guard.getThenBodyBuilder();
}

/// Who has part n of an item adds up the tiles that are numbered n modulo the number of parts: the first part, and the
/// others onto it, in their order. `at` goes on with their sum.
void LayoutLoops::addUpParts(OpBuilder &at) {
  Value isCut = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, slot, constant(0));
  Value whose = arith::RemUIOp::create(at, loc, tileNumber(), parts);
  Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, whose, part);
  Value condition = arith::AndIOp::create(at, loc, isCut, isOwn);
  at = scf::IfOp::create(at, loc, condition, /*withElseRegion=*/false).getThenBodyBuilder();
  Value slots = arith::SubIOp::create(at, loc, slot, part), others = arith::SubIOp::create(at, loc, parts, constant(1));
  auto read = [&](OpBuilder &from, Value own) {
    return ReadOp::create(from, loc, b.getF32Type(), kept, placeOfKept(from, own), Value(), IntegerAttr()).getResult();
  };
  auto loop = LoopOp::create(at, loc, "part", others, read(at, slots), Reduction::Add);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value next = add(in, slots, add(in, loop.getCoordinate(), constant(1)));
  YieldOp::create(in, loc, arith::AddFOp::create(in, loc, loop.getIterArgs()[0], read(in, next)).getResult());
  numbers.map(nest.product.sum->getResult(0), loop.getResult(0));
}

//===- The nests ----------------------------------------------------------===//

void LayoutLoops::make() {
  OpBuilder at(nest.top);
  numbers = RoleScalars(nest.top);
  loops.clear();
  LoopOp worker = open(at, "n", workers);
  worker.setBind(ParallelUnit::BlockX);
  made.push_back(worker);
  b.setInsertionPoint(worker); // of constants
  openItems(at, worker.getCoordinate());
  openTile(at);
  OpBuilder behind = OpBuilder::atBlockEnd(&loops.back()->getRegion(0).front());
  if (isSummingUp)
    addUpParts(at);
  else
    numbers.map(nest.product.sum->getResult(0), sum(at));
  if (nest.isCut() && !isSummingUp)
    keepPart(at);
  write(at);
  close(behind);
}

LogicalResult LayoutLoops::replace() {
  make();
  if (nest.isCut()) {
    isSummingUp = true;
    make();
  }
  return eraseNest(nest, nest.product.isSampled() ? nest.product.sum : nest.product.write.getOperation());
}
