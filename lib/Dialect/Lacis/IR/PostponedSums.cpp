// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums of a rolled loop that can be complete one round later than they begin.
#include "lacis/Dialect/Lacis/IR/PostponedSums.h"

#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/Product.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

static Block *bodyOf(Operation *loop) { return &loop->getRegion(0).front(); }

SmallVector<LoopOpInterface> lacis::loopsOfRound(LoopOpInterface round) {
  SmallVector<LoopOpInterface> found;
  for (Operation *around = round;; around = found.back()) {
    auto inside = bodyOf(around)->getOps<LoopOpInterface>();
    if (!llvm::hasSingleElement(inside))
      return found;
    LoopOpInterface only = *inside.begin(); // loops of a statement begin with the rows
    if (letterOf(only.getName()) != letterOf(round.getName()))
      return found;
    found.push_back(only);
  }
}

static Block *statementsOf(LoopOpInterface round) {
  SmallVector<LoopOpInterface> inside = loopsOfRound(round);
  return bodyOf(inside.empty() ? round : inside.back());
}

std::optional<CarriedSum> lacis::carriedSum(LoopOpInterface round, Value tensor) {
  WriteOp write;
  LoopOp statement;
  for (Operation *user : tensor.getUsers()) {
    if (!round->isProperAncestor(user))
      continue;
    auto own = dyn_cast_or_null<LoopOp>(statementsOf(round)->findAncestorOpInBlock(*user));
    if (!own || (statement && own != statement) || (isa<WriteOp>(user) && write))
      return std::nullopt;
    statement = own;
    if (auto found = dyn_cast<WriteOp>(user))
      write = found;
  }
  auto sum = write ? write.getValue().getDefiningOp<LoopOp>() : LoopOp();
  return sum && reductionOf(sum) == Reduction::Add ? std::optional(CarriedSum{tensor, statement, sum}) : std::nullopt;
}

bool lacis::changesInRound(Value number, LoopOpInterface round) {
  SmallVector<LoopOpInterface> loops = loopsOfRound(round);
  loops.push_back(round);
  return followsFrom(number, [&](Value from) {
    auto own = dyn_cast<BlockArgument>(from);
    return own && llvm::any_of(loops, [&](Operation *loop) { return own.getOwner() == bodyOf(loop); });
  });
}

static bool isOfRound(ReadOp read, LoopOpInterface round) {
  return llvm::any_of(read.getIndices(), [&](Value index) { return changesInRound(index, round); });
}

SmallVector<Value> lacis::guardsAround(Operation *op) {
  SmallVector<Value> found;
  for (auto guard = dyn_cast<scf::IfOp>(op->getParentOp()); guard; guard = dyn_cast<scf::IfOp>(guard->getParentOp()))
    found.insert(found.begin(), guard.getCondition());
  return found;
}

bool lacis::sharesRounds(LoopOp rows, LoopOpInterface round) {
  auto isOfRows = [&](Value number) { return followsFrom(number, rows.getCoordinate()); };
  auto positions = dyn_cast<LevelLoopOp>(*round);
  Value length = positions ? positions.getParent() : cast<LoopOp>(*round).getUpper();
  return !isOfRows(length) && llvm::none_of(guardsAround(round), isOfRows);
}

/// How many factors of products are read of the operand.
static int64_t countFactors(LoopOpInterface round, Value operand) {
  int64_t count = 0;
  round->walk([&](LoopOp loop) {
    arith::MulFOp product = factorsOf(loop);
    for (Value factor : product ? ValueRange(product->getOperands()) : ValueRange())
      if (ReadOp read = operandOf(factor))
        count += read.getTensor() == operand;
  });
  return count;
}

/// A vector along the columns comes with the box of its own statement's first operand, and is read before the product.
static bool readsVectors(LoopOp statement) {
  return statement
      ->walk([](ReadOp read) {
        bool isVector = isa<BlockArgument>(read.getTensor()) && !read->getParentOfType<LoopOp>().getReduce();
        return isVector ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// One of what its round made and of an operand, added to what the tensor has.
static bool canWait(LoopOpInterface round, CarriedSum own) {
  arith::MulFOp product = factorsOf(own.sum);
  if (!product || matchPattern(own.sum.getInits()[0], m_AnyZeroFloat()))
    return false;
  ReadOp left = operandOf(product.getLhs()), right = operandOf(product.getRhs());
  if (!left == !right)
    return false;
  ReadOp operand = left ? left : right;
  Value row = own.statement.getCoordinate();
  bool hasRows = llvm::any_of(operand.getIndices(), [&](Value index) { return followsFrom(index, row); });
  return !hasRows && isOfRound(operand, round) && countFactors(round, operand.getTensor()) == 1 &&
         !readsVectors(own.statement);
}

/// Does a round multiply operands of which it brings one?
static bool multipliesOperands(LoopOpInterface round) {
  return round
      ->walk([&](LoopOp loop) {
        arith::MulFOp product = factorsOf(loop);
        ReadOp left = product ? operandOf(product.getLhs()) : ReadOp();
        ReadOp right = product ? operandOf(product.getRhs()) : ReadOp();
        bool isIt = left && right && (isOfRound(left, round) || isOfRound(right, round));
        return isIt ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isWrittenBefore(Value tensor, LoopOpInterface round) {
  return llvm::any_of(tensor.getUsers(), [&](Operation *user) {
    Operation *own = round->getBlock()->findAncestorOpInBlock(*user);
    return isa<WriteOp>(user) && own && own->isBeforeInBlock(round);
  });
}

static LevelAttr levelOf(LevelLoopOp loop) { return formatOf(loop.getTensor()).getLevels()[loop.getLevel()]; }

SmallVector<CarriedSum> lacis::sumsToPostpone(LoopOpInterface round) {
  llvm::SetVector<Value> tensors;
  round->walk([&](WriteOp write) {
    if (isWrittenBefore(write.getTensor(), round))
      tensors.insert(write.getTensor());
  });
  SmallVector<CarriedSum> found;
  for (Value tensor : tensors)
    if (std::optional<CarriedSum> own = carriedSum(round, tensor); own && canWait(round, *own))
      found.push_back(*own);
  // A round may not be known before the one ahead of it, or be none.
  auto positions = dyn_cast<LevelLoopOp>(*round);
  bool isKnown = !positions || (isStateless(positions) && !levelOf(positions).getCoordinate().isPadded());
  return isKnown && multipliesOperands(round) ? found : SmallVector<CarriedSum>();
}
