// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finding loops by name in a nest, and what is known about their sizes.
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lacis;

static StringRef loopName(Operation *op) {
  auto loop = dyn_cast<LoopOpInterface>(op);
  return loop ? loop.getName() : "";
}

/// The loop is the one called `name` where it is in the part: `upto4.ell.j` is `upto4.j` there.
static bool isCalledIn(StringRef part, LoopOpInterface loop, StringRef name) {
  PathAttr path = loop.getPathAttr();
  if (!path || path.last(PathKind::Part) != part)
    return false;
  PathAttr around = path.dropLast();
  bool isShare = around && !around.last(PathKind::Rows).empty();
  return !isShare && isSpelled(name, loop.getLetters(), around);
}

bool Nest::isCalled(Operation *op, StringRef name) const {
  auto loop = op->getNumRegions() == 0 ? LoopOpInterface() : dyn_cast<LoopOpInterface>(op); // most have none: no look-up
  return loop && (isSpelled(name, loop.getLetters(), loop.getPathAttr()) ||
                  (!part.empty() && isCalledIn(part, loop, name)));
}

SmallVector<StringRef> Nest::parts() const {
  SmallVector<StringRef> found;
  for (PartOp part : function.getBody().getOps<PartOp>())
    found.push_back(part.getName());
  return found;
}

LoopOp Nest::find(StringRef name) const {
  LoopOp found;
  function.walk([&](LoopOp loop) {
    if (isCalled(loop, name))
      found = loop;
  });
  return found;
}

SmallVector<Operation *> Nest::findAll(StringRef name) const {
  SmallVector<Operation *> found;
  function.walk([&](Operation *op) {
    if (isCalled(op, name))
      found.push_back(op);
  });
  return found;
}

SmallVector<StringRef> Nest::names() const {
  SmallVector<StringRef> found;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    StringRef name = loopName(op);
    if (!name.empty() && !llvm::is_contained(found, name))
      found.push_back(name);
  });
  return found;
}

FailureOr<LoopOp> Nest::require(StringRef name, StringRef step, Location loc) const {
  SmallVector<Operation *> all = findAll(name);
  auto loops = llvm::make_filter_range(all, llvm::IsaPred<LoopOp>);
  if (llvm::hasSingleElement(loops))
    return cast<LoopOp>(*loops.begin());
  if (!loops.empty())
    return emitError(loc) << step << ": " << llvm::range_size(loops) << " loops are called '" << name
                          << "'; a step names one, so give them names of their own";
  if (all.empty())
    return emitError(loc) << step << ": no loop named '" << name << "'";
  return emitError(loc) << step << ": loop '" << name << "' walks the positions of a level, not coordinates";
}

FailureOr<LoopOp> Nest::requireFree(StringRef name, StringRef step, Location loc) const {
  FailureOr<LoopOp> loop = require(name, step, loc);
  if (succeeded(loop) && (isMarked(*loop) || loop->getPipeline()))
    return emitError(loc) << step << ": loop '" << name << "' is marked already";
  return loop;
}

