// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over listed rows, in strips that write the rows between them, too.
///
/// A launch that begins with zeros goes through the output twice, and a large one has left the caches when its rows come.
/// A strip writes zeros from behind the last row of the strip before to its own last row, the last strip to the end; there is
/// one more than the list needs, so that an empty list has one.
#include "ListStrips.h"

#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/Steps/Conditions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

static constexpr StringLiteral kListed = "lacis.listed";

static BlockArgument outputOf(LoopOp loop) {
  return loop->getParentOfType<func::FuncOp>().getArguments().back();
}

bool lacis::beginsAsZeros(Nest &nest, StringRef operand) {
  func::FuncOp function = nest.getFunction();
  unsigned last = function.getNumArguments() - 1;
  auto zeros = function.getArgAttrOfType<BoolAttr>(last, kListed);
  auto name = function.getArgAttrOfType<StringAttr>(last, "lacis.name");
  return zeros && zeros.getValue() && name && name.getValue() == operand;
}

/// The only store of the output, at a row that the first level of an operand names, or null.
static CoordinateOp listedRow(LoopOp rows) {
  CoordinateOp found;
  for (Operation *user : outputOf(rows).getUsers()) {
    auto write = dyn_cast<WriteOp>(user);
    if (!write || found || !rows->isAncestor(write) || write.getIndices().size() != 1)
      return {};
    auto row = write.getIndices()[0].getDefiningOp<CoordinateOp>();
    if (!row || row.getLevel() != 0 || write.getIndices()[0] != row.getDigits()[0])
      return {};
    found = row;
  }
  return found;
}

std::string lacis::objectionToListStrips(LoopOp rows) {
  std::string loop = "loop '" + rows.getName().str() + "' ";
  CoordinateOp row = listedRow(rows);
  auto function = rows->getParentOfType<func::FuncOp>();
  auto zeros = function.getArgAttrOfType<BoolAttr>(function.getNumArguments() - 1, kListed);
  if (!zeros || !zeros.getValue() || !row || rows.getMeets() || rows->getParentOp() != function)
    return loop + "does not write each row that a level lists, alone, to an output that begins as zeros";
  LevelAttr level = formatOf(row.getTensor()).getLevels()[0];
  CoordinateInterface coordinate = level.getCoordinate();
  bool isWhole = level.getDigits().size() == 1 && level.getDigits()[0].div == 1 && level.getDigits()[0].mod == 0;
  if (!isWhole || !coordinate.isOrdered() || !coordinate.isUnique() || coordinate.isPadded() || !level.isRandomAccess())
    return loop + "goes over a level that does not list whole rows in ascending order, without padding";
  return "";
}

namespace {
/// The zeros of a strip, before its rows.
class Strip {
public:
  Strip(LoopOp at, int64_t positions, CoordinateOp row, Value rows, Location loc)
      : at(at), positions(positions), row(row), rows(rows), loc(loc) {}

  void write() {
    OpBuilder b(at.getBlock(), at.getBlock()->begin());
    Type index = b.getIndexType();
    auto bounds = BoundsOp::create(b, loc, index, index, row.getTensor(), 0, constant(b, 0));
    lo = bounds.getLo(), hi = bounds.getHi();
    Value before = arith::MulIOp::create(b, loc, at.getCoordinate(), constant(b, positions));
    Value first = arith::AddIOp::create(b, loc, lo, before);
    Value end = arith::AddIOp::create(b, loc, first, constant(b, positions));
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, at.getCoordinate(), constant(b, 0));
    Value isListed = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lo, hi);
    auto guard = scf::IfOp::create(b, loc, isListed, /*withElseRegion=*/true);
    OpBuilder listed = guard.getThenBodyBuilder(), empty = guard.getElseBodyBuilder();
    Value from = arith::SelectOp::create(listed, loc, isFirst, constant(listed, 0), behind(listed, first));
    writeZeros(listed, from, behind(listed, end));
    writeZeros(empty, arith::SelectOp::create(empty, loc, isFirst, constant(empty, 0), rows), rows);
  }

private:
  Value constant(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  /// One more than the last row before a position; all rows behind the last position. Some row is listed.
  Value behind(OpBuilder &b, Value position) {
    Value one = constant(b, 1);
    Value last = arith::SubIOp::create(b, loc, arith::MinSIOp::create(b, loc, position, hi), one);
    Value known = arith::MaxSIOp::create(b, loc, last, lo);
    auto own = CoordinateOp::create(b, loc, TypeRange(b.getIndexType()), b.getI1Type(), row.getTensor(), 0, lo, known);
    Value next = arith::AddIOp::create(b, loc, own.getDigits()[0], one);
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position, hi);
    return arith::SelectOp::create(b, loc, isInside, next, rows);
  }
  /// for r in to - from: y[from + r] = 0
  void writeZeros(OpBuilder &b, Value from, Value to) {
    BlockArgument output = outputOf(at);
    Value count = arith::SubIOp::create(b, loc, to, from);
    auto zeros = LoopOp::create(b, loc, {letterOf(at.getName()), pathOf(b.getContext(), PathKind::Phase, "unlisted")}, count);
    OpBuilder body = OpBuilder::atBlockEnd(zeros.getBlock());
    Type element = cast<RankedTensorType>(output.getType()).getElementType();
    Value zero = arith::ConstantOp::create(body, loc, body.getZeroAttr(element));
    Value place = arith::AddIOp::create(body, loc, from, zeros.getCoordinate());
    WriteOp::create(body, loc, zero, output, place, Value(), IntegerAttr());
    YieldOp::create(body, loc);
  }

  LoopOp at;
  int64_t positions;
  CoordinateOp row;
  Value rows;
  Location loc;
  Value lo, hi;
};
} // namespace

std::string lacis::fillInStrips(LoopOp at, Location loc) {
  if (std::string why = objectionToListStrips(at); !why.empty())
    return why;
  SmallVector<LoopOp> chain = perfectChain(at);
  std::optional<int64_t> positions = chain.size() == 2 ? pinTrip(chain[1]) : std::nullopt;
  auto strips = at.getUpper().getDefiningOp<arith::CeilDivUIOp>();
  if (!positions || !strips || getConstantIntValue(strips.getRhs()) != positions)
    return "loop '" + at.getName().str() + "' does not go over strips of a list; split the loop over its rows";
  OpBuilder before(at->getContext());
  before.setInsertionPointAfter(strips);
  Value one = arith::ConstantIndexOp::create(before, loc, 1);
  Value more = arith::AddIOp::create(before, loc, strips.getLhs(), one);
  at.getUpperMutable().assign(arith::CeilDivUIOp::create(before, loc, more, strips.getRhs()));
  if (strips->use_empty())
    strips.erase();
  CoordinateOp row = listedRow(at);
  unsigned axis = formatOf(row.getTensor()).getLevels()[0].getDigits()[0].axis;
  Value rows = tensor::DimOp::create(before, loc, row.getTensor(), axis);
  Strip(at, *positions, row, rows, loc).write();
  auto function = at->getParentOfType<func::FuncOp>();
  function.setArgAttr(outputOf(at).getArgNumber(), kListed, before.getBoolAttr(false));
  return "";
}
