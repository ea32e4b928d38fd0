// SPDX-License-Identifier: Apache-2.0
/// \file
/// How loops find what follows from a binding.
#ifndef LACIS_DIALECT_LACIS_IR_BINDINGCODE_H
#define LACIS_DIALECT_LACIS_IR_BINDINGCODE_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

#include "mlir/IR/Builders.h"

namespace lacis {

/// What a pass may ask a binding. `sizes` and `known` have an element for each name of the format.
class BindingCode {
public:
  using Values = llvm::ArrayRef<mlir::Value>;
  virtual ~BindingCode();

  /// A place among others: no axis follows from it.
  virtual bool isPosition() const { return false; }
  /// The array that holds the coordinate of an axis, each once, for each of its own; empty where there is none.
  virtual llvm::StringRef getArray() const { return ""; }
  /// The name that has as many coordinates.
  virtual std::optional<unsigned> getSizeName() const { return std::nullopt; }
  /// How many coordinates it has, by the sizes of the names before it.
  virtual mlir::Value emitSize(mlir::OpBuilder &b, mlir::Location loc, Values sizes) const = 0;
  /// The coordinate of `name`, which follows from `own` and what is known; it may lie outside of the axis.
  virtual mlir::Value emitSolve(mlir::OpBuilder &b, mlir::Location loc, unsigned name, mlir::Value own, Values known,
                                Values sizes) const {
    return {};
  }
};

/// Null of a binding that no loop solves: formats with a user's own are walked by their companions.
std::unique_ptr<BindingCode> codeOf(mlir::Attribute binding);
/// The one name that follows from a binding where `known` are known, or nothing.
std::optional<unsigned> determinedName(mlir::Attribute binding, llvm::ArrayRef<bool> known);

/// Where the coordinates of `axes` are known, a walk of the levels finds each other name once, by a level or through a
/// binding.
bool isFoundOnce(FormatAttr format, llvm::ArrayRef<unsigned> axes);
/// The full name of the array that binding `number` stores; empty where it stores none.
std::string bindingArray(FormatAttr format, unsigned number);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_BINDINGCODE_H
