// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a level kind sees of the pass that emits its code: constants, sizes, and loads of its own arrays.
#ifndef LACIS_DIALECT_LACIS_IR_LEVELBUILDER_H
#define LACIS_DIALECT_LACIS_IR_LEVELBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace lacis {

class LevelAttr;

/// An array that a level stores: `pos`, `crd`, …; the level's number is appended to its full name.
struct BufferSpec {
  /// How long the array is: one element for each position of the level, one for each parent, one more than that, for
  /// each parent as many as hold a bit for each coordinate, or unknown.
  enum Length { Unknown, Positions, Parents, Boundaries, Bits };

  llvm::StringRef name;
  mlir::Type elementType;
  Length length = Unknown;
  bool isUnsigned = false; // all its bits are magnitude
};

/// A coordinate, whether the position holds an entry (null when it always does), and what the next position must know.
struct Coordinate {
  mlir::Value crd;
  mlir::Value valid;
  llvm::SmallVector<mlir::Value> state = {};
};

/// Implemented by the pass that lowers levels, once for each level.
class LevelBuilder {
public:
  LevelBuilder(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}
  virtual ~LevelBuilder();

  /// The level whose code is emitted: its digits, its extent and its coordinate.
  virtual LevelAttr getLevel() = 0;

  /// The signless type of all positions, coordinates and sizes.
  virtual mlir::Type indexType() = 0;
  virtual mlir::Value constant(int64_t value) = 0;
  /// An element of this level's array, extended or truncated to `indexType`.
  virtual mlir::Value load(llvm::StringRef buffer, mlir::Value index) = 0;
  /// How many coordinates the level has: the product of its digits' extents.
  virtual mlir::Value size() = 0;
  /// Positions under each parent when they are known at run time only.
  virtual mlir::Value width() = 0;
  /// The operation in whose symbol table the kinds of users stand.
  virtual mlir::Operation *symbols() = 0;
  /// What a method of the level's kind answers, whose name is `kind`: its code is put here.
  llvm::SmallVector<mlir::Value> call(mlir::FlatSymbolRefAttr kind, llvm::StringRef method, mlir::ValueRange arguments);

  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LEVELBUILDER_H
