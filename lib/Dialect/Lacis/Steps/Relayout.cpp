// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest reads a copy of a dense operand in another layout; a nest before it makes the copy.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

namespace {
/// Builds the workspace and the nest that fills it, level by level of the layout.
struct Copy {
  OpBuilder b;
  Location loc;
  Value source;
  FormatAttr layout;
  StringRef operand;
  SmallVector<Value> sizes;

  Value build() {
    auto type = cast<RankedTensorType>(source.getType());
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      sizes.push_back(tensor::DimOp::create(b, loc, source, axis));
    auto laidOut = RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    Value workspace = WorkspaceOp::create(b, loc, laidOut, sizes);
    fill(workspace, type.getElementType());
    return workspace;
  }

  LoopOp openLoop(OpBuilder &inner, Digit digit, unsigned rank, unsigned count) {
    Value upper = digit.mod ? arith::ConstantIndexOp::create(b, loc, digit.mod).getResult() : sizes[digit.axis];
    if (!digit.mod && digit.div != 1)
      upper = arith::CeilDivUIOp::create(b, loc, upper, arith::ConstantIndexOp::create(b, loc, digit.div));
    std::string name =
        (operand + "." + digitName(layout.getAxes()[digit.axis].getValue(), rank, count)).str();
    return LoopOp::create(inner, loc, name, upper);
  }

  void fill(Value workspace, Type element) {
    SmallVector<Digit> digits;
    for (LevelAttr level : layout.getLevels())
      llvm::append_range(digits, level.getDigits());
    SmallVector<LoopOp> loops;
    SmallVector<Value> coordinates(sizes.size());
    for (Digit digit : digits) {
      unsigned count = llvm::count_if(digits, [&](Digit d) { return d.axis == digit.axis; });
      unsigned rank = llvm::count_if(digits, [&](Digit d) { return d.axis == digit.axis && d.div > digit.div; });
      OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
      loops.push_back(openLoop(inner, digit, rank, count));
      b.setInsertionPoint(loops.front()); // sizes stand before the nest
    }
    OpBuilder body = OpBuilder::atBlockEnd(loops.back().getBlock());
    for (auto [digit, loop] : llvm::zip(digits, loops)) {
      Value term = loop.getCoordinate();
      if (digit.div != 1)
        term = arith::MulIOp::create(body, loc, term, arith::ConstantIndexOp::create(body, loc, digit.div));
      Value &sum = coordinates[digit.axis];
      sum = sum ? arith::AddIOp::create(body, loc, sum, term).getResult() : term;
    }
    Value value = readInside(body, coordinates, element, digits);
    WriteOp::create(body, loc, value, workspace, coordinates, Value(), IntegerAttr());
    for (LoopOp loop : loops) {
      OpBuilder end = OpBuilder::atBlockEnd(loop.getBlock());
      YieldOp::create(end, loc);
    }
  }

  /// The source's element, or zero where the layout pads an axis.
  Value readInside(OpBuilder &body, ArrayRef<Value> coordinates, Type element, ArrayRef<Digit> digits) {
    Value inside;
    for (auto [axis, size] : llvm::enumerate(sizes)) {
      int64_t largest = 1;
      for (Digit digit : digits)
        if (digit.axis == axis)
          largest = std::max(largest, digit.div);
      if (knownDivisor(size) % largest == 0)
        continue;
      Value ok = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, coordinates[axis], size);
      inside = inside ? arith::AndIOp::create(body, loc, inside, ok).getResult() : ok;
    }
    auto read = [&](OpBuilder &at) {
      return ReadOp::create(at, loc, element, source, coordinates, Value(), IntegerAttr()).getResult();
    };
    if (!inside)
      return read(body);
    auto guard = scf::IfOp::create(body, loc, element, inside, /*withElseRegion=*/true);
    OpBuilder then = guard.getThenBodyBuilder(), otherwise = guard.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, read(then));
    Value zero = arith::ConstantOp::create(otherwise, loc, otherwise.getZeroAttr(element));
    scf::YieldOp::create(otherwise, loc, zero);
    return guard.getResult(0);
  }
};
} // namespace

LogicalResult RelayoutStepAttr::apply(Nest &nest, Location loc) const {
  Value source = nest.findOperand(getOperand());
  if (!source)
    return emitError(loc) << "relayout: no operand named '" << getOperand() << "'";
  auto layout = dyn_cast<FormatAttr>(getLayout());
  if (!layout || layout.getAxes().size() != static_cast<size_t>(cast<RankedTensorType>(source.getType()).getRank()) ||
      !llvm::all_of(layout.getLevels(), [](LevelAttr level) { return level.getExtent().coversDomain(); }))
    return emitError(loc) << "relayout: the layout of '" << getOperand() << "' must be dense levels over its axes";
  SmallVector<ReadOp> reads;
  nest.getFunction().walk([&](ReadOp read) {
    if (read.getTensor() == source)
      reads.push_back(read);
  });
  if (reads.empty())
    return emitError(loc) << "relayout: nothing reads '" << getOperand() << "'";
  SmallVector<LoopOp> main = nest.mainChain();
  Copy copy{OpBuilder(main.front()), loc, source, layout, getOperand(), {}};
  Value workspace = copy.build();
  for (ReadOp read : reads)
    read.getTensorMutable().assign(workspace);
  return success();
}
