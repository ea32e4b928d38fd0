// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: for j in row(i)  -->  for i_j0 in ceil(entries / factor): for i in the rows it meets: for j in its share of row(i)
///
/// A row inside one share is finished there. Of a row that several shares meet, each leaves its part in a workspace, and a
/// nest after the first adds the parts in their order and finishes the row; so it does with rows without entries.
#include "EntryShares.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> SplitNnzStepAttr::namedLoops() const {
  auto [rows, entries] = getLoop().rsplit('_');
  return {rows, entries};
}

/// `value` changes nothing where `op` adds it.
static bool isNeutral(Operation *op, Value value) {
  Attribute constant;
  if (!op || op->getNumOperands() != 2 || !matchPattern(value, m_Constant(&constant)))
    return false;
  if (isa<arith::AddFOp>(op))
    return matchPattern(value, m_AnyZeroFloat());
  std::optional<TypedAttr> neutral = arith::getNeutralElement(op);
  return neutral && *neutral == constant;
}

/// Only guards stand between the entries and the body of the nest.
static bool isWholeSum(LevelLoopOp entries, Block *body) {
  Operation *parent = entries->getParentOp();
  while (isa<scf::IfOp>(parent) && parent->getNumResults() == 0 && parent->getBlock() != body)
    parent = parent->getParentOp();
  return parent == body->getParentOp() || parent->getBlock() == body;
}

std::string lacis::objectionToShares(LoopOp rows, LevelLoopOp entries) {
  std::string outer = rows.getName().str(), inner = entries.getName().str();
  SmallVector<LoopOp> chain = perfectChain(outermostLoop(rows));
  auto row = entries.getParent().getDefiningOp<LocateOp>();
  bool ordered = entries.getLevel() == 1 && row && row.getLevel() == 0 && row.getDigits().size() == 1 &&
                 row.getDigits()[0] == rows.getCoordinate() && rows.getNumResults() == 0;
  if (!ordered || !llvm::is_contained(chain, rows))
    return "the entries of '" + inner + "' do not lie in the order of loop '" + outer + "'; see walk";
  auto extent = formatOf(entries.getTensor()).getLevels()[1].getExtent();
  if (!extent.hasOwner())
    return "level kind '" + extent.getMnemonic() + "' does not tell the row of a position";
  Operation *combiner = combinerOf(entries);
  if (!isWholeSum(entries, chain.back().getBlock()) || !combiner || !isNeutral(combiner, entries.getInits()[0]))
    return "the entries of '" + inner + "' are not the whole sum of an output element, from its neutral element on";
  return "";
}

LogicalResult SplitNnzStepAttr::apply(Nest &nest, Location loc) const {
  auto [rowName, entryName] = getLoop().rsplit('_');
  if (entryName.empty())
    return emitError(loc) << "split_nnz: '" << getLoop() << "' names one loop; the loops of rows and entries are meant, "
                          << "joined as in 'i_j'";
  FailureOr<LoopOp> rows = nest.requireFree(rowName, "split_nnz", loc);
  if (failed(rows))
    return failure();
  SmallVector<Operation *> found = nest.findAll(entryName);
  auto entries = found.size() == 1 ? dyn_cast<LevelLoopOp>(found[0]) : LevelLoopOp();
  if (!entries)
    return emitError(loc) << "split_nnz: loop '" << entryName << "' does not walk the positions of one level";
  if (getFactor() <= 0)
    return emitError(loc) << "split_nnz: factor " << getFactor() << " of loop '" << getLoop() << "' must be positive";
  if (std::string why = objectionToShares(*rows, entries); !why.empty())
    return emitError(loc) << "split_nnz: " << why;
  EntryShares(*rows, entries, combinerOf(entries), getFactor(), loc).run();
  return success();
}
