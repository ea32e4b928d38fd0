// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s += ell; s += rest  -->  for rest.i in rows(rest): s += ell; s += rest,  for i not in rows(rest): s += ell
///
/// The rows of which a part has entries get a nest of their own, which shares the launch of the other: each row has one
/// owner, and the few long ones are run otherwise than the many short ones. A part that does not list its rows, each
/// once, has a companion index that does.
///
/// Of an operand that is no sum the companion lists the rows with at least so many entries, which walk it; the nest itself
/// keeps shorter rows, by their bounds.
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/RowLists.h"
#include "lacis/Dialect/Lacis/Steps/Conditions.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

namespace {

/// What the step finds in the nest.
struct Rows {
  Value source;        // the part, or the operand
  LoopOp top, rows;    // the nest, and its loop over all rows
  LevelLoopOp entries; // of the source, in one row
  FormatAttr list;     // the source's, or that of its companion: its first level lists the rows, each once
};

} // namespace

/// The loop of the part over the entries of a row, which ends the sum; or null.
static LevelLoopOp entriesOf(LoopOp top, StringRef part) {
  LevelLoopOp found;
  unsigned loops = 0;
  top->walk([&](Operation *op) {
    if (!isInPart(op, part))
      return;
    ++loops;
    found = dyn_cast<LevelLoopOp>(op);
  });
  bool single = loops == 1 && found && found.getNumResults() == 1 && found.getLevel() == 1;
  bool last = single && llvm::none_of(found->getUsers(), [](Operation *user) { return isa<LoopOp, LevelLoopOp>(user); });
  return last ? found : LevelLoopOp();
}

/// Why no step before leaves the nest to this one, or nothing.
static std::string findNest(Nest &nest, Rows &found) {
  found.top = nest.mainChain().front();
  return hasMarks(found.top) ? "loops of the nest are marked already; say it before other steps" : "";
}

/// The loop over all rows whose entries are found; or null.
static LoopOp loopOverRows(Nest &nest, LevelLoopOp entries) {
  auto row = entries ? entries.getParent().getDefiningOp<LocateOp>() : LocateOp();
  LoopOp found;
  for (LoopOp loop : nest.mainChain())
    if (row && row.getLevel() == 0 && row.getDigits().size() == 1 && row.getDigits()[0] == loop.getCoordinate())
      found = loop;
  return found;
}

/// Fills in what the nest has of a part; answers why the step cannot apply, or nothing.
static std::string findRows(Nest &nest, StringRef name, Rows &found) {
  for (PartOp part : nest.getFunction().getBody().getOps<PartOp>())
    if (part.getName() == name)
      found.source = part;
  std::string part = ("part '" + name + "'").str();
  if (!found.source)
    return "no " + part + " of a sum, see decompose";
  if (std::string objection = findNest(nest, found); !objection.empty())
    return objection;
  found.entries = entriesOf(found.top, name);
  found.rows = loopOverRows(nest, found.entries);
  if (!found.rows)
    return part + " is not the last of the sum, with one loop over the entries of a row";
  FormatAttr own = formatOf(found.source), walked = formatOf(found.entries.getTensor());
  if (!isStateless(found.entries))
    return part + " walks coordinates that follow from those before them";
  if (walked.getLevels()[1].getCoordinate().isPadded())
    return part + " pads its rows, so those without entries are not known by their length";
  found.list = listsRows(own) ? own : listOf(own, walked.getLevels()[0].getDigits()[0].axis);
  return found.list ? "" : part + " has rows of blocks, of which no list is made";
}

/// Fills in what the nest has of its one operand; answers why its long rows have no nest of their own, or nothing.
static std::string findLongRows(Nest &nest, Rows &found) {
  if (!nest.parts().empty())
    return "the rules of a sum say which rows its parts have; leave 'least' out";
  if (nest.getFunction()->hasAttr("lacis.classes"))
    return "long rows are apart already";
  if (std::string objection = findNest(nest, found); !objection.empty())
    return objection;
  found.entries = entryLoop(found.top);
  found.rows = loopOverRows(nest, found.entries);
  if (!found.rows)
    return "no operand has one loop over the entries of a row, which ends the sum";
  Value tensor = found.entries.getTensor();
  auto walk = tensor.getDefiningOp<WalkOp>();
  found.source = walk ? walk.getSource() : tensor;
  LevelAttr row = formatOf(tensor).getLevels()[0], entries = formatOf(tensor).getLevels()[1];
  if (entries.getCoordinate().isPadded() || !entries.getExtent().hasOwner())
    return "the bounds of a row do not say how many entries it has";
  found.list = listOf(formatOf(found.source), row.getDigits()[0].axis);
  return found.list ? "" : "the operand has rows of blocks, of which no list is made";
}

