// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decides whether an operand is walked in its own order or through its companion index.
///
/// A parallel unit owns an element of the output. It can walk the operand itself where each level
/// with an output digit has a position for every coordinate (it is located), and no level mixes
/// digits of the output with others. Anything else is walked by the companion, whose leading
/// levels are dense in the output's axes: no two units race, and the order of the sum is fixed.
/// A step of the schedule may ask for an order that keeps this promise.
#include "RequestedWalk.h"
#include "lacis/Transforms/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

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

LogicalResult chooseWalk(linalg::GenericOp generic, OpOperand &operand) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  auto format = cast<FormatAttr>(type.getEncoding());
  if (failed(requireCode(format, generic.getLoc())))
    return failure();
  FailureOr<RequestedWalk> asked = requestedWalk(generic, operand);
  if (failed(asked))
    return failure();
  SmallVector<unsigned> axes = outputAxes(generic, operand);
  bool own = asked->isOwnOrderOf(format);
  if (own && walksItself(format, axes))
    return success();
  FormatAttr companion = format.companion(*asked ? ArrayRef(asked->axes) : axes);
  if (*asked && (!companion || !walksItself(companion, axes)))
    return emitError(*asked->location) << "walk: in this order two units meet in one element of the output; operand '"
                                       << asked->operand << "' is walked by the axes that the output has first";
  if (!companion || !nestsDigits(companion))
    return generic.emitError("no walk of '") << format << "' gives each output element one owner";
  OpBuilder b(generic);
  auto walked = RankedTensorType::get(type.getShape(), type.getElementType(), companion);
  operand.set(WalkOp::create(b, generic.getLoc(), walked, operand.get()));
  return success();
}

struct ChooseWalks : lacis::impl::LacisChooseWalksBase<ChooseWalks> {
  void runOnOperation() override {
    getOperation().walk([&](linalg::GenericOp generic) {
      for (OpOperand *operand : generic.getDpsInputOperands()) {
        auto type = dyn_cast<RankedTensorType>(operand->get().getType());
        if (type && isa_and_nonnull<FormatAttr>(type.getEncoding()) && failed(chooseWalk(generic, *operand)))
          return signalPassFailure();
      }
    });
  }
};

} // namespace
