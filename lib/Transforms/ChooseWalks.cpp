// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decides whether an operand is walked in its own order or through its companion index.
///
/// A parallel unit owns an element of the output. It can walk the operand itself where each level
/// with an output digit has a position for every coordinate (it is located), and no level mixes
/// digits of the output with others. Anything else is walked by the companion, whose leading
/// levels are dense in the output's axes: no two units race, and the order of the sum is fixed.
/// A step of the schedule may ask for an order that keeps this promise.
/// A sampled output has one owner for each of its entries, and so has a dense one with every letter of the operand:
/// the pattern is walked entry by entry.
#include "Expression.h"
#include "RequestedWalk.h"

namespace lacis {
#define GEN_PASS_DEF_LACISCHOOSEWALKS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

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

bool walksItself(FormatAttr format, ArrayRef<unsigned> axes) {
  return llvm::all_of(format.getLevels(), [&](LevelAttr level) {
    auto known = llvm::count_if(level.getDigits(), [&](Digit d) { return llvm::is_contained(axes, d.axis); });
    return known == 0 ||
           (known == static_cast<long>(level.getDigits().size()) && level.getExtent().coversDomain());
  });
}

/// Every kind of the format has code, or an error that names the one that has none.
LogicalResult requireCode(FormatAttr format, Location loc) {
  if (!format.getBindings().empty())
    return emitError(loc) << "formats with 'let' bindings have no code yet: " << format;
  if (format.getLayout())
    return emitError(loc) << "formats with a 'layout' have no code yet: " << format;
  for (auto [number, level] : llvm::enumerate(format.getLevels())) {
    if (!level.getExtent().hasCode())
      return emitError(loc) << "level kind '" << level.getExtent().getMnemonic() << "' (level " << number
                            << ") has no code yet";
    if (!level.getCoordinate().hasCode())
      return emitError(loc) << "level kind '" << level.getCoordinate().getMnemonic() << "' (level " << number
                            << ") has no code yet";
  }
  return success();
}

/// No digit of an axis lies inside another: the tile's digits are below those of the index.
bool nestsDigits(FormatAttr format) {
  SmallVector<Digit> digits;
  for (LevelAttr level : format.getLevels())
    llvm::append_range(digits, level.getDigits());
  return llvm::all_of(digits, [&](Digit inner) {
    return llvm::all_of(digits, [&](Digit outer) {
      return inner.axis != outer.axis || outer.div <= inner.div || (inner.mod && inner.div * inner.mod <= outer.div);
    });
  });
}

/// Its positions are its entries (or stored blocks), or all its levels are dense: nothing would be gained.
bool walksEntries(FormatAttr format) {
  ArrayRef<LevelAttr> prefix = format.getLevels().drop_back(format.getNumTileLevels());
  auto covers = [](LevelAttr level) { return level.getExtent().coversDomain(); };
  auto follows = [](LevelAttr level) { return level.getExtent().followsParent(); };
  return llvm::all_of(prefix, covers) || llvm::all_of(prefix.drop_front(), follows);
}

/// The tensor, or its companion whose positions are its entries.
FailureOr<Value> walkEntries(OpBuilder &b, Location loc, Value tensor) {
  FormatAttr format = formatOf(tensor);
  if (walksEntries(format))
    return tensor;
  FormatAttr companion = format.companion({});
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

LogicalResult chooseWalk(linalg::GenericOp generic, OpOperand &operand) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  auto format = cast<FormatAttr>(type.getEncoding());
  if (failed(requireCode(format, generic.getLoc())))
    return failure();
  FailureOr<RequestedWalk> asked = requestedWalk(generic, operand);
  if (failed(asked))
    return failure();
  OpBuilder b(generic);
  if (scatters(generic, operand)) {
    if (*asked)
      return emitError(*asked->location) << "walk: the output has every letter of operand '" << asked->operand
                                         << "', which is walked entry by entry";
    FailureOr<Value> entries = walkEntries(b, generic.getLoc(), operand.get());
    if (succeeded(entries))
      operand.set(*entries);
    return entries;
  }
  SmallVector<unsigned> axes = outputAxes(generic, operand);
  bool own = asked->isOwnOrderOf(format);
  if (own && walksItself(format, axes))
    return success();
  FormatAttr companion = format.companion(*asked ? ArrayRef(asked->axes) : axes);
  if (*asked && (!companion || !walksItself(companion, axes)))
    return refuseMeeting(*asked, generic, operand, axes);
  if (!companion || !nestsDigits(companion))
    return generic.emitError("no walk of '") << format << "' gives each output element one owner";
  auto walked = RankedTensorType::get(type.getShape(), type.getElementType(), companion);
  operand.set(WalkOp::create(b, generic.getLoc(), walked, operand.get()));
  return success();
}

LogicalResult chooseSampledWalk(ZerosOp zeros) {
  FormatAttr format = formatOf(zeros.getSource());
  if (!format)
    return zeros.emitError("a sum of formats is sampled part by part");
  if (failed(requireCode(format, zeros.getLoc())))
    return failure();
  OpBuilder b(zeros);
  FailureOr<Value> entries = walkEntries(b, zeros.getLoc(), zeros.getSource());
  if (succeeded(entries))
    zeros.setOperand(*entries);
  return entries;
}

/// What the generic's encoded operands are walked by; two walk together only on one pattern.
LogicalResult chooseWalks(linalg::GenericOp generic) {
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
  return walked ? chooseWalk(generic, *walked) : success();
}

struct ChooseWalks : lacis::impl::LacisChooseWalksBase<ChooseWalks> {
  void runOnOperation() override {
    SmallVector<ZerosOp> outputs(getOperation().getBody().getOps<ZerosOp>());
    for (linalg::GenericOp generic : getOperation().getBody().getOps<linalg::GenericOp>())
      if (failed(chooseWalks(generic)))
        return signalPassFailure();
    for (ZerosOp zeros : outputs)
      if (failed(chooseSampledWalk(zeros)))
        return signalPassFailure();
  }
};

} // namespace
