// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a level answers, and what it refuses to be.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

using namespace mlir;
using namespace lacis;

LogicalResult LevelAttr::verify(EmitError emitError, ArrayRef<Digit> digits, ExtentInterface extent,
                                CoordinateInterface coordinate) {
  assert(extent && coordinate && "a level has an extent and a coordinate");
  assert((!digits.empty() || extent.isLink()) && "only 'link' has no digits");
  if (!digits.empty() && extent.isLink())
    return emitError() << "'link' has no digits: write 'link' alone";
  for (const Digit &digit : digits) {
    if (digit.div < 1 || digit.mod < 0)
      return emitError() << "a block size must be positive, not " << (digit.div < 1 ? digit.div : digit.mod);
    if (digit.div > std::numeric_limits<int32_t>::max() || digit.mod > std::numeric_limits<int32_t>::max() / digit.div)
      return emitError() << "a block of " << digit.div << " * " << std::max<int64_t>(digit.mod, 1)
                         << " is too large: blocks end at 2147483647";
  }
  bool whole = isa<CoordinateInterface>(Attribute(extent)) || isa<ExtentInterface>(Attribute(coordinate));
  if (whole && Attribute(extent) != Attribute(coordinate))
    return emitError() << "'" << extent.getMnemonic() << "' and '" << coordinate.getMnemonic()
                       << "' do not combine: one of them is an extent and a coordinate, and stands alone";
  if (failed(extent.verifyCoordinate(coordinate, emitError)))
    return failure();
  return coordinate.verifyUnder(extent, digits, emitError);
}

bool LevelAttr::isStaticDense() const {
  return getExtent().coversDomain() && getCoordinate().isImplicit() && getDigits().size() == 1 &&
         getDigits()[0].mod != 0;
}

bool LevelAttr::isPadded() const { return getExtent().isPadded() || getCoordinate().isPadded(); }

bool LevelAttr::hasCode() const { return getExtent().hasCode() && getCoordinate().hasCode(); }

StringRef LevelAttr::getPositionsArray() const {
  for (const BufferSpec &buffer : getBuffers())
    if (buffer.length == BufferSpec::Positions)
      return buffer.name;
  return "";
}

bool LevelAttr::isRandomAccess() const { return getCoordinate().isStateless() && !getPositionsArray().empty(); }

SmallVector<BufferSpec> LevelAttr::getBuffers() const {
  SmallVector<BufferSpec> buffers = getExtent().getBuffers();
  if (Attribute(getExtent()) != Attribute(getCoordinate()))
    llvm::append_range(buffers, getCoordinate().getBuffers());
  return buffers;
}
