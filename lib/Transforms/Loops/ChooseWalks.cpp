// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decides how the levels of an operand own the elements of the output: which are located, which list their rows, and
/// what is walked through the companion index.
///
/// A parallel unit owns an element of the output. The forms in which it finds what it adds up are ranked in OwnerForm.cpp;
/// a step asks for another one, or for an order, that keeps this promise: no two units race, and the order of the sum is
/// fixed. What was chosen is recorded among the steps.
/// A sampled output has one owner for each of its entries, and so has a dense one with every letter of the operand:
/// the pattern is walked entry by entry, or a sampled one row by row.
#include "Chain.h"
#include "Expression.h"
#include "OwnerForm.h"
#include "RequestedWalk.h"
#include "RowClasses.h"
#include "SharedRows.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"
#include "lacis/Dialect/Lacis/IR/Links.h"

#include "mlir/AsmParser/AsmParser.h"

namespace lacis {
#define GEN_PASS_DEF_LACISCHOOSEWALKS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// The forms that a step may ask for; of each the levels know whether they have it.
constexpr StringLiteral kPush = "push", kShare = "share", kClasses = "classes", kCompanion = "companion",
                        kForms[] = {"list", "permute", kPush, kShare, kClasses, kCompanion};

/// The axes of the operand that the output has too.
SmallVector<unsigned> outputAxes(linalg::GenericOp generic, OpOperand &operand) {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  auto iterators = generic.getIteratorTypesArray();
  SmallVector<unsigned> axes;
  for (auto [axis, expr] : llvm::enumerate(map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (iterators[dim.getPosition()] == utils::IteratorType::parallel)
        axes.push_back(axis);
  return axes;
}

/// Loops over the format, or over its companion, can be generated; or an error that names what has no code.
LogicalResult requireCode(FormatAttr format, Location loc) {
  if (format.getLayout())
    return emitError(loc) << "formats with a 'layout' have no code yet: " << format;
  for (auto [number, level] : llvm::enumerate(format.getLevels())) {
    if (!level.getExtent().hasCompanion())
      return emitError(loc) << "level kind '" << level.getExtent().getMnemonic() << "' (level " << number
                            << ") has no code yet";
    if (!level.getCoordinate().hasCode())
      return emitError(loc) << "level kind '" << level.getCoordinate().getMnemonic() << "' (level " << number
                            << ") has no code yet";
  }
  return success();
}

/// Its positions are its entries (or stored blocks), or all its levels are dense: nothing would be gained.
bool walksEntries(FormatAttr format) {
  ArrayRef<LevelAttr> prefix = format.getPatternLevels().drop_back(format.getNumTileLevels());
  auto covers = [](LevelAttr level) { return level.getExtent().coversDomain(); };
  auto follows = [](LevelAttr level) { return level.getExtent().followsParent(); };
  if (!format.hasCode() || !isFoundOnce(format, {}))
    return false;
  if (!format.getBindings().empty()) // a list of what the bindings need, and positions for the rest
    return prefix[0].isRandomAccess() && llvm::all_of(prefix.drop_front(), covers);
  return llvm::all_of(prefix, covers) ||
         (prefix[0].isRandomAccess() && llvm::all_of(prefix.drop_front(), follows));
}

/// Do the levels hold entries alone, in the order of their coordinates?
bool listsInOrder(FormatAttr format) {
  if (!format.getBindings().empty() || format.getNumTileLevels() != 0 || !format.hasCode())
    return false;
  auto isListed = [](LevelAttr level) {
    CoordinateInterface coordinate = level.getCoordinate();
    bool hasNoGaps = level.getExtent().hasOwner() || level.getExtent().followsParent();
    return coordinate.isStored() && coordinate.isOrdered() && !coordinate.isPadded() && hasNoGaps;
  };
  ArrayRef<LevelAttr> levels = format.getLevels();
  auto dense = levels.take_while([](LevelAttr level) { return level.getExtent().coversDomain(); });
  return dense.size() < levels.size() && llvm::all_of(levels.drop_front(dense.size()), isListed) &&
         llvm::all_of(dense, [](LevelAttr level) { return level.getCoordinate().isImplicit(); });
}

/// Do rows that are all there have entries alone, in order?
bool hasRows(FormatAttr format) {
  return format.getPatternLevels().front().getExtent().coversDomain() && listsInOrder(format);
}

/// The same with coordinates in so few bits that an array of the rows of entries would be much beside them.
bool hasNarrowRows(FormatAttr format) {
  auto isNarrow = [](LevelAttr level) {
    IntegerType listed = level.getCoordinate().getListedType();
    return listed && listed.getWidth() < 32;
  };
  return hasRows(format) && llvm::all_of(format.getLevels(), isNarrow);
}

/// The companion of narrow rows has links as narrow, places in these rows, where its slots are those of `tensor` itself.
FormatAttr withPlaces(Value tensor, FormatAttr companion) {
  FormatAttr format = formatOf(tensor);
  ArrayRef<LevelAttr> own = format.getLevels(), levels = companion.getLevels();
  bool isMatrix = own.size() == 2 && own[0].getDigits().size() == 1 && own[1].getDigits().size() == 1;
  if (!isa<BlockArgument>(tensor) || !isMatrix || !hasNarrowRows(format) || format.getIndexType().isInteger(64) ||
      format.getMultiset() || !own[1].getCoordinate().isUnique() || !levels.back().getExtent().isLink())
    return companion;
  return withLinks(companion, own[1].getCoordinate().getListedType());
}

SmallVector<Digit> digitsOf(ArrayRef<LevelAttr> levels) {
  SmallVector<Digit> digits;
  for (LevelAttr level : levels)
    llvm::append_range(digits, level.getDigits());
  return digits;
}

/// A companion in the order of the format itself: its positions are slots, and need no link.
FormatAttr withoutLink(FormatAttr format, FormatAttr companion) {
  if (!companion || !listsInOrder(format) || digitsOf(format.getLevels()) != digitsOf(companion.getLevels()))
    return companion;
  return FormatAttr::get(format.getContext(), companion.getAxes(), companion.getLevels().drop_back());
}

/// The tensor, or its companion whose positions are its entries.
FailureOr<Value> walkEntries(OpBuilder &b, Location loc, Value tensor) {
  FormatAttr format = formatOf(tensor);
  if (walksEntries(format))
    return tensor;
  FormatAttr companion = withoutLink(format, format.companion({}));
  if (!nestsDigits(companion))
    return emitError(loc) << "no walk of '" << format << "' goes entry by entry";
  auto type = cast<RankedTensorType>(tensor.getType());
  auto walked = RankedTensorType::get(type.getShape(), type.getElementType(), companion);
  return WalkOp::create(b, loc, walked, tensor).getResult();
}

/// An order in which iterations meet; says which steps share the entries out instead.
LogicalResult refuseMeeting(const RequestedWalk &asked, linalg::GenericOp generic, OpOperand &operand,
                            ArrayRef<unsigned> owned) {
  AffineMap map = generic.getMatchingIndexingMap(&operand);
  SmallVector<std::string> first, rest;
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis)
    (llvm::is_contained(owned, axis) ? first : rest).push_back(letterName(generic, map.getDimPosition(axis)));
  auto error = emitError(*asked.location) << "walk: in this order two units meet in one element of the output; operand '"
                                          << asked.operand << "' is walked by the axes that the output has first";
  if (first.size() != 1 || rest.size() != 1)
    return error;
  std::string shares = first[0] + "_" + rest[0];
  return error << ", '" << first[0] << "'; split_nnz of '" << shares << "' and race of '" << shares
               << "0' share its entries out to units that meet";
}

/// Is `fact` known of an axis of the first level?
bool firstLevelHas(StringRef fact, OpOperand &operand) {
  BlockArgument argument = argumentOf(operand.get());
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto flags = function.getArgAttrOfType<DenseBoolArrayAttr>(argument.getArgNumber(), fact);
  return flags && llvm::any_of(formatOf(operand.get()).getPatternLevels()[0].getDigits(),
                               [&](Digit digit) { return digit.axis < flags.size() && flags[digit.axis]; });
}

/// Is `fact` known of the axis of the output that a share of entries has its rows of, or that they are pushed to?
bool rowsAre(StringRef fact, OpOperand &operand, ArrayRef<unsigned> axes) {
  BlockArgument argument = argumentOf(operand.get());
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto flags = function.getArgAttrOfType<DenseBoolArrayAttr>(argument.getArgNumber(), fact);
  SmallVector<Digit> row = sharedDigits(formatOf(operand.get()), axes);
  if (row.empty())
    row = pushedDigits(formatOf(operand.get()), axes);
  return flags && !row.empty() && row[0].axis < flags.size() && flags[row[0].axis];
}

/// The form that a step asks for, or the best one.
FailureOr<OwnerForm> chooseForm(const RequestedWalk &asked, OpOperand &operand, ArrayRef<unsigned> axes) {
  FormatAttr format = formatOf(operand.get());
  auto generic = cast<linalg::GenericOp>(operand.getOwner());
  bool isClass = asked.form.empty() && !asked && objectionToClasses(operand, axes).empty();
  std::string reason = isClass ? reasonForClasses(operand, axes[0]) : "";
  if (!reason.empty() && keepsRowsTogether(generic, operand, axes[0]))
    return OwnerForm{kClasses, reason};
  if (asked.form.empty()) {
    bool hypersparse = rowsAre("lacis.hypersparse", operand, axes) && objectionToParts(generic).empty();
    bool isAlone = generic.getIndexingMapsArray().back().getNumResults() == axes.size();
    return bestForm(
        format, axes,
        {firstLevelHas("lacis.uneven", operand), firstLevelHas("lacis.filled", operand), hypersparse, isAlone});
  }
  auto refuse = [&] { return emitError(*asked.formLocation) << "own: "; };
  const auto *form = llvm::find(kForms, asked.form);
  if (form == std::end(kForms)) {
    auto error = refuse() << "no form '" << asked.form << "'; there are ";
    llvm::interleaveComma(kForms, error, [&](StringRef name) { error << "'" << name << "'"; });
    return failure();
  }
  if (asked)
    return refuse() << "walk says already how operand '" << asked.operand << "' is walked";
  if (*form == kClasses) {
    if (std::string objection = objectionToClasses(operand, axes); !objection.empty())
      return refuse() << "operand '" << asked.operand << "' has no form 'classes': " << objection;
    return OwnerForm{*form, "asked for"};
  }
  if (operand.get().getDefiningOp<PartOp>() && *form != kCompanion)
    return refuse() << "operand '" << asked.operand << "' is a sum, each of whose parts meets every element of the output";
  std::string objection = objectionTo(*form, format, axes);
  bool makesParts = *form == kShare || (*form == kPush && !pushesToTile(format, axes));
  if (objection.empty() && makesParts)
    objection = objectionToParts(generic);
  if (!objection.empty())
    return refuse() << "operand '" << asked.operand << "' has no form '" << *form << "': " << objection;
  return OwnerForm{*form, "asked for"};
}

/// Steps that nobody asked for are printed with those of the default schedule.
void recordForm(linalg::GenericOp generic, const RequestedWalk &asked, const OwnerForm &form) {
  if (!asked.form.empty() || asked.operand.empty())
    return;
  auto function = generic->getParentOfType<func::FuncOp>();
  SmallVector<Attribute> forms;
  if (auto known = function->getAttrOfType<ArrayAttr>("lacis.owners"))
    llvm::append_range(forms, known);
  std::string text = ("#lacis.own<operand = \"" + asked.operand + "\", form = \"" + form.name + "\", why = \"" +
                      form.why + "\">")
                         .str();
  Attribute step = parseAttribute(text, generic.getContext());
  if (llvm::is_contained(forms, step)) // of another part
    return;
  forms.push_back(step);
  function->setAttr("lacis.owners", Builder(function).getArrayAttr(forms));
}

/// The operand is walked through its companion index, by these axes first.
LogicalResult walkCompanion(linalg::GenericOp generic, OpOperand &operand, const RequestedWalk &asked,
                            ArrayRef<unsigned> axes, bool byRows) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  FormatAttr format = formatOf(operand.get());
  FormatAttr companion = withoutLink(format, format.companion(asked ? ArrayRef(asked.axes) : axes));
  if (asked && (!companion || !isLocated(companion, axes)))
    return refuseMeeting(asked, generic, operand, axes);
  if (!companion || !nestsDigits(companion) || !isLocated(companion, axes))
    return generic.emitError("no walk of '") << format << "' gives each output element one owner";
  if (byRows)
    companion = withPlaces(operand.get(), companion);
  auto walked = RankedTensorType::get(type.getShape(), type.getElementType(), companion);
  OpBuilder b(generic);
  operand.set(WalkOp::create(b, generic.getLoc(), walked, operand.get()));
  return success();
}

/// The output has every letter of the operand, whose entries own its elements.
LogicalResult chooseScatter(linalg::GenericOp generic, OpOperand &operand, const RequestedWalk &asked) {
  std::optional<Location> loc = asked ? asked.location : asked.formLocation;
  if (loc)
    return emitError(*loc) << (asked ? "walk" : "own") << ": the output has every letter of operand '" << asked.operand
                           << "', which is walked entry by entry";
  OpBuilder b(generic);
  FailureOr<Value> entries = walkEntries(b, generic.getLoc(), operand.get());
  if (succeeded(entries))
    operand.set(*entries);
  return entries;
}

LogicalResult chooseWalk(linalg::GenericOp generic, OpOperand &operand, bool byRows) {
  FormatAttr format = formatOf(operand.get());
  if (failed(requireCode(format, generic.getLoc())))
    return failure();
  FailureOr<RequestedWalk> asked = requestedWalk(generic, operand.get(), generic.getMatchingIndexingMap(&operand));
  if (failed(asked))
    return failure();
  if (scatters(generic, operand))
    return chooseScatter(generic, operand, *asked);
  SmallVector<unsigned> axes = outputAxes(generic, operand);
  FailureOr<OwnerForm> form = chooseForm(*asked, operand, axes);
  if (failed(form))
    return failure();
  if (form->name == kClasses) {
    recordForm(generic, *asked, *form);
    chooseClass(generic, operand, axes[0]);
    return success();
  }
  if (*asked ? asked->isOwnOrderOf(format) && isLocated(format, axes) : form->name == "locate")
    return success();
  if (*asked || operand.get().getDefiningOp<PartOp>())
    return walkCompanion(generic, operand, *asked, axes, byRows);
  recordForm(generic, *asked, *form);
  if (form->name == kCompanion)
    return walkCompanion(generic, operand, *asked, axes, byRows);
  generic->setAttr("lacis.owner", StringAttr::get(generic.getContext(), form->name));
  return success();
}

/// Is a sampled pattern walked row by row: where a step asks for that, and by default where no step names the loop over
/// all entries? An error where a step asks for an order that the entries do not have.
FailureOr<bool> goesByRows(ZerosOp zeros, bool byDefault) {
  FormatAttr format = formatOf(zeros.getSource());
  for (OpOperand &use : zeros->getUses()) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic)
      continue;
    FailureOr<RequestedWalk> asked = requestedWalk(generic, zeros.getSource(), generic.getMatchingIndexingMap(&use));
    if (failed(asked))
      return failure();
    if (*asked && (!asked->isOwnOrderOf(format) || !hasRows(format)))
      return emitError(*asked->location) << "walk: the output has the entries of '" << asked->operand
                                         << "', which are walked one by one; only entries in order under dense rows, as "
                                            "in CSR, are walked row by row, in the order of their format";
    if (*asked)
      return true;
    byDefault &= !namesLoop(generic, entriesName(generic, generic.getMatchingIndexingMap(&use)));
  }
  return byDefault && hasNarrowRows(format);
}

