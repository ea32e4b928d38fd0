// SPDX-License-Identifier: Apache-2.0
/// \file
/// The dialect: what it holds, and how its attributes find their parser by mnemonic.
#include "lacis/Dialect/Lacis/IR/BindingOps.h"
#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "lacis/Dialect/Lacis/IR/LacisDialect.cpp.inc"

using namespace mlir;
using namespace lacis;

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisAttrs.cpp.inc"

void LacisDialect::initialize() {
  addKinds<
#define GET_ATTRDEF_LIST
#include "lacis/Dialect/Lacis/IR/LacisAttrs.cpp.inc"
      >();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "lacis/Dialect/Lacis/IR/LacisOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lacis/Dialect/Lacis/IR/RingOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lacis/Dialect/Lacis/IR/TileOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lacis/Dialect/Lacis/IR/BindingOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lacis/Dialect/Lacis/IR/KindOps.cpp.inc"
      >();
  Room::addAll(*this);
}

Attribute LacisDialect::parseAttribute(DialectAsmParser &parser, Type type) const {
  SMLoc location = parser.getCurrentLocation();
  StringRef mnemonic;
  if (parser.parseKeyword(&mnemonic))
    return {};
  if (const Kind *kind = kinds.find(mnemonic))
    return kind->parse(parser, type);
  parser.emitError(location) << "the dialect 'lacis' has no attribute '" << mnemonic << "'";
  return {};
}

void LacisDialect::printAttribute(Attribute attr, DialectAsmPrinter &printer) const {
  StringRef mnemonic = kinds.getMnemonic(attr);
  printer << mnemonic;
  kinds.find(mnemonic)->print(attr, printer);
}
