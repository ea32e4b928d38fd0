// SPDX-License-Identifier: Apache-2.0
/// \file
/// What `split_nnz` made of the rows that several shares meet, found again by the strategies of `race`.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_SHAREPARTS_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_SHAREPARTS_H

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lacis {

/// A share walks the rows it meets; of each it finishes what lies in it whole, and leaves a part of the others.
struct ShareParts {
  WriteOp part;            // of a row, into the workspace, at (share, 1 where the row begins in it, other loops)
  mlir::scf::IfOp choice;  // a row that lies in the share whole, else a part of one
  LoopOp rows;             // that the share meets
  mlir::arith::AddIOp row; // the number of such a row: that of the first, plus the coordinate of `rows`
  ReadOp read;             // of a part, in the nest after the shares
  LoopOp sum;              // of the parts, there

  WorkspaceOp workspace() { return part.getTensor().getDefiningOp<WorkspaceOp>(); }
  OwnerOp firstRow() { return row.getLhs().getDefiningOp<OwnerOp>(); }
};

/// The parts that the shares of the nest leave, or nothing where there are none, or a strategy has taken them.
std::optional<ShareParts> partsOf(LoopOp nest);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_SHAREPARTS_H
