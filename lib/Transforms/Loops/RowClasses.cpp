// SPDX-License-Identifier: Apache-2.0
/// \file
/// Row classes: a nest for each part of a sum, over the rows that the part has.
///
/// Where the rules of a sum look at nothing but a row and counts under it, each row lies in one part, and no products
/// are combined. (SparseTIR's buckets and DASP's row classes are such sums.)
#include "RowClasses.h"

#include "OwnerForm.h"
#include "lacis/Dialect/Lacis/IR/RowLists.h"

using namespace mlir;
using namespace lacis;

static constexpr StringLiteral kClass = "lacis.class", kList = "list", kRest = "rest";

static PartOp partOf(Value tensor) {
  if (auto walk = tensor.getDefiningOp<WalkOp>())
    tensor = walk.getSource();
  return tensor.getDefiningOp<PartOp>();
}

static SumAttr sumOf(PartOp part) {
  return cast<SumAttr>(cast<RankedTensorType>(part.getSource().getType()).getEncoding());
}

/// The list of the part's rows: its own, or that of its companion.
static FormatAttr listFor(FormatAttr format, unsigned axis) {
  bool own = listsRows(format) && format.getLevels()[0].getDigits()[0].axis == axis &&
             objectionTo(kList, format, {axis}).empty();
  return own ? format : listOf(format, axis);
}

/// The first part whose levels have all rows, or null: its nest has the rows of no other.
static FormatAttr restOf(SumAttr sum, unsigned axis, StringAttr *name = nullptr) {
  for (auto [part, format] : llvm::zip(sum.getNames(), sum.getFormats()))
    if (isLocated(format, {axis})) {
      if (name)
        *name = part;
      return format;
    }
  return {};
}

std::string lacis::objectionToClasses(OpOperand &operand, ArrayRef<unsigned> axes) {
  PartOp part = partOf(operand.get());
  if (!part)
    return "it is no sum of formats";
  if (axes.size() != 1)
    return "the output has " + std::to_string(axes.size()) + " of its axes, and a row one";
  SumAttr sum = sumOf(part);
  if (sum.getFormats()[0].getNumBatchLevels() != 0)
    return "its values are those of a batch, added up around the rows";
  unsigned axis = axes[0];
  if (!keepsRowsWhole(sum, axis))
    return "a rule of it looks at more than " + sum.getFormats()[0].getNames()[axis].str() +
           " and counts under that, so that two parts may share a row";
  FormatAttr rest = restOf(sum, axis);
  for (auto [name, format] : llvm::zip(sum.getNames(), sum.getFormats())) {
    bool whole = format.getNumTileLevels() == 0 && format.getBindings().empty() && hasWholeRows(format, axis);
    if (!whole || (format != rest && (!listFor(format, axis) || !rowsOf(format, axis))))
      return "part '" + name.str() + "' has rows of blocks, of which no list is made";
  }
  return "";
}

bool lacis::keepsRowsTogether(linalg::GenericOp generic, OpOperand &operand, unsigned axis) {
  AffineMap out = generic.getIndexingMapsArray().back();
  auto dims = out.getResults();
  if (dims.empty() || dims.front() != generic.getMatchingIndexingMap(&operand).getResult(axis))
    return false;
  return llvm::all_of(generic.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = generic.getMatchingIndexingMap(input);
    return input == &operand || map.getNumResults() < 2 || map.getResults().back() == dims.back();
  });
}

void lacis::chooseClass(linalg::GenericOp generic, OpOperand &operand, unsigned axis) {
  PartOp part = partOf(operand.get());
  OpBuilder b(generic);
  StringAttr rest;
  restOf(sumOf(part), axis, &rest);
  if (rest && rest.getValue() == part.getName())
    return generic->setAttr(kClass, b.getStringAttr(kRest));
  generic->setAttr(kClass, b.getStringAttr(kList));
  auto type = cast<RankedTensorType>(operand.get().getType());
  FormatAttr format = formatOf(operand.get()), list = listFor(format, axis);
  if (list != format)
    operand.set(WalkOp::create(b, generic.getLoc(),
                               RankedTensorType::get(type.getShape(), type.getElementType(), list), operand.get()));
}

