// SPDX-License-Identifier: Apache-2.0
/// \file
/// Row classes: a nest for each part of a sum, over the rows that the part has.
///
/// Where the rules of a sum look at nothing but a row and counts under it, each row lies in one part, and no products
/// are combined. (SparseTIR's buckets and DASP's row classes are such sums.) Rules that name strips of other axes, too, make
/// groups of parts: in each a row lies in one part, and a group adds to what those before have left.
#include "RowClasses.h"

#include "OwnerForm.h"
#include "SharedRows.h"
#include "lacis/Dialect/Lacis/IR/RowLists.h"

using namespace mlir;
using namespace lacis;

static constexpr StringLiteral kClass = "lacis.class", kGroup = "lacis.group", kList = "list", kRest = "rest";

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

/// The numbers of the parts of each group.
static SmallVector<SmallVector<unsigned>> groupsOf(SumAttr sum, unsigned axis) {
  SmallVector<SmallVector<unsigned>> groups;
  for (auto [part, group] : llvm::enumerate(rowGroups(sum, axis))) {
    groups.resize(group + 1);
    groups.back().push_back(part);
  }
  return groups;
}

/// The number of the part in its sum.
static unsigned numberOf(PartOp part) {
  ArrayRef<StringAttr> names = sumOf(part).getNames();
  return llvm::find(names, part.getNameAttr()) - names.begin();
}

/// The first part of a group whose levels have all rows, or nothing: its nest has the rows of no other.
static std::optional<unsigned> restOf(SumAttr sum, ArrayRef<unsigned> group, unsigned axis) {
  for (unsigned part : group)
    if (isLocated(sum.getFormats()[part], {axis}))
      return part;
  return std::nullopt;
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
  SmallVector<SmallVector<unsigned>> groups = groupsOf(sum, axis);
  if (groups.empty())
    return "a rule of it looks at more than " + sum.getFormats()[0].getNames()[axis].str() +
           ", counts under that and digits of other axes, so that two parts may share a row";
  for (ArrayRef<unsigned> group : groups) {
    std::optional<unsigned> rest = restOf(sum, group, axis);
    for (unsigned part : group) {
      FormatAttr format = sum.getFormats()[part];
      bool whole = format.getNumTileLevels() == 0 && format.getBindings().empty() && hasWholeRows(format, axis);
      if (!whole || (part != rest && (!listFor(format, axis) || !rowsOf(format, axis))))
        return "part '" + sum.getNames()[part].str() + "' has rows of blocks, of which no list is made";
    }
  }
  return groups.size() == 1 ? "" : objectionToParts(cast<linalg::GenericOp>(operand.getOwner()));
}

std::string lacis::reasonForClasses(OpOperand &operand, unsigned axis) {
  SmallVector<SmallVector<unsigned>> groups = groupsOf(sumOf(partOf(operand.get())), axis);
  if (groups.size() == 1)
    return "the rules leave each row to one part";
  bool tellsRows = llvm::any_of(groups, [](ArrayRef<unsigned> group) { return group.size() > 1; });
  return tellsRows ? "the rules leave each row of a strip to one part" : "";
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
  unsigned number = numberOf(part);
  for (ArrayRef<unsigned> group : groupsOf(sumOf(part), axis))
    if (llvm::is_contained(group, number))
      generic->setAttr(kGroup, b.getI64IntegerAttr(group.front()));
  bool isRest = llvm::any_of(groupsOf(sumOf(part), axis), [&](ArrayRef<unsigned> group) {
    return restOf(sumOf(part), group, axis) == number;
  });
  if (isRest)
    return generic->setAttr(kClass, b.getStringAttr(kRest));
  generic->setAttr(kClass, b.getStringAttr(kList));
  auto type = cast<RankedTensorType>(operand.get().getType());
  FormatAttr format = formatOf(operand.get()), list = listFor(format, axis);
  if (list != format)
    operand.set(WalkOp::create(b, generic.getLoc(),
                               RankedTensorType::get(type.getShape(), type.getElementType(), list), operand.get()));
}