LogicalResult chooseSampledWalk(ZerosOp zeros, bool byRows) {
  FormatAttr format = formatOf(zeros.getSource());
  if (!format)
    return zeros.emitError("a sum of formats is sampled part by part");
  if (failed(requireCode(format, zeros.getLoc())))
    return failure();
  FailureOr<bool> rows = goesByRows(zeros, byRows);
  if (failed(rows) || *rows)
    return rows;
  OpBuilder b(zeros);
  FailureOr<Value> entries = walkEntries(b, zeros.getLoc(), zeros.getSource());
  if (succeeded(entries))
    zeros.setOperand(*entries);
  return entries;
}

/// A statement of a chain adds up what others made on a pattern: in its own order where that owns the elements, else by
/// the companion index.
LogicalResult chooseMadeWalk(linalg::GenericOp generic, OpOperand &operand) {
  SmallVector<BlockArgument> patterns;
  for (OpOperand *other : generic.getDpsInputOperands())
    if (auto maker = formatOf(other->get()) ? makerOf(other->get()) : linalg::GenericOp()) {
      ZerosOp zeros = zerosOf(maker.getOutputs()[0]);
      if (!zeros)
        return maker.emitError("an output with a format begins as 'lacis.zeros' of its pattern");
      patterns.push_back(argumentOf(zeros.getSource()));
    }
  if (ZerosOp own = zerosOf(generic.getOutputs()[0]))
    patterns.push_back(argumentOf(own.getSource()));
  if (!llvm::all_equal(patterns))
    return generic.emitError("operand ") << operand.getOperandNumber()
                                         << " is made on another pattern; the statements of a chain share one";
  FormatAttr format = formatOf(operand.get());
  if (formatOf(generic.getResult(0)))
    return success(); // at an entry of the same pattern
  SmallVector<unsigned> axes = outputAxes(generic, operand);
  if (failed(requireCode(format, generic.getLoc())))
    return failure();
  return isLocated(format, axes) ? success() : walkCompanion(generic, operand, RequestedWalk{}, axes, false);
}

