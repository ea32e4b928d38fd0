// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the default schedules of all targets ask of a nest.
#include "Facts.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lacis;

LevelLoopOp lacis::rolledLoop(Nest &nest) {
  LevelLoopOp found;
  nest.getFunction().walk([&](LevelLoopOp loop) {
    if (loop.getRolled())
      found = loop;
  });
  return found;
}

static bool isEncoded(BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return type && type.getEncoding();
}

std::string lacis::laneLetter(Nest &nest) {
  func::FuncOp function = nest.getFunction();
  SmallVector<StringRef> taken;
  if (function.getArgAttr(function.getNumArguments() - 1, "lacis.scatter"))
    return ""; // the loops over entries are outside
  for (BlockArgument argument : function.getArguments())
    if (isEncoded(argument))
      for (Attribute axis : axesOf(function, argument.getArgNumber()))
        taken.push_back(cast<StringAttr>(axis).getValue());
  for (Attribute axis : llvm::reverse(axesOf(function, function.getNumArguments() - 1)))
    if (StringRef letter = cast<StringAttr>(axis).getValue(); !llvm::is_contained(taken, letter))
      return nest.find(letter) ? letter.str() : "";
  return "";
}

/// Does the nest read or write the operand itself, and not a copy in another layout?
static bool isTouched(Value operand, LoopOp top) {
  return llvm::any_of(operand.getUsers(),
                      [&](Operation *user) { return isa<ReadOp, WriteOp>(user) && top->isProperAncestor(user); });
}

SmallVector<std::pair<std::string, unsigned>> lacis::operandsAcross(Nest &nest, StringRef letter, StringRef prefix) {
  LoopOp own = prefix.empty() ? LoopOp() : nest.find((prefix + letter).str());
  LoopOp top = own ? outermostLoop(own) : nest.mainChain().front();
  SmallVector<std::pair<std::string, unsigned>> found;
  func::FuncOp function = nest.getFunction();
  for (BlockArgument argument : function.getArguments()) {
    ArrayRef<Attribute> axes = axesOf(function, argument.getArgNumber());
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name");
    if (isEncoded(argument) || !name || !isTouched(argument, top))
      continue;
    for (auto [axis, attr] : llvm::enumerate(axes))
      if (cast<StringAttr>(attr).getValue() == letter && axis + 1 != axes.size())
        found.push_back({name.str(), axis});
  }
  return found;
}

/// Axis `axis` in panels, all levels dense: (axis floordiv panel, the others, axis mod panel), or the others first.
static FormatAttr panelLayout(Nest &nest, StringRef operand, unsigned axis, const CopyRule &rule) {
  func::FuncOp function = nest.getFunction();
  auto argument = cast<BlockArgument>(nest.findOperand(operand));
  ArrayRef<Attribute> axes = axesOf(function, argument.getArgNumber());
  std::string text, list;
  llvm::raw_string_ostream out(text), names(list);
  llvm::interleaveComma(axes, names, [&](Attribute name) { names << cast<StringAttr>(name).getValue(); });
  StringRef lane = cast<StringAttr>(axes[axis]).getValue();
  SmallVector<std::string> levels;
  for (auto [other, name] : llvm::enumerate(axes))
    if (other != axis)
      levels.push_back(cast<StringAttr>(name).str());
  levels.insert(rule.rows ? levels.end() : levels.begin(), (lane + " floordiv " + Twine(rule.panel)).str());
  levels.push_back((lane + " mod " + Twine(rule.panel)).str());
  out << "#lacis.format<(" << list << ") -> (" << llvm::join(levels, " : dense, ") << " : dense)>";
  return cast<FormatAttr>(parseAttribute(text, function.getContext()));
}

/// The neighbours that a thread copies, in vectors.
static void scheduleVectors(ScheduleBuilder &schedule, std::string name, const CopyRule &rule) {
  if (rule.vector < rule.tile) {
    schedule.split(name, rule.vector);
    name += "1";
  }
  schedule.vectorize(name, rule.vector);
}

