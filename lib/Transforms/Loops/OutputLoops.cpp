// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a nest over the axes of what it makes, and the sizes of all letters.
#include "OutputLoops.h"

#include "Expression.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

using namespace mlir;
using namespace lacis;

void OutputLoops::addDigits(StringRef name, FormatAttr format, unsigned axis) {
  for (LevelAttr level : format.getLevels())
    for (Digit digit : level.getDigits())
      if (digit.axis == axis && !llvm::is_contained(cuts[name], digit.div))
        cuts[name].push_back(digit.div);
}

/// Sizes of the letters, from the arguments that have them, and the names of the arguments' axes.
LogicalResult OutputLoops::add(linalg::GenericOp generic) {
  for (unsigned dim = 0; dim < generic.getNumLoops(); ++dim)
    if (std::string name = letterName(generic, dim); name.empty() || !llvm::all_of(name, llvm::isAlpha))
      return generic.emitError("'lacis.loops' names a loop '") << name << "'; names are letters";
  for (OpOperand &operand : generic->getOpOperands()) {
    Value tensor = operand.get();
    if (ZerosOp zeros = zerosOf(tensor))
      tensor = zeros.getSource(); // the pattern has the axes of the output
    BlockArgument argument = argumentOf(tensor);
    AffineMap map = generic.getMatchingIndexingMap(&operand);
    if (!map.isProjectedPermutation())
      return generic.emitError("indexing map ") << AffineMapAttr::get(map) << " is not a list of loops";
    if (!argument)
      continue;
    SmallVector<Attribute> axes;
    for (unsigned axis = 0; axis < map.getNumResults(); ++axis) {
      std::string name = letterName(generic, map.getDimPosition(axis));
      axes.push_back(b.getStringAttr(name));
      if (!sizes.contains(name))
        sizes[name] = tensor::DimOp::create(b, generic.getLoc(), argument, axis);
      if (FormatAttr format = formatOf(tensor))
        addDigits(name, format, axis);
    }
    function.setArgAttr(argument.getArgNumber(), "lacis.axes", b.getArrayAttr(axes));
  }
  return success();
}

/// One loop for each digit that some operand's levels distinguish, most significant first.
void OutputLoops::open(Letter &letter, SmallVectorImpl<LoopOp> &loops) {
  SmallVector<int64_t> divs = cuts[letter.name];
  llvm::sort(divs, std::greater<>());
  if (divs.empty() || divs.back() != 1)
    divs.push_back(1);
  for (unsigned n = 0; n + 1 < divs.size(); ++n)
    if (divs[n] % divs[n + 1] != 0)
      divs = {1}; // digits that do not nest are computed from the coordinate
  for (auto [n, div] : llvm::enumerate(divs)) {
    OpBuilder b = this->b; // sizes stand before the nest
    if (!loops.empty())
      b.setInsertionPoint(loops.front());
    int64_t mod = n == 0 ? 0 : divs[n - 1] / div;
    Location loc = letter.size.getLoc();
    Value upper = mod ? arith::ConstantIndexOp::create(b, loc, mod).getResult() : letter.size;
    if (!mod && div != 1)
      upper = arith::CeilDivUIOp::create(b, loc, upper, arith::ConstantIndexOp::create(b, loc, div));
    OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
    loops.push_back(LoopOp::create(inner, loc, digitName(letter.name, n, divs.size()), upper));
    letter.digits.push_back({Digit{0, div, mod}, loops.back().getCoordinate()});
  }
}

/// The letters of the output's axes, in order.
LogicalResult OutputLoops::lettersOf(linalg::GenericOp root, SmallVectorImpl<Letter> &letters) {
  for (AffineExpr expr : root.getIndexingMapsArray().back().getResults()) {
    Letter letter;
    letter.name = letterName(root, cast<AffineDimExpr>(expr).getPosition());
    letter.size = sizes.lookup(letter.name);
    if (!letter.size)
      return root.emitError("no operand tells the size of loop '") << letter.name << "'";
    letters.push_back(std::move(letter));
  }
  return success();
}

OpBuilder lacis::composeInside(OpBuilder b, Location loc, Letter &letter) {
  letter.compose(b, loc);
  if (!needsGuard(letter.size, letter.digits.front().first.div, letter.digits.size()))
    return b;
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, letter.coordinate, letter.size);
  return scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
}

LogicalResult OutputLoops::writeElements(linalg::GenericOp statement, MutableArrayRef<Letter> letters, Value target,
                                         const DenseMap<Value, Value> *kept) {
  Location loc = statement.getLoc();
  SmallVector<LoopOp> loops;
  for (Letter &letter : letters)
    open(letter, loops);
  OpBuilder inner = OpBuilder::atBlockEnd(loops.back().getBlock());
  Expression expression(sizes, kept);
  SmallVector<Value> coordinates;
  for (Letter &letter : letters) {
    inner = composeInside(inner, loc, letter);
    coordinates.push_back(letter.coordinate);
    expression.noteDigits(letter);
  }
  FailureOr<Value> value = expression.element(inner, statement.getResult(0), coordinates);
  if (failed(value))
    return failure();
  WriteOp::create(inner, loc, *value, target, coordinates, Value(), IntegerAttr());
  closeLoops(loc, loops);
  return success();
}

void lacis::closeLoops(Location loc, ArrayRef<LoopOp> loops) {
  for (LoopOp loop : loops) {
    OpBuilder end = OpBuilder::atBlockEnd(loop.getBlock());
    YieldOp::create(end, loc, ValueRange());
  }
}
