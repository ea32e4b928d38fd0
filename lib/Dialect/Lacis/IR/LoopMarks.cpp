// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text and verifier of the marks of loops, which are their attributes beside the name.
#include "LoopMarks.h"

#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lacis;

#include "lacis/Dialect/Lacis/IR/LoopOpInterface.cpp.inc"

#include "lacis/Dialect/Lacis/IR/MarkEnums.cpp.inc"

bool lacis::isBlock(ParallelUnit unit) {
  return unit == ParallelUnit::BlockX || unit == ParallelUnit::BlockY || unit == ParallelUnit::BlockZ;
}

bool lacis::isThread(ParallelUnit unit) {
  return unit == ParallelUnit::ThreadX || unit == ParallelUnit::ThreadY || unit == ParallelUnit::ThreadZ ||
         unit == ParallelUnit::Threads;
}

bool lacis::isOfWarps(ParallelUnit unit) { return unit == ParallelUnit::Warp || unit == ParallelUnit::Lane; }

LogicalResult WorkListsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t raster, int64_t groups,
                                    std::optional<int64_t> within, std::optional<int64_t> cut,
                                    std::optional<int64_t> parts) {
  if (raster < 1 || groups < 1 || within.value_or(1) < 1 || cut.value_or(1) < 1)
    return emitError() << "'raster', 'groups', 'within' and 'cut' of work lists are at least 1";
  if (parts.value_or(2) < 2)
    return emitError() << "'parts' of work lists are at least 2";
  return success();
}

//===- Text ---------------------------------------------------------------===//

/// The words that say more about an operation than what it works on.
static SmallVector<StringRef> marksOf(OperationName op) {
  SmallVector<StringRef> marks;
  for (StringAttr name : op.getAttributeNames())
    if (!llvm::is_contained({"letters", "path", "level", "along", "operandSegmentSizes"}, name.getValue()))
      marks.push_back(name);
  return marks;
}

void lacis::printMarks(OpAsmPrinter &p, Operation *loop) {
  for (StringRef mark : marksOf(loop->getName())) {
    Attribute value = loop->getInherentAttr(mark).value_or(Attribute());
    if (!value)
      continue;
    p << ' ' << mark;
    TypeSwitch<Attribute>(value)
        .Case([&](IntegerAttr number) { p << '<' << number.getInt() << '>'; })
        .Case([&](StringAttr text) { p << '<' << text << '>'; })
        .Case<ParallelUnitAttr, ReductionAttr, TileSideAttr, WorkListsAttr>([&](auto typed) { typed.print(p); });
  }
  p.printOptionalAttrDict(loop->getDiscardableAttrDictionary().getValue());
}

static Attribute parseUnit(OpAsmParser &parser) { return parser.getBuilder().getUnitAttr(); }

static Attribute parseNumber(OpAsmParser &parser) {
  int64_t number;
  if (parser.parseLess() || parser.parseInteger(number) || parser.parseGreater())
    return {};
  return parser.getBuilder().getI64IntegerAttr(number);
}

static Attribute parseText(OpAsmParser &parser) {
  StringAttr text;
  if (parser.parseLess() || parser.parseAttribute(text) || parser.parseGreater())
    return {};
  return text;
}

template <typename Typed> static Attribute parseTyped(OpAsmParser &parser) { return Typed::parse(parser, Type()); }

static Attribute parseValue(OpAsmParser &parser, StringRef mark) {
  auto parse = llvm::StringSwitch<Attribute (*)(OpAsmParser &)>(mark)
                   .Cases({"jam", "pipeline", "sums", "unroll", "vectorize"}, parseNumber)
                   .Case("race", parseText)
                   .Case("balance", parseTyped<WorkListsAttr>)
                   .Case("bind", parseTyped<ParallelUnitAttr>)
                   .Case("reduce", parseTyped<ReductionAttr>)
                   .Cases({"mma", "tensorize"}, parseTyped<TileSideAttr>)
                   .Default(parseUnit);
  return parse(parser);
}

ParseResult lacis::parseMarks(OpAsmParser &parser, OperationState &result) {
  SmallVector<StringRef> known = marksOf(result.name);
  StringRef mark;
  SMLoc location = parser.getCurrentLocation();
  while (succeeded(parser.parseOptionalKeyword(&mark, known))) {
    Attribute value = parseValue(parser, mark);
    if (!value)
      return failure();
    if (result.attributes.get(mark))
      return parser.emitError(location) << "'" << mark << "' is said twice";
    result.addAttribute(mark, value);
    location = parser.getCurrentLocation();
  }
  NamedAttrList others;
  if (parser.parseOptionalAttrDict(others))
    return failure();
  for (NamedAttribute other : others)
    if (llvm::is_contained(known, other.getName().getValue()))
      return parser.emitError(location) << "'" << other.getName().getValue() << "' is a word behind the body, not in braces";
  result.addAttributes(others);
  return success();
}

void lacis::importReduction(OperationState &result) {
  std::optional<Reduction> found = reductionIn(*result.regions.front(), result.types.size());
  if (found && !result.attributes.get("reduce"))
    result.addAttribute("reduce", ReductionAttr::get(result.getContext(), *found));
}

//===- Verifier -----------------------------------------------------------===//

static int64_t jamOf(Operation *op) {
  auto loop = dyn_cast<LoopOp>(op);
  return loop ? loop.getJam().value_or(1) : 1;
}

/// So many rounds of the loop stand side by side.
static int64_t roundsAtOnce(Operation *op) {
  auto loop = dyn_cast<LoopOpInterface>(op);
  return loop ? jamOf(op) * loop.getUnroll().value_or(1) : 1;
}

