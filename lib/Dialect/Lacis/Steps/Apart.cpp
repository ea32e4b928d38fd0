// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s += ell; s += rest  -->  for rest.i in rows(rest): s += ell; s += rest,  for i not in rows(rest): s += ell
///
/// The rows of which a part has entries get a nest of their own, which shares the launch of the other: each row has one
/// owner, and the few long ones are run otherwise than the many short ones. A part that does not list its rows, each
/// once, has a companion index that does.
#include "DefaultSchedule.h"

#include "lacis/Dialect/Lacis/IR/RowLists.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

namespace {

/// What the step finds in the nest.
struct Rows {
  PartOp part;
  LoopOp top, rows;    // the nest, and its loop over all rows
  LevelLoopOp entries; // of the part, in one row
  FormatAttr list;     // the part's, or that of its companion: its first level lists the rows, each once
};

} // namespace

/// The loop of the part over the entries of a row, which ends the sum; or null.
static LevelLoopOp entriesOf(LoopOp top, StringRef part) {
  LevelLoopOp found;
  unsigned loops = 0;
  top->walk([&](Operation *op) {
    if (!isa<LoopOp, LevelLoopOp>(op) || !op->getAttrOfType<StringAttr>("name").getValue().starts_with((part + ".").str()))
      return;
    ++loops;
    found = dyn_cast<LevelLoopOp>(op);
  });
  bool single = loops == 1 && found && found.getNumResults() == 1 && found.getLevel() == 1;
  bool last = single && llvm::none_of(found->getUsers(), [](Operation *user) { return isa<LoopOp, LevelLoopOp>(user); });
  return last ? found : LevelLoopOp();
}

/// Fills in what the nest has of a part; answers why the step cannot apply, or nothing.
static std::string findRows(Nest &nest, StringRef name, Rows &found) {
  for (PartOp part : nest.getFunction().getBody().getOps<PartOp>())
    if (part.getName() == name)
      found.part = part;
  std::string part = ("part '" + name + "'").str();
  if (!found.part)
    return "no " + part + " of a sum, see decompose";
  found.top = nest.mainChain().front();
  WalkResult marked =
      found.top->walk([](LoopOp loop) { return isMarked(loop) ? WalkResult::interrupt() : WalkResult::advance(); });
  if (marked.wasInterrupted())
    return "loops of the nest are marked already; say it before other steps";
  found.entries = entriesOf(found.top, name);
  auto row = found.entries ? found.entries.getParent().getDefiningOp<LocateOp>() : LocateOp();
  for (LoopOp loop : nest.mainChain())
    if (row && row.getLevel() == 0 && row.getDigits().size() == 1 && row.getDigits()[0] == loop.getCoordinate())
      found.rows = loop;
  if (!found.rows)
    return part + " is not the last of the sum, with one loop over the entries of a row";
  FormatAttr own = formatOf(found.part), walked = formatOf(found.entries.getTensor());
  if (!isStateless(found.entries))
    return part + " walks coordinates that follow from those before them";
  if (walked.getLevels()[1].getCoordinate().isPadded())
    return part + " pads its rows, so those without entries are not known by their length";
  found.list = listsRows(own) ? own : listOf(own, walked.getLevels()[0].getDigits()[0].axis);
  return found.list ? "" : part + " has rows of blocks, of which no list is made";
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

/// A copy of the nest, before it, that runs over the rows of the list.
static void makeListed(const Rows &found, StringRef name, Location loc) {
  LoopOp from = found.top;
  OpBuilder b(from);
  PartOp own = found.part;
  Value part = own;
  auto type = cast<RankedTensorType>(part.getType());
  if (found.list != formatOf(part))
    part = WalkOp::create(b, loc, RankedTensorType::get(type.getShape(), type.getElementType(), found.list), part);
  Type index = b.getIndexType();
  Value room = PositionsOp::create(b, loc, index, part, 0);
  Value root = arith::ConstantIndexOp::create(b, loc, 0);
  IRMapping mapping;
  auto top = cast<LoopOp>(b.clone(*from, mapping));
  LoopOp all = found.rows;
  auto rows = cast<LoopOp>(mapping.lookup(all.getCoordinate()).getParentBlock()->getParentOp());
  std::string prefix = (name + ".").str();
  top->walk([&](Operation *op) {
    auto own = op->getAttrOfType<StringAttr>("name");
    if (own && isa<LoopOp, LevelLoopOp>(op) && !own.getValue().starts_with(prefix))
      op->setAttr("name", b.getStringAttr(prefix + own.getValue()));
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
}

/// The nest itself keeps the rows of which the part has nothing.
static void keepOthers(const Rows &found, Location loc) {
  LevelLoopOp entries = found.entries;
  LoopOp top = found.top, rows = found.rows;
  Block *innermost = perfectChain(top).back().getBlock();
  OpBuilder b(innermost, innermost->begin());
  Type index = b.getIndexType();
  Value root = arith::ConstantIndexOp::create(b, loc, 0);
  Value tensor = entries.getTensor();
  auto row = LocateOp::create(b, loc, index, tensor, 0, root, ValueRange{rows.getCoordinate()});
  auto bounds = BoundsOp::create(b, loc, index, index, tensor, 1, row);
  auto none = arith::CmpIOp::create(b, loc, CmpIPredicate::sge, bounds.getLo(), bounds.getHi());
  guardRest(none, none, loc);
  entries.getResult(0).replaceAllUsesWith(entries.getInits()[0]);
  entries.erase();
}

SmallVector<StringRef> ApartStepAttr::namedLoops() const { return {}; }

/// Nests that have the rows of a part from the start join the launch of the last.
static LogicalResult joinClasses(Nest &nest, ArrayRef<StringRef> names, Location loc) {
  func::FuncOp function = nest.getFunction();
  SmallVector<StringRef> classes = rowClasses(function);
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

LogicalResult ApartStepAttr::apply(Nest &nest, Location loc) const {
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
  makeListed(found, getPart(), loc);
  keepOthers(found, loc);
  SmallVector<Attribute> names;
  if (auto known = nest.getFunction()->getAttrOfType<ArrayAttr>("lacis.apart"))
    llvm::append_range(names, known);
  names.push_back(StringAttr::get(getContext(), getPart()));
  nest.getFunction()->setAttr("lacis.apart", ArrayAttr::get(getContext(), names));
  return success();
}