Value Nest::findOperand(StringRef name) const {
  for (BlockArgument argument : function.getArguments())
    if (auto attr = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name"))
      if (attr.getValue() == name)
        return argument;
  return {};
}

void Nest::remark(StringRef step, const Twine &why) {
  append(function, "lacis.remarks", StringAttr::get(function.getContext(), step + ": " + why));
}

std::optional<Case> lacis::caseOf(LoopOp outermost) {
  auto function = outermost->getParentOfType<func::FuncOp>();
  // What it writes, the nests of all cases write over; or it takes what they have left.
  bool always = outermost.getUnlisted() || outermost.getFinishes();
  auto cases = function && !always ? function->getAttrOfType<ArrayAttr>("lacis.cases") : ArrayAttr();
  std::optional<Case> found;
  int64_t above = -1;
  for (Attribute attr : cases ? cases.getValue() : ArrayRef<Attribute>()) {
    auto entry = cast<DictionaryAttr>(attr);
    auto number = [&](StringRef key) { return entry.getAs<IntegerAttr>(key).getInt(); };
    StringRef name = entry.getAs<StringAttr>("name").getValue();
    found = Case{name, static_cast<unsigned>(number("argument")), static_cast<unsigned>(number("axis")), above,
                 number("upto")};
    if (PathAttr path = outermost.getPathAttr(); path && path.first(PathKind::Case) == name)
      return found;
    above = number("upto");
  }
  if (found) {
    found->name = "";
    found->above = above;
    found->upto = -1;
  }
  return found;
}

bool lacis::isInPart(Operation *op, StringRef part) {
  auto loop = dyn_cast<LoopOpInterface>(op);
  PathAttr path = loop ? loop.getPathAttr() : PathAttr();
  return path && path.first(PathKind::Part) == part;
}

/// The path of the nest, behind that of the case that it is for.
static PathAttr pathInCase(LoopOp loop) {
  PathAttr path = loop.getPathAttr();
  return path && !path.first(PathKind::Case).empty() ? path.dropFirst() : path;
}

/// The nest is that of one of these parts, in the main nest or in that of a case.
static bool isOfPart(LoopOp loop, ArrayRef<StringRef> parts) {
  if (parts.empty() || loop.getFollows()) // it brings together what shares of the rows have left
    return false;
  PathAttr path = pathInCase(loop);
  return path && llvm::is_contained(parts, path.first(PathKind::Part));
}

bool lacis::isApart(LoopOp loop) {
  auto function = dyn_cast<func::FuncOp>(loop->getParentOp());
  auto parts = function ? function->getAttrOfType<ArrayAttr>("lacis.apart") : ArrayAttr();
  return parts && isOfPart(loop, llvm::to_vector(parts.getAsValueRange<StringAttr>()));
}

/// The names of the groups of row classes.
static SmallVector<SmallVector<StringRef>> classGroups(Operation *function) {
  SmallVector<SmallVector<StringRef>> groups;
  if (auto all = function->getAttrOfType<ArrayAttr>("lacis.classes"))
    for (auto group : all.getAsRange<ArrayAttr>())
      groups.push_back(llvm::to_vector(group.getAsValueRange<StringAttr>()));
  return groups;
}

SmallVector<StringRef> lacis::rowClasses(func::FuncOp function) {
  SmallVector<StringRef> names;
  for (ArrayRef<StringRef> group : classGroups(function))
    llvm::append_range(names, group);
  return names;
}

SmallVector<StringRef> lacis::joiningClasses(func::FuncOp function) {
  SmallVector<StringRef> names;
  SmallVector<SmallVector<StringRef>> groups = classGroups(function);
  for (auto [number, group] : llvm::enumerate(groups)) // the nest without a name ends the last
    llvm::append_range(names, ArrayRef(group).drop_back(number + 1 == groups.size() || group.empty() ? 0 : 1));
  return names;
}

static StringRef nameOfCase(LoopOp loop) {
  std::optional<Case> own = caseOf(loop);
  return own ? own->name : StringRef();
}

/// The nest is no copy of an operand, none of a part, and follows none: its loops have the letters' names.
static bool hasPlainNames(LoopOp nest) {
  PathAttr path = pathInCase(nest);
  return !nest.getFollows() && (!path || !path.first(PathKind::Rows).empty());
}

LoopOp lacis::lastBeside(LoopOp nest) {
  auto function = cast<func::FuncOp>(nest->getParentOp());
  if (!isOfPart(nest, joiningClasses(function)))
    return nest;
  SmallVector<StringRef> all = rowClasses(function), joining = joiningClasses(function);
  bool found = false;
  for (LoopOp loop : nest->getParentRegion()->getOps<LoopOp>()) {
    found |= loop == nest;
    if (!found || nameOfCase(loop) != nameOfCase(nest) || isOfPart(loop, joining))
      continue;
    if (isOfPart(loop, all) || hasPlainNames(loop))
      return loop;
  }
  return nest;
}

SmallVector<LoopOp> lacis::classNests(LoopOp last) {
  SmallVector<LoopOp> found;
  SmallVector<StringRef> all = rowClasses(cast<func::FuncOp>(last->getParentOp()));
  for (LoopOp loop : last->getParentRegion()->getOps<LoopOp>())
    if (loop == last || (isOfPart(loop, all) && nameOfCase(loop) == nameOfCase(last)))
      found.push_back(loop);
  return found;
}

/// The loop that `loop` only passes its carried values on to, or null.
static LoopOp passedTo(LoopOp loop) {
  Block *body = loop.getBlock();
  auto inner = dyn_cast<LoopOp>(body->front());
  if (!inner || std::next(body->begin()) != std::prev(body->end()))
    return {};
  bool same = llvm::equal(ValueRange(inner.getInits()), ValueRange(SmallVector<Value>(loop.getIterArgs()))) &&
              llvm::equal(ValueRange(inner.getResults()), body->getTerminator()->getOperands());
  return same ? inner : LoopOp();
}

SmallVector<LoopOp> lacis::carriedChain(LoopOp loop) {
  while (auto around = dyn_cast<LoopOp>(loop->getParentOp()))
    if (around.getNumResults() != 0 && passedTo(around) == loop)
      loop = around;
    else
      break;
  SmallVector<LoopOp> chain{loop};
  while (LoopOp inner = passedTo(chain.back()))
    chain.push_back(inner);
  return chain;
}

bool lacis::isStateless(LevelLoopOp loop) {
  return formatOf(loop.getTensor()).getLevels()[loop.getLevel()].getCoordinate().isStateless();
}

LoopOp lacis::outermostLoop(LoopOp loop) {
  while (auto parent = loop->getParentOfType<LoopOp>())
    loop = parent;
  return loop;
}

Operation *lacis::placeForSizes(LoopOp loop) {
  Operation *size = loop.getUpper().getDefiningOp();
  for (auto parent = loop->getParentOfType<LoopOp>(); parent && !(size && parent->isProperAncestor(size));
       parent = loop->getParentOfType<LoopOp>())
    loop = parent;
  return loop;
}

void lacis::passOnRaces(LoopOp from, LoopOp to) {
  to.setMeets(to.getMeets() || from.getMeets());
  to.setRace(from.getRace() ? from.getRace() : to.getRace());
  to.setUnlisted(to.getUnlisted() || from.getUnlisted());
  to.setFinishes(to.getFinishes() || from.getFinishes());
  to.setFollows(to.getFollows() || from.getFollows());
}

bool lacis::isMarked(LoopOp loop) {
  return loop.getBind() || loop.getVectorize() || loop.getJam() || loop.getUnroll() || loop.getBalance() ||
         loop.getTensorize() || loop.getMma() || loop.getScan() || loop.getStages() || loop.getHolds();
}

SmallVector<LoopOp> lacis::perfectChain(LoopOp outermost) {
  SmallVector<LoopOp> chain{outermost};
  while (true) {
    Block *body = chain.back().getBlock();
    auto inner = dyn_cast<LoopOp>(body->front());
    if (!inner || inner.getNumResults() != 0 || std::next(body->begin()) != std::prev(body->end()))
      return chain;
    chain.push_back(inner);
  }
}

SmallVector<LoopOp> Nest::mainChain() const {
  LoopOp last;
  for (LoopOp loop : function.getBody().getOps<LoopOp>())
    if (!loop.getPathAttr())
      last = loop;
  return last ? perfectChain(last) : SmallVector<LoopOp>();
}

std::optional<unsigned> lacis::axisOf(tensor::DimOp size) {
  std::optional<int64_t> axis = size.getConstantIndex();
  auto type = dyn_cast<RankedTensorType>(size.getSource().getType());
  bool isThere = axis && type && *axis >= 0 && *axis < type.getRank();
  return isThere ? std::optional(static_cast<unsigned>(*axis)) : std::nullopt;
}

/// What is recorded under `name` about the dimension of an argument.
static std::optional<int64_t> factOf(tensor::DimOp dim, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(dim.getSource());
  std::optional<unsigned> axis = axisOf(dim);
  auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  if (!function || !axis)
    return std::nullopt;
  auto facts = function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), name);
  return facts && *axis < facts.size() ? std::optional(facts[*axis]) : std::nullopt;
}

