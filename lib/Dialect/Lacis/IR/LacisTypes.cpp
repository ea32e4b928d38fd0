// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text form and verifiers of the types.
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

#define GET_TYPEDEF_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisTypes.cpp.inc"

void LacisDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "lacis/Dialect/Lacis/IR/LacisTypes.cpp.inc"
      >();
}

Type PatternType::parse(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Attribute format;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/true, /*withTrailingX=*/false) ||
      parser.parseComma() || parser.parseAttribute(format) || parser.parseGreater())
    return {};
  return parser.getChecked<PatternType>(location, parser.getContext(), shape, format);
}

void PatternType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << ", " << getFormat() << '>';
}

LogicalResult PatternType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                  Attribute format) {
  if (!isa<FormatAttr, SumAttr>(format))
    return emitError() << "a pattern needs a '#lacis.format' or '#lacis.sum', not " << format;
  return cast<VerifiableTensorEncoding>(format).verifyEncoding(shape, {}, emitError);
}

//===- Tiles --------------------------------------------------------------===//

/// `<64x256xf32>`
template <typename T> static Type parseShaped(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<T>(location, parser.getContext(), shape, element);
}

static void printShaped(AsmPrinter &printer, ArrayRef<int64_t> shape, Type element) {
  printer << '<';
  printer.printDimensionList(shape);
  printer << 'x' << element << '>';
}

Type TileType::parse(AsmParser &parser) { return parseShaped<TileType>(parser); }

void TileType::print(AsmPrinter &printer) const { printShaped(printer, getShape(), getElementType()); }

LogicalResult TileType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element) {
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "a tile has rows and columns, a list of tiles a count before them; got " << shape.size()
                       << " sizes";
  if (llvm::any_of(shape, [](int64_t size) { return size < 1; }))
    return emitError() << "the sizes of a tile are positive";
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "elements of a tile are whole bytes, not " << element;
  return success();
}

int64_t TileType::getBytes() const {
  return getCount() * getRows() * getColumns() * getElementType().getIntOrFloatBitWidth() / 8;
}

Type AccType::parse(AsmParser &parser) { return parseShaped<AccType>(parser); }

void AccType::print(AsmPrinter &printer) const { printShaped(printer, getShape(), getElementType()); }

LogicalResult AccType::verify(EmitError emitError, ArrayRef<int64_t> shape, Type element) {
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1)
    return emitError() << "an accumulator has rows and columns, at least one of each";
  if (!isa<FloatType>(element))
    return emitError() << "an accumulator holds floating-point numbers, not " << element;
  return success();
}

LogicalResult RingType::verify(EmitError emitError, int64_t stages, ArrayRef<TileType> tiles) {
  if (stages < 1)
    return emitError() << "a ring has at least one stage, not " << stages;
  assert(!tiles.empty() && "a stage of a ring holds at least one tile");
  return success();
}