bool lacis::tellsLongRows(Nest &nest) {
  Rows found;
  return findLongRows(nest, found).empty();
}

StringRef lacis::listedPart(Nest &nest) {
  PartOp last;
  for (PartOp part : nest.getFunction().getBody().getOps<PartOp>())
    last = part;
  Rows found;
  if (!last || !findRows(nest, last.getName(), found).empty())
    return "";
  bool listed = found.list == formatOf(last) || letterHas(nest, letterOf(found.rows.getName()), "lacis.uneven");
  return listed ? last.getName() : "";
}

/// What the innermost block holds behind `after`, but for its end, under a condition.
static scf::IfOp guardRest(Operation *after, Value condition, Location loc) {
  Block *block = after->getBlock();
  OpBuilder b(after->getContext());
  b.setInsertionPointAfter(after);
  auto guard = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  Block *then = guard.thenBlock();
  then->getOperations().splice(then->begin(), block->getOperations(), std::next(guard->getIterator()),
                               std::prev(block->end()));
  return guard;
}

/// The entries of a row are walked below its position in the list, whose links say where their values are.
static void walkList(LevelLoopOp entries, Value list, Value position) {
  Value before = entries.getTensor();
  bool isLinked = formatOf(before).getLevels().back().getExtent().isLink();
  entries.getTensorMutable().assign(list);
  entries.getParentMutable().assign(position);
  entries->walk([&](Operation *op) {
    if (auto link = dyn_cast<LocateOp>(op); link && link.getTensor() == before)
      link.getTensorMutable().assign(list);
    auto value = dyn_cast<ValueOp>(op);
    if (!value || value.getTensor() != before)
      return;
    value.getTensorMutable().assign(list);
    OpBuilder b(value);
    if (!isLinked)
      value.getPositionMutable().assign(LocateOp::create(b, value.getLoc(), b.getIndexType(), list, entries.getLevel() + 1,
                                                         value.getPosition(), ValueRange()));
  });
}

/// A copy of the nest, before it, that runs over the rows of the list: those with at least `least` entries, if that is said.
static void makeListed(const Rows &found, StringRef name, std::optional<int64_t> least, Location loc) {
  LoopOp from = found.top;
  OpBuilder b(from);
  Value part = found.source;
  auto type = cast<RankedTensorType>(part.getType());
  if (least || found.list != formatOf(part))
    part = WalkOp::create(b, loc, RankedTensorType::get(type.getShape(), type.getElementType(), found.list), part,
                          least ? b.getI64IntegerAttr(*least) : IntegerAttr());
  Type index = b.getIndexType();
  Value room = PositionsOp::create(b, loc, index, part, 0);
  Value root = arith::ConstantIndexOp::create(b, loc, 0);
  IRMapping mapping;
  auto top = cast<LoopOp>(b.clone(*from, mapping));
  LoopOp all = found.rows;
  auto rows = cast<LoopOp>(mapping.lookup(all.getCoordinate()).getParentBlock()->getParentOp());
  PathAttr path = pathOf(b.getContext(), PathKind::Part, name);
  top->walk([&](LoopOpInterface loop) {
    if (!isInPart(loop, name))
      loop.setPathAttr(join(path, loop.getPathAttr()));
  });
  rows.getUpperMutable().assign(room);
  Block *innermost = perfectChain(top).back().getBlock();
  OpBuilder body(innermost, innermost->begin());
  auto bounds = BoundsOp::create(body, loc, index, index, part, 0, root);
  auto position = arith::AddIOp::create(body, loc, bounds.getLo(), rows.getCoordinate());
  auto exists = arith::CmpIOp::create(body, loc, CmpIPredicate::slt, position, bounds.getHi());
  scf::IfOp guard = guardRest(exists, exists, loc);
  OpBuilder inside = OpBuilder::atBlockBegin(guard.thenBlock());
  auto row = CoordinateOp::create(inside, loc, TypeRange{index}, inside.getI1Type(), part, 0, bounds.getLo(), position);
  rows.getCoordinate().replaceAllUsesExcept(row.getDigits()[0], position);
  if (least)
    walkList(entryLoop(top), part, position);
}