/// With the loops around it a loop makes no more code than anybody waits for.
static LogicalResult verifyRounds(LoopOpInterface loop) {
  if (roundsAtOnce(loop) == 1)
    return success();
  int64_t rounds = 1;
  for (Operation *around = loop; isa_and_nonnull<LoopOp, LevelLoopOp, scf::IfOp>(around); around = around->getParentOp())
    if (llvm::MulOverflow(rounds, roundsAtOnce(around), rounds) || rounds > kMostRounds)
      return loop->emitOpError() << "'unroll' and 'jam' of loop '" << loop.getName()
                                 << "' and of the loops around it put more than " << kMostRounds << " rounds side by side";
  return success();
}

LogicalResult lacis::verifyWords(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (StringRef word = attribute.getName(); !word.contains('.') || word.starts_with("lacis."))
      return op->emitOpError() << "has no mark '" << word << "'; there are '"
                               << llvm::join(marksOf(op->getName()), "', '") << "'";
  return success();
}

LogicalResult lacis::verifyMarks(LoopOpInterface loop) {
  if (failed(verifyWords(loop)))
    return failure();
  StringRef name = loop.getName();
  if (loop.getLetters().empty() || loop.getLetters().contains('.'))
    return loop->emitOpError() << "'" << name << "' is no name of a loop, which has letters alone; what it belongs to stands "
                               << "behind them, as in \"j\"<part \"ell\">";
  for (StringRef mark : {"vectorize", "jam", "unroll", "sums"}) {
    auto number = dyn_cast_or_null<IntegerAttr>(loop->getInherentAttr(mark).value_or(Attribute()));
    if (number && number.getInt() < 1)
      return loop->emitOpError() << "'" << mark << "' of loop '" << name << "' is at least 1";
  }
  if (int64_t stages = loop.getPipeline().value_or(2); stages < 2 || stages > kMostStages)
    return loop->emitOpError() << "'pipeline' of loop '" << name << "' is a number of stages, from 2 to " << kMostStages;
  if (loop.getSums() && loop.getUnroll().value_or(1) % *loop.getSums() != 0)
    return loop->emitOpError() << "the rounds that 'unroll' of loop '" << name << "' puts side by side are no multiple of its "
                               << *loop.getSums() << " 'sums'";
  return failure(failed(verifyRounds(loop)) || failed(verifyReduction(loop)));
}

/// A loop runs in one way; rounds that stand side by side may be loaded ahead.
static LogicalResult verifyWay(LoopOp loop) {
  auto has = [&](StringRef mark) { return static_cast<bool>(loop->getInherentAttr(mark).value_or(Attribute())); };
  const StringRef ways[] = {"balance", "bind", "jam", "mma", "tensorize", "vectorize", "pipeline", "unroll"};
  const StringRef *first = llvm::find_if(ways, has);
  const StringRef *second = first == std::end(ways) ? first : std::find_if(first + 1, std::end(ways), has);
  if (second != std::end(ways) && *first != "pipeline")
    return loop.emitOpError() << "loop '" << loop.getName() << "' has the marks '" << *first << "' and '" << *second
                              << "'; it runs in one way";
  if ((loop.getStages() || loop.getHolds()) && (loop.getVectorize() || loop.getJam()))
    return loop.emitOpError() << "'" << (loop.getStages() ? "stages" : "holds") << "': loop '" << loop.getName()
                              << "' stays no loop, so it has no rounds in which operands are loaded";
  return success();
}

/// What it is of a product of tiles.
static LogicalResult verifySide(LoopOp loop) {
  if (loop.getTf32() && !loop.getTensorize())
    return loop.emitOpError() << "'tf32' is of a loop that has 'tensorize', as loop '" << loop.getName() << "' has not";
  bool isSide = loop.getTensorize() || loop.getMma();
  if (isSide && (loop.getTrip().value_or(0) < 1 || *loop.getTrip() > kMostRounds))
    return loop.emitOpError("loop '") << loop.getName() << "' is a side of a tile, so it runs a constant number of times, "
                                      << "at most " << kMostRounds;
  return success();
}

/// How units bring together what meets in one element of the output.
static LogicalResult verifyRace(LoopOp loop) {
  if (loop.getScan() && loop.getBind().value_or(ParallelUnit::Lane) != ParallelUnit::Lane)
    return loop.emitOpError() << "'scan' of loop '" << loop.getName() << "' is a sum over the lanes of a warp; it is bound to '"
                              << stringifyParallelUnit(*loop.getBind()) << "'";
  if (!loop.getRace())
    return success();
  if (!findRaceStrategy(*loop.getRace()))
    return loop.emitOpError() << "'race' of loop '" << loop.getName() << "': no strategy '" << *loop.getRace()
                              << "' has code; there are " << raceStrategyNames();
  if (!loop.getMeets() && !loop.getScan())
    return loop.emitOpError() << "'race' is of a loop whose iterations meet in one element of the output; loop '"
                              << loop.getName() << "' has neither 'meets' nor 'scan'";
  return success();
}

LogicalResult lacis::verifyOwnMarks(LoopOp loop) {
  if (failed(verifyWay(loop)) || failed(verifySide(loop)) || failed(verifyRace(loop)))
    return failure();
  if (loop.getVectorize().value_or(1) > static_cast<uint64_t>(kMostLanes))
    return loop.emitOpError() << "loop '" << loop.getName() << "' has " << *loop.getVectorize()
                              << " lanes; a vector has at most " << kMostLanes;
  for (auto [mark, times] : {std::pair("vectorize", loop.getVectorize()), std::pair("jam", loop.getJam())})
    if (times && loop.getTrip() != static_cast<int64_t>(*times))
      return loop.emitOpError() << mark << ": loop '" << loop.getName() << "' must run exactly " << *times << " times";
  return success();
}
