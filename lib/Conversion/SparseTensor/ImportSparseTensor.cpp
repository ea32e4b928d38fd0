// SPDX-License-Identifier: Apache-2.0
/// \file
/// From upstream's sparse_tensor encodings to formats.
#include "LevelWords.h"

namespace lacis {
#define GEN_PASS_DEF_LACISIMPORTSPARSETENSOR
#include "lacis/Conversion/ConversionPasses.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using sparse_tensor::LevelFormat;
using sparse_tensor::LevelPropNonDefault;
using sparse_tensor::LevelType;
using sparse_tensor::SparseTensorEncodingAttr;

static constexpr StringRef kAxisNames = "ijklmnopqrstuvwxyzabcdefgh";

/// `d`, `d floordiv c` or `d mod c`.
static std::optional<Digit> digitOf(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Digit{dim.getPosition(), 1, 0};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  auto dim = binary ? dyn_cast<AffineDimExpr>(binary.getLHS()) : nullptr;
  auto size = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : nullptr;
  if (!dim || !size || size.getValue() <= 0)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return Digit{dim.getPosition(), size.getValue(), 0};
  if (expr.getKind() == AffineExprKind::Mod)
    return Digit{dim.getPosition(), 1, size.getValue()};
  return std::nullopt;
}

/// Width 0 is upstream's word for the machine's.
static IntegerType widthOf(MLIRContext *context, unsigned width) {
  return IntegerType::get(context, width == 0 ? 64 : width);
}

static LevelAttr importLevel(SparseTensorEncodingAttr encoding, unsigned number, EmitError emitError) {
  LevelType type = encoding.getLvlTypes()[number];
  MLIRContext *context = encoding.getContext();
  const LevelWords *words =
      llvm::find_if(kLevelWords, [&](const LevelWords &words) { return words.format == type.getLvlFmt(); });
  std::optional<Digit> digit = digitOf(encoding.getDimToLvl().getResult(number));
  if (words == std::end(kLevelWords) || !digit) {
    emitError() << "level " << number << " of " << encoding << " has no counterpart in a format";
    return {};
  }
  if (type.isa<LevelFormat::Singleton>() && !type.isa<LevelPropNonDefault::SoA>()) {
    emitError() << "level " << number << " of " << encoding << " interleaves its coordinates: add 'soa'";
    return {};
  }
  KindArguments arguments(context);
  if (type.isa<LevelFormat::NOutOfM>())
    arguments.addInteger(type.getN());
  if (words->coordinate == "crd") {
    arguments.addFlag("unique", !type.isa<LevelPropNonDefault::Nonunique>(), true);
    arguments.addFlag("ordered", !type.isa<LevelPropNonDefault::Nonordered>(), true);
    arguments.addWidth("crd", widthOf(context, encoding.getCrdWidth()));
  }
  if (words->extent.starts_with("var"))
    arguments.addWidth("pos", widthOf(context, encoding.getPosWidth()));
  return LevelAttr::getByName(context, *digit, words->extent, words->coordinate, arguments);
}

static Attribute importEncoding(Attribute attr, EmitError emitError) {
  auto encoding = dyn_cast<SparseTensorEncodingAttr>(attr);
  if (!encoding)
    return attr;
  if (!encoding.getDimSlices().empty() || encoding.getExplicitVal() || encoding.getImplicitVal()) {
    emitError() << "a format has no slices and no explicit or implicit values: " << encoding;
    return {};
  }
  SmallVector<StringAttr> axes;
  for (char name : kAxisNames.take_front(encoding.getDimRank()))
    axes.push_back(StringAttr::get(attr.getContext(), StringRef(&name, 1)));
  SmallVector<LevelAttr> levels;
  for (unsigned n = 0; n < encoding.getLvlRank(); ++n) {
    LevelAttr level = importLevel(encoding, n, emitError);
    if (!level)
      return {};
    levels.push_back(level);
  }
  return FormatAttr::getChecked(emitError, attr.getContext(), ArrayRef(axes), ArrayRef<Attribute>(), ArrayRef(levels),
                                false, Attribute());
}

namespace {
struct ImportSparseTensor : lacis::impl::LacisImportSparseTensorBase<ImportSparseTensor> {
  void runOnOperation() override {
    if (failed(replaceEncodings(getOperation(), importEncoding)))
      signalPassFailure();
  }
};
} // namespace
