// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compares the guards around the writes of a tile with those around its reads.
#include "LaneTiles.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

namespace {
/// An access, by its coordinate along the axis, and the conditions around it inside of the tile's block.
struct Access {
  Value coordinate;
  SmallVector<Value> conditions;
};
} // namespace

/// All of a conjunction.
static void addConditions(Value condition, SmallVectorImpl<Value> &found) {
  auto both = condition.getDefiningOp<arith::AndIOp>();
  if (!both)
    return found.push_back(condition);
  addConditions(both.getLhs(), found);
  addConditions(both.getRhs(), found);
}

/// Nothing of what stands in an alternative, and of a write at another place than a loop's coordinate.
static std::optional<Access> accessOf(WorkspaceOp tile, Operation *user, unsigned axis) {
  auto read = dyn_cast<ReadOp>(user);
  auto write = dyn_cast<WriteOp>(user);
  if (!read && !write)
    return std::nullopt;
  Access found{read ? read.getIndices()[axis] : write.getIndices()[axis], {}};
  if (write && !isa<BlockArgument>(found.coordinate))
    return std::nullopt;
  for (Operation *inside = user; inside->getBlock() != tile->getBlock(); inside = inside->getParentOp())
    if (auto guard = dyn_cast<scf::IfOp>(inside->getParentOp())) {
      if (inside->getBlock() != guard.thenBlock())
        return std::nullopt;
      addConditions(guard.getCondition(), found.conditions);
    }
  return found;
}

/// The letter that a size is of, or null. All that has a letter has one size there: each launch sees to it.
static Attribute letterOf(Value size) {
  auto dim = size.getDefiningOp<tensor::DimOp>();
  std::optional<unsigned> axis = dim ? axisOf(dim) : std::nullopt;
  return axis ? letterOf(dim.getSource(), *axis) : Attribute();
}

/// Is `one` what `other` is, where `other` has `to` in the place of `from`?
static bool isSame(Value one, Value other, Value from, Value to) {
  auto isOfOneLetter = [](Value first, Value second) {
    Attribute letter = letterOf(first);
    return letter && letter == letterOf(second);
  };
  auto alike = [&](Value first, Value second) -> std::optional<bool> {
    return isOfOneLetter(first, second) ? std::optional(true) : std::nullopt;
  };
  return isSameValue(one, other, [&](Value first, Value second) -> std::optional<bool> {
    if (first == from)
      return isSameValue(to, second, alike);
    if (first == second)
      return from == to || !followsFrom(first, from);
    return alike(first, second);
  });
}

/// Do the conditions of lanes around the write stand around the read?
static bool coversGuards(const Access &write, const Access &read) {
  auto isKnown = [&](Value condition) {
    return llvm::any_of(read.conditions, [&](Value known) {
      return isSame(condition, known, write.coordinate, read.coordinate);
    });
  };
  return llvm::all_of(write.conditions, [&](Value condition) {
    return !followsFrom(condition, write.coordinate) || isKnown(condition);
  });
}

static bool coversGuards(WorkspaceOp tile, unsigned axis) {
  SmallVector<Access> writes, reads;
  for (Operation *user : tile->getUsers()) {
    std::optional<Access> access = accessOf(tile, user, axis);
    if (!access)
      return false;
    (isa<ReadOp>(user) ? reads : writes).push_back(*access);
  }
  return llvm::all_of(writes, [&](const Access &write) {
    return llvm::all_of(reads, [&](const Access &read) { return coversGuards(write, read); });
  });
}

LaneTiles::LaneTiles(Operation *function) {
  function->walk([&](WorkspaceOp tile) {
    for (unsigned axis = 0; axis < tile.getSizes().size(); ++axis)
      if (coversGuards(tile, axis))
        known.insert({tile, axis});
  });
}