bool RowClasses::find(ArrayRef<linalg::GenericOp> generics) {
  for (linalg::GenericOp generic : llvm::reverse(generics)) { // products are found from the last on
    auto role = generic->getAttrOfType<StringAttr>(kClass);
    if (!role)
      continue;
    OpOperand *operand = *llvm::find_if(generic.getDpsInputOperands(), [](OpOperand *input) { return formatOf(input->get()); });
    int64_t number = generic->getAttrOfType<IntegerAttr>(kGroup).getInt();
    if (groups.empty() || groups.back().number != number)
      groups.push_back({number, {}, nullptr});
    first = first ? first : generic;
    last = generic;
    if (role.getValue() == kRest)
      groups.back().rest = operand;
    else
      groups.back().listed.push_back(operand);
  }
  return !groups.empty();
}

namespace {

/// The nest of the part that has all rows: those that others have are left to them.
class RestOfRows : OwnedNest {
public:
  using OwnedNest::OwnedNest;

  using OwnedNest::setRunning;
  /// Its loops over letters of the output have this path.
  LogicalResult build(OpBuilder &b, ArrayRef<OpOperand *> others, PathAttr path) {
    SmallVector<Value> rows = llvm::map_to_vector(others, [&](OpOperand *other) { return allRowsOf(b, *other); });
    OpBuilder before = b;
    for (Letter &letter : letters)
      for (auto [rank, digit] : llvm::enumerate(digitsOf(letter))) {
        LoopOp loop = openLoop(before, {letter.name, path}, sizeOf(before, digit, letter));
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

/// The nests of a group; `names` are those of all but the last group's last, which has the letters' own names.
LogicalResult RowClasses::buildGroup(OpBuilder &b, const Group &group, RunningSum *sum,
                                     SmallVectorImpl<Attribute> &names) {
  bool isFirst = &group == &groups.front(), isLastGroup = &group == &groups.back();
  auto pathFor = [&](OpOperand *operand, bool isLast) {
    if (isLast && isLastGroup)
      return PathAttr();
    names.push_back(b.getStringAttr(partOf(operand->get()).getName()));
    return pathOf(operand->get());
  };
  for (auto [number, operand] : llvm::enumerate(group.listed)) {
    SmallVector<Letter> own(letters);
    ListedRows nest(root, *operand, own, output, sizes);
    nest.setRunning(sum, !isFirst);
    OpBuilder fill = b, rows = b; // each moves to where sizes stand
    if (isFirst && !group.rest && number == 0 && failed(nest.fillAll(fill)))
      return failure();
    if (failed(nest.buildPart(rows, pathFor(operand, !group.rest && number + 1 == group.listed.size()))))
      return failure();
  }
  if (!group.rest)
    return success();
  SmallVector<Letter> own(letters);
  RestOfRows nest(root, *group.rest, own, output, sizes);
  nest.setRunning(sum, !isFirst);
  return nest.build(b, group.listed, pathFor(group.rest, true));
}

LogicalResult RowClasses::build(OpBuilder &b) {
  auto function = cast<func::FuncOp>(output.getOwner()->getParentOp());
  // Nests of their own write their rows where they lie: the output is not copied.
  function.setArgAttr(output.getArgNumber(), "lacis.listed", b.getBoolAttr(false));
  RunningSum sum(root, first, last, output);
  bool runs = groups.size() > 1;
  if (runs)
    sum.prepare(b, letters);
  SmallVector<Attribute> classes;
  for (const Group &group : groups) {
    SmallVector<Attribute> names;
    if (failed(buildGroup(b, group, runs ? &sum : nullptr, names)))
      return failure();
    classes.push_back(b.getArrayAttr(names));
  }
  function->setAttr("lacis.classes", b.getArrayAttr(classes));
  if (runs && !sum.isFinished() && failed(sum.finish(b, letters, sizes)))
    return failure();
  hoistSizes(function);
  return success();
}