bool RowClasses::find(ArrayRef<linalg::GenericOp> generics) {
  for (linalg::GenericOp generic : generics) {
    auto role = generic->getAttrOfType<StringAttr>(kClass);
    if (!role)
      continue;
    OpOperand *operand = *llvm::find_if(generic.getDpsInputOperands(), [](OpOperand *input) { return formatOf(input->get()); });
    if (role.getValue() == kRest)
      rest = operand;
    else
      listed.insert(listed.begin(), operand); // products are found from the last on
  }
  return rest || !listed.empty();
}

namespace {

/// The nest of the part that has all rows: those that others have are left to them.
class RestOfRows : OwnedNest {
public:
  using OwnedNest::OwnedNest;

  LogicalResult build(OpBuilder &b, ArrayRef<OpOperand *> others) {
    SmallVector<Value> rows = llvm::map_to_vector(others, [&](OpOperand *other) { return allRowsOf(b, *other); });
    OpBuilder before = b;
    for (Letter &letter : letters)
      for (auto [rank, digit] : llvm::enumerate(digitsOf(letter))) {
        LoopOp loop = openLoop(before, letter.name, sizeOf(before, digit, letter));
        letter.digits.push_back({Digit{0, digit.div, digit.mod}, loop.getCoordinate()});
      }
    OpBuilder inner = compose(OpBuilder::atBlockEnd(loops.back().getBlock()), [](const Letter &) { return true; });
    Value row = axes[owned.front()]->coordinate, isOurs;
    for (Value other : rows) {
      Value none = hasNone(inner, other, row);
      isOurs = isOurs ? arith::AndIOp::create(inner, loc, isOurs, none).getResult() : none;
    }
    if (isOurs)
      inner = scf::IfOp::create(inner, loc, isOurs, /*withElseRegion=*/false).getThenBodyBuilder();
    Expression expression(sizes);
    expression.setOnly(tensor);
    LogicalResult written = write(inner, expression);
    closeLoops();
    return written;
  }

private:
  /// The companion of another part that tells how many entries each row has there.
  Value allRowsOf(OpBuilder &b, OpOperand &other) {
    Value part = partOf(other.get());
    auto type = cast<RankedTensorType>(part.getType());
    FormatAttr rows = rowsOf(formatOf(part), owned.front());
    return WalkOp::create(b, loc, RankedTensorType::get(type.getShape(), type.getElementType(), rows), part);
  }

  Value hasNone(OpBuilder &b, Value rows, Value row) {
    Type index = b.getIndexType();
    Value root = arith::ConstantIndexOp::create(b, loc, 0);
    Value position = LocateOp::create(b, loc, index, rows, 0, root, ValueRange{row});
    auto bounds = BoundsOp::create(b, loc, index, index, rows, 1, position);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, bounds.getLo(), bounds.getHi());
  }
};

} // namespace

/// Sizes and walks stand before the first nest, so that nests can be copied to where it is.
static void hoistSizes(func::FuncOp function) {
  Operation *first = nullptr;
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator()))
    if (isa<LoopOp>(op))
      first = first ? first : &op;
    else if (first && isPure(&op))
      op.moveBefore(first);
}

LogicalResult RowClasses::build(OpBuilder &b) {
  auto function = cast<func::FuncOp>(output.getOwner()->getParentOp());
  // Nests of their own write their rows where they lie: the output is not copied.
  function.setArgAttr(output.getArgNumber(), "lacis.listed", b.getBoolAttr(false));
  SmallVector<Attribute> names;
  for (auto [number, operand] : llvm::enumerate(listed)) {
    SmallVector<Letter> own(letters);
    ListedRows nest(root, *operand, own, output, sizes);
    bool isLast = !rest && number + 1 == listed.size();
    StringRef part = partOf(operand->get()).getName();
    if (!isLast)
      names.push_back(b.getStringAttr(part));
    OpBuilder fill = b, rows = b; // each moves to where sizes stand
    if (!rest && number == 0 && failed(nest.fillAll(fill)))
      return failure();
    rows = b;
    if (failed(nest.buildPart(rows, isLast ? "" : (part + ".").str())))
      return failure();
  }
  function->setAttr("lacis.classes", b.getArrayAttr(names));
  SmallVector<Letter> own(letters);
  if (rest && failed(RestOfRows(root, *rest, own, output, sizes).build(b, listed)))
    return failure();
  hoistSizes(function);
  return success();
}
