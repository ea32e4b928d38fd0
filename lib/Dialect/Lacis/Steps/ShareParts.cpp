// SPDX-License-Identifier: Apache-2.0
/// \file
/// What `split_nnz` made of the rows that several shares meet, found again by the strategies of `race`.
#include "ShareParts.h"

using namespace mlir;
using namespace lacis;

/// The number of the row at the coordinate of `rows`, or null.
static arith::AddIOp rowAt(LoopOp rows) {
  for (Operation *user : rows.getCoordinate().getUsers())
    if (auto row = dyn_cast<arith::AddIOp>(user); row && row.getLhs().getDefiningOp<OwnerOp>())
      return row;
  return {};
}

std::optional<ShareParts> lacis::partsOf(LoopOp nest) {
  std::optional<ShareParts> found;
  nest->walk([&](WriteOp write) {
    auto workspace = write.getTensor().getDefiningOp<WorkspaceOp>();
    auto choice = dyn_cast<scf::IfOp>(write->getParentOp());
    auto rows = write->getParentOfType<LoopOp>();
    if (!workspace || !choice || write->getBlock() != choice.elseBlock() || !rowAt(rows))
      return;
    for (Operation *user : workspace->getUsers())
      if (auto read = dyn_cast<ReadOp>(user))
        if (auto sum = dyn_cast<LoopOp>(read->getParentOp()); sum && sum.getNumResults() == 1)
          found = ShareParts{write, choice, rows, rowAt(rows), read, sum};
  });
  return found;
}
