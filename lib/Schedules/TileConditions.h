// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a product must be for tensor cores, in words: each condition says why a nest stays in plain loops.
#ifndef LACIS_LIB_SCHEDULES_TILECONDITIONS_H
#define LACIS_LIB_SCHEDULES_TILECONDITIONS_H

#include "Tiles.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

namespace lacis {

/// May products of float32 take TF32 (`lacis.tf32`)?
bool takesTf32(Nest &nest);

/// A loop over rows. `unit` is the number of rows in one round, `rounds` the number of rounds (0: unknown).
struct RowLoop {
  std::string name;
  int64_t unit, rounds;
};

/// The loops over the digits of the rows. All but the first have a constant trip count.
llvm::SmallVector<RowLoop> rowLoops(llvm::ArrayRef<LoopOp> loops);
/// The loops over the digits of `letter` in the chain.
llvm::SmallVector<LoopOp> loopsOf(llvm::ArrayRef<LoopOp> chain, llvm::StringRef letter);
/// Of a sampled product, those between the entries and the sum.
llvm::SmallVector<LoopOp> loopsOfBlock(const Product &product, llvm::StringRef letter);
/// The loop over the columns of a stored block, the innermost of the sum; null where the sum is one loop.
LoopOp depthLoop(const Product &product);

/// Why tiles cannot take the product, or nothing where they can. `hasSizes`: there are tiles for its blocks.
std::string objectionToTiles(Nest &nest, Product &product, bool hasSizes);

} // namespace lacis

#endif // LACIS_LIB_SCHEDULES_TILECONDITIONS_H
