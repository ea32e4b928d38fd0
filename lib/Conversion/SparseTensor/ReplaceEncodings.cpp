// SPDX-License-Identifier: Apache-2.0
/// \file
/// Walks a module and exchanges the encodings of its tensor types.
#include "LevelWords.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace lacis;

LogicalResult lacis::replaceEncodings(ModuleOp module, ConvertEncoding convert) {
  bool ok = true;
  Location location = module.getLoc();
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](RankedTensorType type) -> std::optional<Type> {
    if (!type.getEncoding())
      return std::nullopt;
    Attribute encoding = convert(type.getEncoding(), [&] { return emitError(location); });
    ok &= static_cast<bool>(encoding);
    return encoding ? RankedTensorType::get(type.getShape(), type.getElementType(), encoding) : type;
  });
  module.walk([&](Operation *op) {
    location = op->getLoc();
    replacer.replaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  });
  return success(ok);
}