/// What the generic's encoded operands are walked by; two walk together only on one pattern.
LogicalResult chooseWalks(linalg::GenericOp generic, bool byRows) {
  ZerosOp zeros = zerosOf(generic.getOutputs()[0]);
  BlockArgument sampled = zeros ? argumentOf(zeros.getSource()) : BlockArgument();
  OpOperand *walked = nullptr;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    BlockArgument argument = argumentOf(operand->get());
    if (!formatOf(operand->get()) || !argument || (sampled && argument == sampled))
      continue;
    if (sampled || walked)
      return generic.emitError("operand ") << operand->getOperandNumber()
                                           << " has a pattern of its own; operands with formats share one pattern";
    walked = operand;
  }
  OpOperand *made = madeOperand(generic);
  if (made && walked)
    return generic.emitError("operand ") << walked->getOperandNumber()
                                         << " is walked beside what a statement made; a chain walks one pattern";
  if (made)
    return chooseMadeWalk(generic, *made);
  return walked ? chooseWalk(generic, *walked, byRows) : success();
}

struct ChooseWalks : lacis::impl::LacisChooseWalksBase<ChooseWalks> {
  using LacisChooseWalksBase::LacisChooseWalksBase;

  void runOnOperation() override {
    SmallVector<ZerosOp> outputs(getOperation().getBody().getOps<ZerosOp>());
    for (linalg::GenericOp generic : getOperation().getBody().getOps<linalg::GenericOp>())
      if (failed(chooseWalks(generic, rows)))
        return signalPassFailure();
    for (ZerosOp zeros : outputs)
      if (failed(chooseSampledWalk(zeros, rows)))
        return signalPassFailure();
  }
};

} // namespace
