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

/// `d`, `d floordiv c` or `d mod c`: an encoding has no other levels.
static Digit digitOf(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Digit{dim.getPosition(), 1, 0};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  unsigned axis = cast<AffineDimExpr>(binary.getLHS()).getPosition();
  int64_t size = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  return expr.getKind() == AffineExprKind::FloorDiv ? Digit{axis, size, 0} : Digit{axis, 1, size};
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
  assert(words != std::end(kLevelWords) && "every level of an encoding has words");
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
  return LevelAttr::getByName(context, digitOf(encoding.getDimToLvl().getResult(number)), words->extent, words->coordinate, arguments);
}

static Attribute importEncoding(Attribute attr, EmitError emitError) {
  auto encoding = dyn_cast<SparseTensorEncodingAttr>(attr);
  if (!encoding)
    return attr;
  if (!encoding.getDimSlices().empty() || encoding.getExplicitVal() || encoding.getImplicitVal()) {
    emitError() << "a format has no slices and no explicit or implicit values: " << encoding;
    return {};
  }
  if (encoding.getDimRank() > kAxisNames.size()) {
    emitError() << "a format has at most " << kAxisNames.size() << " axes here, not " << encoding.getDimRank();
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