/// The loops over the lanes of a panel and over the neighbours of an axis, innermost; a tile of both in registers where
/// the rule wants that, and neighbours of the axis are so in memory. `lanes` lie inside of `around`, if that is named.
static void scheduleTile(ScheduleBuilder &schedule, const std::string &around, std::string lanes,
                         const std::string &neighbours, const CopyRule &rule, bool isLast) {
  bool tiles = rule.tiles && isLast && rule.panel % rule.tile == 0;
  std::vector<std::string> order;
  if (!around.empty())
    order.push_back(around);
  if (tiles && rule.panel > rule.tile) {
    schedule.split(lanes, rule.tile);
    order.push_back(lanes + "0");
    lanes += "1";
  }
  order.insert(order.end(), {lanes, neighbours});
  schedule.reorder(order);
  if (tiles)
    for (const std::string &loop : {lanes, neighbours})
      schedule.vectorize(loop, rule.tile);
}

/// `name` is the operand's, after what the names of the nest begin with.
static void scheduleCopy(ScheduleBuilder &schedule, StringRef name, StringRef operand, StringRef lane, unsigned axis,
                         const CopyRule &rule) {
  Nest &nest = schedule.getNest();
  schedule.relayout(name, panelLayout(nest, operand, axis, rule));
  std::string prefix = prefixOf(name) + lane.str();
  SmallVector<std::string> outer;
  if (LoopOp first = nest.find(prefix + "0"))
    for (LoopOp loop : perfectChain(outermostLoop(first)))
      if (!loop.getTrip())
        outer.push_back(loop.getName().str());
  auto *last = llvm::find_if(llvm::reverse(outer), [&](StringRef name) { return name != prefix + "0"; }).base();
  if (last != outer.begin()) { // a thread reads neighbours of the last axis
    std::string neighbours = *--last;
    auto argument = cast<BlockArgument>(nest.findOperand(operand));
    Attribute innermost = axesOf(nest.getFunction(), argument.getArgNumber()).back();
    bool isLast = cast<StringAttr>(innermost).getValue() == letterOf(neighbours);
    bool vectors = rule.vector > 1 && knownDivisor(nest.find(neighbours).getUpper()) % rule.vector == 0;
    schedule.split(neighbours, rule.tile);
    *last = neighbours + "0";
    scheduleTile(schedule, rule.rows ? prefix + "0" : "", prefix + "1", neighbours + "1", rule, isLast);
    if (vectors)
      scheduleVectors(schedule, neighbours + "1", rule);
  }
  if (!rule.unit.empty())
    for (const std::string &loop : outer)
      schedule.bind(loop, rule.unit);
  if (!rule.threads.empty())
    schedule.bind(prefix + "1", rule.threads);
}

void lacis::scheduleCopies(ScheduleBuilder &schedule, StringRef lane, const CopyRule &rule, StringRef prefix) {
  Nest &nest = schedule.getNest();
  Value output = nest.getFunction().getArguments().back();
  bool inputs = rule.inputs || runsOverList(nest);
  for (auto [operand, axis] : operandsAcross(nest, lane, prefix))
    if (!inputs || nest.findOperand(operand) != output)
      scheduleCopy(schedule, (prefix + operand).str(), operand, lane, axis, rule);
}

/// Steps that were given say already how loops inside of the main nest run.
static bool isShaped(Nest &nest) { return hasMarks(nest.mainChain().front()); }

LoopOp lacis::blockLoop(Nest &nest) {
  auto type = cast<RankedTensorType>(nest.getFunction().getArgumentTypes().back());
  LoopOp innermost;
  nest.mainChain().front()->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    if (loop.getNumResults() == 0 && loop.getTrip())
      innermost = loop;
  });
  ArrayRef<Digit> last = cast<FormatAttr>(type.getEncoding()).getLevels().back().getDigits();
  if (isShaped(nest) || !innermost || last.size() != 1 || *innermost.getTrip() != last[0].mod || *innermost.getTrip() % 4 != 0)
    return {};
  StringRef letter = letterOf(innermost.getName());
  auto axes = axesOf(nest.getFunction(), nest.getFunction().getNumArguments() - 1);
  bool isLast = cast<StringAttr>(axes[last[0].axis]).getValue() == letter;
  return isLast && operandsAcross(nest, letter).empty() ? innermost : LoopOp();
}

