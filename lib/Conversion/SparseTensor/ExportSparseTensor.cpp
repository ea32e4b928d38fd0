// SPDX-License-Identifier: Apache-2.0
/// \file
/// From formats to upstream's sparse_tensor encodings.
#include "LevelWords.h"

namespace lacis {
#define GEN_PASS_DEF_LACISEXPORTSPARSETENSOR
#include "lacis/Conversion/ConversionPasses.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;
using sparse_tensor::LevelFormat;
using sparse_tensor::LevelPropNonDefault;
using sparse_tensor::LevelType;
using sparse_tensor::SparseTensorEncodingAttr;

namespace {
/// Widths that all levels must share; 0 while no level has one.
struct Widths {
  unsigned pos = 0, crd = 0;
  bool add(const BufferSpec &buffer) {
    unsigned &width = buffer.name == "crd" ? crd : pos;
    unsigned other = buffer.elementType.getIntOrFloatBitWidth();
    bool agrees = width == 0 || width == other;
    width = other;
    return agrees;
  }
};
} // namespace

/// Digits inside blocks inside blocks have no inverse upstream.
static AffineExpr exprOf(const Digit &digit, MLIRContext *context) {
  AffineExpr dim = getAffineDimExpr(digit.axis, context);
  if (digit.div != 1 && digit.mod != 0)
    return {};
  return digit.mod != 0 ? dim % digit.mod : dim.floorDiv(digit.div);
}

static const LevelWords *wordsOf(LevelAttr level) {
  for (const LevelWords &words : kLevelWords)
    if (level.getExtent().getMnemonic() == words.extent && level.getCoordinate().getMnemonic() == words.coordinate)
      return &words;
  return nullptr;
}

static std::optional<LevelType> exportLevel(LevelAttr level, const LevelWords &words) {
  CoordinateInterface coordinate = level.getCoordinate();
  std::vector<LevelPropNonDefault> properties;
  if (words.format == LevelFormat::NOutOfM)
    return sparse_tensor::buildLevelType(words.format, properties, level.getExtent().getTrip().value_or(0),
                                         level.getDigits().front().mod);
  if (!coordinate.isUnique())
    properties.push_back(LevelPropNonDefault::Nonunique);
  if (!coordinate.isOrdered())
    properties.push_back(LevelPropNonDefault::Nonordered);
  if (words.format == LevelFormat::Singleton)
    properties.push_back(LevelPropNonDefault::SoA);
  return sparse_tensor::buildLevelType(words.format, properties);
}

/// Adds one level, or says why it cannot be said.
static LogicalResult addLevel(LevelAttr level, SmallVectorImpl<LevelType> &types, SmallVectorImpl<AffineExpr> &exprs,
                              Widths &widths, EmitError emitError) {
  const LevelWords *words = wordsOf(level);
  if (!words || (level.getCoordinate().isStored() && level.getCoordinate().isPadded()))
    return emitError() << "level kind '" << level.getKindName() << (words ? "' with padding" : "'")
                       << " has no counterpart in 'sparse_tensor'";
  AffineExpr expr = level.getDigits().size() == 1 ? exprOf(level.getDigits().front(), level.getContext()) : nullptr;
  std::optional<LevelType> type = exportLevel(level, *words);
  if (!expr || !type)
    return emitError() << "the digits of " << level << " have no counterpart in 'sparse_tensor'";
  for (const BufferSpec &buffer : level.getBuffers())
    if (!buffer.isUnsigned && !widths.add(buffer)) // bits and codes have a type of their own
      return emitError() << "'sparse_tensor' has one width for '" << buffer.name << "' of all levels";
  types.push_back(*type);
  exprs.push_back(expr);
  return success();
}

static Attribute exportFormat(Attribute attr, EmitError emitError) {
  if (isa<SumAttr>(attr)) {
    emitError() << "a sum has no counterpart in 'sparse_tensor': export its parts";
    return {};
  }
  auto format = dyn_cast<FormatAttr>(attr);
  if (!format)
    return attr;
  if (!format.getBindings().empty() || format.getMultiset() || format.getLayout()) {
    emitError() << "bindings, 'layout' and 'multiset' have no counterpart in 'sparse_tensor'";
    return {};
  }
  SmallVector<LevelType> types;
  SmallVector<AffineExpr> exprs;
  Widths widths;
  for (LevelAttr level : format.getLevels())
    if (failed(addLevel(level, types, exprs, widths, emitError)))
      return {};
  auto map = AffineMap::get(format.getAxes().size(), 0, exprs, attr.getContext());
  return SparseTensorEncodingAttr::getChecked(
      emitError, attr.getContext(), ArrayRef(types), map, sparse_tensor::inferLvlToDim(map, attr.getContext()),
      widths.pos, widths.crd, Attribute(), Attribute(), ArrayRef<sparse_tensor::SparseTensorDimSliceAttr>());
}

namespace {
struct ExportSparseTensor : lacis::impl::LacisExportSparseTensorBase<ExportSparseTensor> {
  void runOnOperation() override {
    if (failed(replaceEncodings(getOperation(), exportFormat)))
      signalPassFailure();
  }
};
} // namespace