int64_t lacis::knownDivisor(Value size) {
  if (auto known = knownSize(size))
    return *known;
  if (auto dim = size.getDefiningOp<tensor::DimOp>())
    return factOf(dim, "lacis.divisible").value_or(1);
  if (auto product = size.getDefiningOp<arith::MulIOp>())
    return knownDivisor(product.getLhs()) * knownDivisor(product.getRhs());
  if (auto div = size.getDefiningOp<arith::CeilDivUIOp>())
    if (auto by = getConstantIntValue(div.getRhs()); by && knownDivisor(div.getLhs()) % *by == 0)
      return knownDivisor(div.getLhs()) / *by;
  return 1;
}

std::optional<int64_t> lacis::knownSize(Value size) {
  if (auto constant = getConstantIntValue(size))
    return constant;
  if (auto dim = size.getDefiningOp<tensor::DimOp>()) {
    std::optional<unsigned> axis = axisOf(dim);
    auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
    return axis && !type.isDynamicDim(*axis) ? std::optional(type.getDimSize(*axis)) : std::nullopt;
  }
  Operation *op = size.getDefiningOp();
  if (!isa_and_nonnull<arith::MulIOp, arith::CeilDivUIOp>(op))
    return std::nullopt;
  std::optional<int64_t> lhs = knownSize(op->getOperand(0)), rhs = knownSize(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  return isa<arith::MulIOp>(op) ? *lhs * *rhs : llvm::divideCeil(*lhs, *rhs);
}

std::optional<int64_t> lacis::pinTrip(LoopOp loop) {
  std::optional<int64_t> trip = loop.getTrip();
  if (trip)
    return trip;
  if ((trip = knownSize(loop.getUpper()))) {
    OpBuilder b(outermostLoop(loop));
    loop.getUpperMutable().assign(arith::ConstantIndexOp::create(b, loop.getLoc(), *trip));
  }
  return trip;
}

std::string lacis::digitName(StringRef letter, unsigned digit, unsigned count) {
  if (count == 1)
    return letter.str();
  if (digit == 0)
    return (letter + "0").str();
  return digitName((letter + "1").str(), digit - 1, count - 1);
}
