// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is known of a nest and of the letters of its loops.
#ifndef LACIS_DIALECT_LACIS_IR_NESTFACTS_H
#define LACIS_DIALECT_LACIS_IR_NESTFACTS_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// The names of the axes of an argument of the function (`lacis.axes`).
llvm::ArrayRef<mlir::Attribute> axesOf(mlir::func::FuncOp function, unsigned argument);
/// The name of one of them; null of another tensor.
mlir::Attribute letterOf(mlir::Value tensor, unsigned axis);
/// Has a step marked a loop of the nest (`isMarked`)?
bool hasMarks(LoopOp nest);
/// Adds entries to the list that an attribute of the function is.
void append(mlir::func::FuncOp function, llvm::StringRef list, llvm::ArrayRef<mlir::Attribute> entries);
/// Is the one loop of a chain on tiles by default? `lacis.rolls` says `tiles` then, or `wide tiles`.
bool rollsOnTiles(mlir::func::FuncOp function);
/// Has a `tensorize` step marked a loop? No default step is added then.
bool isTensorized(Nest &nest);
/// Is the output sampled on the pattern of an operand? Then the main nest runs over its entries.
bool isSampled(Nest &nest);
/// The only loop of a nest that carries a sum, where it walks positions and no step has marked it; else null.
LevelLoopOp entryLoop(LoopOp top);
/// Does a letter of an operand with a format carry the hint `fact`? `lacis.uneven`: some coordinates have far more
/// entries than most. `lacis.large`: 32 vectors for each coordinate exceed a GPU's second-level cache.
bool letterHas(Nest &nest, llvm::StringRef letter, llvm::StringRef fact);
/// Does a letter that is summed over carry the hint `fact`?
bool summedHas(Nest &nest, llvm::StringRef fact);
/// What the size of an axis with this letter is known to be a multiple of, by any argument of the function.
int64_t divisorOf(mlir::func::FuncOp function, mlir::Attribute letter);
/// Is the value arithmetic on what `sum` adds up, and on reads that `takes` takes?
bool isArithmeticOn(mlir::Operation *sum, mlir::Value value, llvm::function_ref<bool(ReadOp)> takes);
/// Both values are made in the same way. Where `known` answers, of a pair of them, so it is.
using KnownSame = llvm::function_ref<std::optional<bool>(mlir::Value a, mlir::Value b)>;
bool isSameValue(mlir::Value a, mlir::Value b, KnownSame known = {});

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_NESTFACTS_H
