// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text form and verifiers of roles and rings.
#include "lacis/Dialect/Lacis/IR/Lacis.h"

using namespace mlir;
using namespace lacis;

static void printRole(OpAsmPrinter &p, Region &role) {
  if (role.getNumArguments() != 0) {
    p << "(";
    llvm::interleaveComma(role.getArguments(), p, [&](BlockArgument argument) { p.printRegionArgument(argument); });
    p << ") ";
  }
  p.printRegion(role, /*printEntryBlockArgs=*/false);
}

void RolesOp::print(OpAsmPrinter &p) {
  if (getGroups() != 1)
    p << " groups " << getGroups();
  p << " producer ";
  printRole(p, getProducer());
  p << " consumers " << getConsumers() << " ";
  printRole(p, getConsumer());
  p.printOptionalAttrDict((*this)->getAttrs(), {"consumers", "groups"});
}

static ParseResult parseRole(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  return failure(parser.parseArgumentList(arguments, AsmParser::Delimiter::OptionalParen, /*allowType=*/true) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

ParseResult RolesOp::parse(OpAsmParser &parser, OperationState &result) {
  IntegerAttr consumers, groups;
  Type number = parser.getBuilder().getI64Type();
  if (succeeded(parser.parseOptionalKeyword("groups")) &&
      parser.parseAttribute(groups, number, "groups", result.attributes))
    return failure();
  return failure(parser.parseKeyword("producer") || parseRole(parser, result) || parser.parseKeyword("consumers") ||
                 parser.parseAttribute(consumers, number, "consumers", result.attributes) ||
                 parseRole(parser, result) || parser.parseOptionalAttrDict(result.attributes));
}

LogicalResult RolesOp::verify() {
  if (getConsumers() < 1)
    return emitOpError("needs at least one consumer");
  if (getGroups() < 1)
    return emitOpError("needs at least one group");
  unsigned group = getGroups() == 1 ? 0 : 1;
  if (getProducer().getNumArguments() != group || getConsumer().getNumArguments() != 1 + group)
    return emitOpError("the producer takes no argument, the consumer its number; with groups each takes that of its "
                       "group besides");
  auto found = getProducer().walk([](Operation *op) {
    bool isOfConsumer = isa<MmaOp, MmaGatheredOp, CompleteOp, ReadTileOp, ReadColumnsOp, AdvanceOp, RevisitOp, StoreTileOp, StoreRowsOp,
                            StoreBlocksOp>(op);
    return isOfConsumer ? WalkResult(op->emitOpError("belongs to a consumer")) : WalkResult::advance();
  });
  if (found.wasInterrupted())
    return failure();
  found = getConsumer().walk([](Operation *op) {
    return isa<LoadTileOp, LoadRunOp>(op) ? WalkResult(op->emitOpError("belongs to the producer"))
                                          : WalkResult::advance();
  });
  return failure(found.wasInterrupted());
}

static LogicalResult verifyTiles(Operation *op, RingType ring) {
  return llvm::equal(ring.getTiles(), op->getResultTypes()) ? success()
                                                            : op->emitOpError("gives the tiles of the ring, in order");
}

LogicalResult AcquireOp::verify() { return verifyTiles(*this, getRing().getType()); }
LogicalResult RevisitOp::verify() { return verifyTiles(*this, getRing().getType()); }

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/RingOps.cpp.inc"
