// SPDX-License-Identifier: Apache-2.0
/// \file
/// Formats, their levels and bindings, and sums of formats.
#ifndef LACIS_DIALECT_LACIS_IR_LACISATTRS_H
#define LACIS_DIALECT_LACIS_IR_LACISATTRS_H

#include "lacis/Dialect/Lacis/IR/Digit.h"
#include "lacis/Dialect/Lacis/IR/LacisDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TensorEncoding.h"

#include "lacis/Dialect/Lacis/IR/MarkEnums.h.inc"

namespace lacis {

enum class SizeKind { Constant, Argument, Product, Sum, Min, CeilDiv, Within };

/// The unit is a block of a grid; it counts threads of a block, along an axis or all; it is a warp or a lane of one.
bool isBlock(ParallelUnit unit);
bool isThread(ParallelUnit unit);
bool isOfWarps(ParallelUnit unit);

} // namespace lacis

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h.inc"

namespace lacis {

/// An array of integers, or of values, that follows from a pattern; `sizes` are over the numbers of `DerivedSizes`.
struct DerivedArray {
  std::string name;
  mlir::Type dtype;
  std::optional<llvm::SmallVector<SizeAttr>> sizes; // none: not known before it is made
};

/// What arrays are derived from: a tensor of this format, or arrays `of` it.
struct DerivedSource {
  FormatAttr format;
  mlir::Type element;
  DerivedInterface of;
};

/// The arrays that a step makes from `source`, in order.
llvm::SmallVector<DerivedArray> arraysOf(DerivedInterface step, const DerivedSource &source);

/// The numbers that sizes of derived arrays are made of: the sizes of the axes, the stored blocks, the workers, and
/// counts that the pattern alone knows.
class DerivedSizes {
public:
  explicit DerivedSizes(FormatAttr format) : context(format.getContext()), rank(format.getAxes().size()) {}
  SizeAttr constant(int64_t number) const { return SizeAttr::get(context, number); }
  SizeAttr axis(unsigned axis) const { return SizeAttr::argument(context, axis); }
  SizeAttr slots() const { return SizeAttr::argument(context, rank); }
  SizeAttr workers() const { return SizeAttr::argument(context, rank + 1); }
  SizeAttr count(unsigned number) const { return SizeAttr::argument(context, rank + 2 + number); }

private:
  mlir::MLIRContext *context;
  int64_t rank;
};

/// The arrays of the bindings of a format and of its levels above the stored blocks.
struct FormatArrays {
  explicit FormatArrays(FormatAttr format);
  llvm::SmallVector<DerivedArray> arrays;
  SizeAttr positions;                 // of the last level
  llvm::SmallVector<SizeAttr> linked; // positions that are slots, in levels `link`
};

/// Reads `name = value`, a binding over the names before it.
mlir::Attribute parseBinding(mlir::AsmParser &parser, Names names);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LACISATTRS_H
