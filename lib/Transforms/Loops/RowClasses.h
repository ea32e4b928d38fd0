// SPDX-License-Identifier: Apache-2.0
/// \file
/// Row classes: a sum of formats each of whose rows lies in one part; each part has a nest for its rows.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_ROWCLASSES_H
#define LACIS_LIB_TRANSFORMS_LOOPS_ROWCLASSES_H

#include "ListedRows.h"

#include "llvm/ADT/SetVector.h"

namespace lacis {

/// Why the rows of the operand, a part of a sum, are no classes of an output with these axes; or nothing.
std::string objectionToClasses(mlir::OpOperand &operand, llvm::ArrayRef<unsigned> axes);
/// What speaks for classes of such an operand, or nothing: rules that tell strips apart and no rows.
std::string reasonForClasses(mlir::OpOperand &operand, unsigned axis);
/// Do the rows that a part has lie together in the output, and in what is read for them?
bool keepsRowsTogether(mlir::linalg::GenericOp generic, mlir::OpOperand &operand, unsigned axis);
/// The part is walked by what lists its rows, or has all rows: `lacis.class` of the generic says which.
void chooseClass(mlir::linalg::GenericOp generic, mlir::OpOperand &operand, unsigned axis);

/// for long.p in rows(long): i = row p; y[i] = finish(init + long);  for i in no other part: y[i] = finish(init + short)
///
/// The nest that others may join is the last. It has the rows of no other part, where the levels of a part have all rows;
/// else it is that of the last part, and a nest before all writes rows as if they were empty. Where the rules name strips,
/// each strip is a group of such nests that adds to what is there, and a nest behind all finishes the sums.
class RowClasses {
public:
  RowClasses(mlir::linalg::GenericOp root, OwnedNest::Letters letters, mlir::BlockArgument output,
             const llvm::StringMap<mlir::Value> &sizes)
      : root(root), letters(letters), output(output), sizes(sizes) {}
  /// Finds the parts among the generics; false where there are none.
  bool find(llvm::ArrayRef<mlir::linalg::GenericOp> generics);
  llvm::LogicalResult build(mlir::OpBuilder &b);

private:
  /// Parts that share no row.
  struct Group {
    int64_t number;                              // of its first part
    llvm::SmallVector<mlir::OpOperand *> listed; // in the order of the parts
    mlir::OpOperand *rest;                       // the part that has all rows, or null
  };

  llvm::LogicalResult buildGroup(mlir::OpBuilder &b, const Group &group, RunningSum *sum,
                                 llvm::SmallVectorImpl<mlir::Attribute> &names);

  mlir::linalg::GenericOp root, first, last; // the products of the parts, from the first to the last
  OwnedNest::Letters letters;
  mlir::BlockArgument output;
  const llvm::StringMap<mlir::Value> &sizes;
  llvm::SmallVector<Group, 1> groups;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_ROWCLASSES_H