LoopOp lacis::sumLoop(Nest &nest) {
  LoopOp innermost;
  nest.mainChain().front()->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    if (loop.getNumResults() != 0)
      innermost = loop;
  });
  return isShaped(nest) ? LoopOp() : innermost;
}

void lacis::copyAcrossVectors(ScheduleBuilder &schedule, CopyRule rule) {
  for (LoopOp loop : schedule.getNest().mainChain()) {
    std::optional<int64_t> width = loop.getVectorize();
    if (!width)
      continue;
    CopyRule own = rule;
    own.panel = rule.panel % *width == 0 ? rule.panel : *width;
    scheduleCopies(schedule, letterOf(loop.getName()), own);
  }
}

void lacis::openLanes(ScheduleBuilder &schedule, StringRef lane, int64_t panel) {
  schedule.split(lane, panel);
  std::vector<std::string> order{(lane + "0").str()};
  LoopOp panels = schedule.getNest().find(order.front());
  for (LoopOp loop : panels ? perfectChain(outermostLoop(panels)) : SmallVector<LoopOp>())
    if (letterOf(loop.getName()) != letterOf(lane))
      order.push_back(loop.getName().str());
  order.push_back((lane + "1").str());
  schedule.reorder(order);
}

SmallVector<SmallVector<LoopOp>> lacis::allChains(Nest &nest) {
  return llvm::map_to_vector(nest.getFunction().getBody().getOps<LoopOp>(),
                             [](LoopOp top) { return perfectChain(top); });
}

SmallVector<SmallVector<LoopOp>> lacis::chainsAround(Nest &nest) {
  SmallVector<SmallVector<LoopOp>> chains = allChains(nest);
  llvm::erase_if(chains, [](SmallVector<LoopOp> &chain) { return !chain[0].getBegins() && !chain[0].getFollows(); });
  return chains;
}

bool lacis::canBind(Nest &nest, LoopOp loop, StringRef unit) {
  return !loop.getMeets() || loop.getRace() || !strategyFor(loop, nest, unit).empty();
}

void lacis::bindOpenLoops(ScheduleBuilder &schedule, ArrayRef<LoopOp> chain, StringRef unit) {
  for (LoopOp loop : chain) {
    if (!loop.getTrip() && !isMarked(loop) && canBind(schedule.getNest(), loop, unit))
      schedule.bind(loop.getName(), unit);
  }
}

/// A guard inside depends on a coordinate that the loop finds in an array: it may hold for any round.
static bool guardsWhatItFinds(LoopOp loop) {
  SmallVector<Value> found;
  loop->walk([&](CoordinateOp coordinate) { llvm::append_range(found, coordinate->getResults()); });
  for (size_t next = 0; next < found.size(); ++next)
    for (Operation *user : found[next].getUsers()) {
      if (isa<scf::IfOp>(user))
        return true;
      for (Value result : user->getResults())
        if (result.getType().isIntOrIndex() && !llvm::is_contained(found, result))
          found.push_back(result);
    }
  return false;
}

bool lacis::canJam(LoopOp loop) {
  bool hasTile = loop->walk([](WorkspaceOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (loop.getMeets() || hasTile || guardsWhatItFinds(loop))
    return false;
  SmallVector<Value> reached{loop.getCoordinate()};
  for (size_t next = 0; next < reached.size(); ++next)
    for (OpOperand &use : reached[next].getUses()) {
      Operation *user = use.getOwner();
      if (auto inner = dyn_cast<LevelLoopOp>(user); inner && inner.getParent() == reached[next])
        return false;
      if (auto inner = dyn_cast<LoopOp>(user); inner && inner.getUpper() == reached[next])
        return false;
      for (Value result : user->getResults())
        if (result.getType().isIndex() && !llvm::is_contained(reached, result))
          reached.push_back(result);
    }
  return true;
}

LevelLoopOp lacis::sharedEntries(LoopOp rows) {
  LevelLoopOp found;
  rows->walk([&](LevelLoopOp loop) {
    if (objectionToShares(rows, loop).empty())
      found = loop;
  });
  return found;
}

unsigned lacis::outputBytes(Nest &nest) {
  auto type = dyn_cast<RankedTensorType>(nest.getFunction().getArgumentTypes().back());
  return type && type.getElementTypeBitWidth() == 64 ? 8 : 4;
}