/// The nest itself keeps the rows of which the part has nothing, or those with fewer entries than `least`.
static void keepOthers(const Rows &found, std::optional<int64_t> least, Location loc) {
  LevelLoopOp entries = found.entries;
  LoopOp top = found.top, rows = found.rows;
  Block *innermost = perfectChain(top).back().getBlock();
  OpBuilder b(innermost, innermost->begin());
  Type index = b.getIndexType();
  Value root = arith::ConstantIndexOp::create(b, loc, 0);
  Value tensor = entries.getTensor();
  auto row = LocateOp::create(b, loc, index, tensor, 0, root, ValueRange{rows.getCoordinate()});
  auto bounds = BoundsOp::create(b, loc, index, index, tensor, 1, row);
  if (least) {
    Value count = arith::SubIOp::create(b, loc, bounds.getHi(), bounds.getLo());
    Value limit = arith::ConstantIndexOp::create(b, loc, *least);
    auto few = arith::CmpIOp::create(b, loc, CmpIPredicate::slt, count, limit);
    guardRest(few, few, loc);
    return;
  }
  auto none = arith::CmpIOp::create(b, loc, CmpIPredicate::sge, bounds.getLo(), bounds.getHi());
  guardRest(none, none, loc);
  entries.getResult(0).replaceAllUsesWith(entries.getInits()[0]);
  entries.erase();
}

SmallVector<StringRef> ApartStepAttr::namedLoops() const { return {}; }

/// Nests that have the rows of a part from the start join the launch of the last.
static LogicalResult joinClasses(Nest &nest, ArrayRef<StringRef> names, Location loc) {
  func::FuncOp function = nest.getFunction();
  SmallVector<StringRef> classes = joiningClasses(function);
  SmallVector<Attribute> all;
  if (auto known = function->getAttrOfType<ArrayAttr>("lacis.apart"))
    llvm::append_range(all, known);
  for (StringRef name : names) {
    auto attr = StringAttr::get(function.getContext(), name);
    if (!llvm::is_contained(nest.parts(), name))
      return emitError(loc) << "apart: no part '" << name << "' of a sum, see decompose";
    if (!llvm::is_contained(classes, name))
      return emitError(loc) << "apart: the others join the nest of part '" << name << "'";
    if (llvm::is_contained(all, attr))
      return emitError(loc) << "apart: part '" << name << "' is apart already";
    all.push_back(attr);
  }
  function->setAttr("lacis.apart", ArrayAttr::get(function.getContext(), all));
  return success();
}

/// The rows with at least `least` entries become a class of that name, which joins the launch of the others.
static LogicalResult partLongRows(Nest &nest, StringRef name, int64_t least, Location loc) {
  Rows found;
  if (least < 1)
    return emitError(loc) << "apart: least " << least << " must be positive";
  if (std::string objection = findLongRows(nest, found); !objection.empty())
    return emitError(loc) << "apart: " << objection;
  makeListed(found, name, least, loc);
  keepOthers(found, least, loc);
  ArrayAttr names = Builder(nest.getFunction()).getStrArrayAttr({name});
  nest.getFunction()->setAttr("lacis.classes", ArrayAttr::get(nest.getFunction().getContext(), {names}));
  nest.getFunction()->setAttr("lacis.apart", names);
  return success();
}

LogicalResult ApartStepAttr::apply(Nest &nest, Location loc) const {
  if (getLeast() && !getOthers())
    return partLongRows(nest, getPart(), *getLeast(), loc);
  if (getLeast())
    return emitError(loc) << "apart: 'least' names one nest, for the long rows of an operand that is no sum";
  SmallVector<StringRef> parts{getPart()};
  if (getOthers())
    llvm::append_range(parts, getOthers().getAsValueRange<StringAttr>());
  if (nest.getFunction()->hasAttr("lacis.classes"))
    return joinClasses(nest, parts, loc);
  if (parts.size() != 1)
    return emitError(loc) << "apart: parts '" << parts[0] << "' and '" << parts[1] << "' may share rows; one part, the last "
                          << "of the sum, has a nest of its own";
  Rows found;
  if (std::string objection = findRows(nest, getPart(), found); !objection.empty())
    return emitError(loc) << "apart: " << objection;
  makeListed(found, getPart(), std::nullopt, loc);
  keepOthers(found, std::nullopt, loc);
  append(nest.getFunction(), "lacis.apart", StringAttr::get(getContext(), getPart()));
  return success();
}
