// SPDX-License-Identifier: Apache-2.0
/// \file
/// Text and verifier of the marks of loops, which are their attributes beside the name; what other marks are.
#ifndef LACIS_LIB_DIALECT_LACIS_IR_LOOPMARKS_H
#define LACIS_LIB_DIALECT_LACIS_IR_LOOPMARKS_H

#include "lacis/Dialect/Lacis/IR/LacisOps.h"

namespace lacis {

/// Behind the body: `bind<lane> meets unroll<4>`, in the order of the alphabet.
void printMarks(mlir::OpAsmPrinter &printer, mlir::Operation *loop);
mlir::ParseResult parseMarks(mlir::OpAsmParser &parser, mlir::OperationState &result);

/// A text that does not say how a loop brings its rounds together has it in the body.
void importReduction(mlir::OperationState &result);

/// An operation has no attribute of a name that it does not know; those of other dialects are theirs.
mlir::LogicalResult verifyWords(mlir::Operation *op);

/// Each mark has a value that means something, beside the others.
mlir::LogicalResult verifyMarks(LoopOpInterface loop);
mlir::LogicalResult verifyOwnMarks(LoopOp loop);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_IR_LOOPMARKS_H
