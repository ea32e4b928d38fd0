// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: for j in row(i)  -->  for i_j0 in ceil(entries / factor): for i in the rows it meets: for j in its share of row(i)
///
/// A row inside one share is finished there. Of a row that several shares meet, each leaves its part in a workspace, and a
/// nest after the first adds the parts in their order and finishes the row; so it does with rows without entries.
///
/// Of the positions under one parent: for j in row(i)  -->  for j0 in ceil(entries / factor): for j1 in factor, or
/// for j0 in parts: for j1 in its part of row(i).
#include "EntryShares.h"
#include "PositionUnits.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

SmallVector<StringRef> SplitNnzStepAttr::namedLoops() const {
  SmallVector<StringRef> names;
  for (auto [rows, entries] : joinedIn(getLoop()))
    names.append({rows, entries});
  return names;
}

/// Only guards stand between the entries and the body of the nest.
static bool isWholeSum(LevelLoopOp entries, Block *body) {
  Operation *parent = entries->getParentOp();
  while (isa<scf::IfOp>(parent) && parent->getNumResults() == 0 && parent->getBlock() != body)
    parent = parent->getParentOp();
  return parent == body->getParentOp() || parent->getBlock() == body;
}

/// Position n of the level above the entries is round n of the loop: a coordinate of a dense level, or row n of a list.
static bool isRowOf(LevelLoopOp entries, LoopOp rows, unsigned first) {
  if (entries.getLevel() != first + 1)
    return false;
  if (auto row = entries.getParent().getDefiningOp<LocateOp>())
    return row.getLevel() == first && row.getDigits().size() == 1 && row.getDigits()[0] == rows.getCoordinate();
  auto row = entries.getParent().getDefiningOp<arith::AddIOp>();
  auto list = row ? row.getLhs().getDefiningOp<BoundsOp>() : BoundsOp(); // of the root: they begin at 0
  return first == 0 && list && list.getLevel() == 0 && list.getTensor() == entries.getTensor() &&
         row.getLhs() == list.getLo() && row.getRhs() == rows.getCoordinate();
}

std::string lacis::objectionToShares(LoopOp rows, LevelLoopOp entries) {
  std::string outer = rows.getName().str(), inner = entries.getName().str();
  SmallVector<LoopOp> chain = perfectChain(outermostLoop(rows));
  FormatAttr format = formatOf(entries.getTensor());
  unsigned first = format.getNumBatchLevels();
  bool ordered = isRowOf(entries, rows, first) && rows.getNumResults() == 0;
  if (!ordered || !llvm::is_contained(chain, rows))
    return "the entries of '" + inner + "' do not lie in the order of loop '" + outer + "'; see walk";
  LevelAttr level = format.getPatternLevels()[1];
  auto extent = level.getExtent();
  if (!extent.hasOwner())
    return "level kind '" + extent.getMnemonic() + "' does not tell the row of a position";
  if (!level.isRandomAccess())
    return "level kind '" + level.getKindName() + "' does not list coordinates, of which a share takes any";
  std::optional<Reduction> kind = reductionOf(entries);
  if (!isWholeSum(entries, chain.back().getBlock()) || !kind || !isNeutral(*kind, entries.getInits()[0]))
    return "the entries of '" + inner + "' are not the whole sum of an output element, from its neutral element on";
  return "";
}

/// The positions under one parent, in strips or in parts.
static LogicalResult cutPositions(LevelLoopOp entries, SplitNnzStepAttr step, Location loc) {
  if (std::string why = objectionToCuts(entries); !why.empty())
    return emitError(loc) << "split_nnz: " << why;
  if (step.getParts())
    cutParts(entries, *step.getParts(), loc);
  else
    cutStrips(entries, *step.getFactor(), loc);
  return success();
}

/// The size of the shares that an operand owns its rows in (see own), which are cut from the beginning; or null.
static arith::ConstantIndexOp sizeOfShares(Nest &nest, StringRef loop) {
  for (auto size : nest.getFunction().getBody().getOps<arith::ConstantIndexOp>())
    if (auto name = size->getAttrOfType<StringAttr>("lacis.share"); name && name.getValue() == loop)
      return size;
  return {};
}

LogicalResult SplitNnzStepAttr::apply(Nest &nest, Location loc) const {
  if (getFactor().has_value() == getParts().has_value())
    return emitError(loc) << "split_nnz: loop '" << getLoop() << "' is cut into shares of 'factor' entries, or into 'parts' of "
                          << "each row: say one of the two";
  int64_t number = getFactor() ? *getFactor() : *getParts();
  if (number <= 0)
    return emitError(loc) << "split_nnz: " << (getFactor() ? "factor " : "parts ") << number << " of loop '" << getLoop()
                          << "' must be positive";
  arith::ConstantIndexOp shares = sizeOfShares(nest, getLoop());
  SmallVector<Operation *> whole = nest.findAll(getLoop());
  if (!shares && whole.size() == 1 && isa<LevelLoopOp>(whole[0]))
    return cutPositions(cast<LevelLoopOp>(whole[0]), *this, loc);
  if (getParts())
    return emitError(loc) << "split_nnz: 'parts' are of the positions under one parent, and '" << getLoop()
                          << "' names no loop over such; 'factor' says how many entries a share of all has";
  if (shares) {
    shares.setValueAttr(IntegerAttr::get(IndexType::get(getContext()), number));
    return success();
  }
  auto [rowName, entryName] = getLoop().rsplit('_');
  for (auto [outer, inner] : joinedIn(getLoop()))
    if (!nest.findAll(outer).empty() && !nest.findAll(inner).empty())
      std::tie(rowName, entryName) = std::pair(outer, inner);
  if (entryName.empty())
    return emitError(loc) << "split_nnz: '" << getLoop() << "' names no loop over positions; one is meant, 'j', or the loops of rows "
                          << "and entries, joined as in 'i_j'";
  FailureOr<LoopOp> rows = nest.requireFree(rowName, "split_nnz", loc);
  if (failed(rows))
    return failure();
  SmallVector<Operation *> found = nest.findAll(entryName);
  auto entries = found.size() == 1 ? dyn_cast<LevelLoopOp>(found[0]) : LevelLoopOp();
  if (!entries)
    return emitError(loc) << "split_nnz: loop '" << entryName << "' does not walk the positions of one level";
  if (rows->getName() == rowName && entries.getName() != entryName)
    return emitError(loc) << "split_nnz: loop '" << rowName << "' is that of all parts of a sum; the entries of one part, '"
                          << entries.getName() << "', are cut below it";
  if (std::string why = objectionToShares(*rows, entries); !why.empty())
    return emitError(loc) << "split_nnz: " << why;
  EntryShares(*rows, entries, number, joined(getContext(), rows->getLoopName(), entries.getLoopName()) + "0", loc).run();
  return success();
}
