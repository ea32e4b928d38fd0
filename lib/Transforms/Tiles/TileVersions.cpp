// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tiles that are compiled for several numbers of columns: items with fewer multiply fewer.
#include "TileVersions.h"

#include "RoleItems.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"

using namespace mlir;
using namespace lacis;

static VersionOp versionOf(Value condition) {
  VersionOp found;
  (void)followsFrom(condition, [&](Value from) { return bool(found = from.getDefiningOp<VersionOp>()); });
  return found;
}

/// The columns of a part, of which `if part < version` counts as many as a version has.
static int64_t widthOfParts(VersionOp version, TileVariance &variance) {
  for (Operation *user : version->getUsers())
    if (auto comparison = dyn_cast<arith::CmpIOp>(user); comparison && !variance.of(comparison).empty())
      return neighboursOf(comparison, variance.of(comparison)[0]);
  return 0;
}

TileVersions TileVersions::find(LoopOp groups, TileVariance &variance) {
  TileVersions found;
  found.variance = &variance;
  llvm::SetVector<Value> tensors; // that statements of a version write
  groups->walk([&](scf::IfOp guard) {
    VersionOp version = versionOf(guard.getCondition());
    if (!version || variance.of(guard.getCondition()).empty())
      return;
    found.version = version;
    guard->walk([&](WriteOp write) { tensors.insert(write.getTensor()); });
  });
  if (found.version)
    found.width = widthOfParts(found.version, variance);
  groups->walk([&](WriteOp write) {
    std::optional<TileVariance::Place> place = variance.placeOf(write.getIndices().back());
    if (tensors.contains(write.getTensor()) && place && place->coordinate)
      found.columns.push_back(place->coordinate);
  });
  return found;
}

LogicalResult TileVersions::emit(OpBuilder &b, ArrayRef<StagedBox *> rings, RoleScalars &scalars,
                                 llvm::function_ref<LogicalResult(OpBuilder &)> item) {
  return version ? emitUpTo(b, version.getNumbers().size() - 1, rings, scalars, item) : item(b);
}

/// if (a smaller version has room): that one; else: this.
LogicalResult TileVersions::emitUpTo(OpBuilder &b, size_t number, ArrayRef<StagedBox *> rings, RoleScalars &scalars,
                                     llvm::function_ref<LogicalResult(OpBuilder &)> item) {
  Location loc = version.getLoc();
  ArrayRef<int64_t> numbers = version.getNumbers();
  auto emitOwn = [&](OpBuilder &in) {
    scalars.map(version, arith::ConstantIndexOp::create(in, loc, numbers[number]));
    for (Value coordinate : columns)
      variance->resize(coordinate, numbers[number] * width);
    return item(in);
  };
  if (number == 0)
    return emitOwn(b);
  LogicalResult done = success();
  Value less = arith::ConstantIndexOp::create(b, loc, numbers[number - 1]), least = scalars.get(b, version.getLeast());
  Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, least, less);
  chooseBranch(b, loc, fits, rings, scalars, [&](OpBuilder &in, bool isFirst) {
    if (succeeded(done))
      done = isFirst ? emitUpTo(in, number - 1, rings, scalars, item) : emitOwn(in);
  });
  return done;
}
