// SPDX-License-Identifier: Apache-2.0
/// \file
/// Left factors of products that are the same in all rounds, in registers.
///
/// From shared memory both factors of a product are read for each step of its sum; from registers one is not.
#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

/// Registers of a thread's 240 that accumulators and factors may have: others are numbers and places.
static constexpr int64_t kRegisters = 208, kThreads = 128;

/// What sums of products, tiles that several statements read, and one rounded factor leave; and the factors that stay.
int64_t TileStatements::registersLeft(Block &statements, llvm::SetVector<StagedBox *> &factors) {
  int64_t left = kRegisters, rounded = 0;
  llvm::SmallDenseMap<Value, std::pair<llvm::SmallPtrSet<Operation *, 4>, int64_t>> tiles; // who reads them; registers
  for (auto statement : statements.getOps<LoopOp>()) {
    row = statement.getCoordinate();
    statement->walk([&](LoopOp loop) {
      std::optional<Product> product = productOf(loop);
      if (!product)
        return;
      left -= variance.sizeOf(row) * variance.sizeOf(product->column) / kThreads;
      if (!product->left) // two halves a register
        rounded = std::max(rounded, variance.sizeOf(row) * variance.sizeOf(loop.getCoordinate()) / kThreads / 2);
      else if (!product->left->inRound)
        factors.insert(product->left);
    });
    statement->walk([&](ReadOp read) {
      ValueRange at = read.getIndices();
      if (!read.getTensor().getDefiningOp<WorkspaceOp>() || at.size() != 2 || read.use_empty())
        return;
      auto &[readers, registers] = tiles[read.getTensor()];
      readers.insert(statement);
      registers = variance.sizeOf(at[0]) * variance.sizeOf(at[1]) / kThreads;
    });
  }
  for (auto &[tensor, tile] : tiles)
    left -= tile.first.size() > 1 ? tile.second : 0;
  return left - rounded;
}

void TileStatements::holdFactors(OpBuilder &b, Block &round, int64_t taken) {
  bool hasMaximum = round.walk([](arith::MaximumFOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (hasMaximum) // its exponents and sums need the registers
    return;
  llvm::SetVector<StagedBox *> factors;
  int64_t left = registersLeft(round, factors) - taken;
  for (StagedBox *box : factors) {
    int64_t columns = box->tile.getColumns() * box->tile.getCount();
    int64_t registers = box->tile.getRows() * columns / kThreads / 2;
    if (registers > left)
      continue;
    left -= registers;
    auto type = AccType::get(b.getContext(), {box->tile.getRows(), columns}, box->tile.getElementType());
    box->held.front() = ReadTileOp::create(b, box->read.getLoc(), type, box->held.front(), box->first, UnitAttr());
  }
}
