// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which elements of a dense tensor the threads of a block, or one of them, read in one round of a loop.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_FOOTPRINT_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_FOOTPRINT_H

#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include <optional>

namespace lacis {

/// An index as the threads see it in one round of `round`: what is the same for all of them, plus lo .. hi.
struct IndexRange {
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> common; // values and their factors
  int64_t lo = 0, hi = 0;
};

class Footprint {
public:
  explicit Footprint(mlir::Operation *round, bool ofThread = false) : round(round), ofThread(ofThread) {}

  /// The value is the same in a whole round, for all threads of a block or for the one.
  bool isCommon(mlir::Value value) const;
  /// The range of an index, or nothing where it is not known.
  std::optional<IndexRange> rangeOf(mlir::Value index) const;
  /// What an index adds to the common part.
  mlir::Value offset(mlir::OpBuilder &b, mlir::Value index) const;
  /// The sum of the common part, made again where the round begins.
  mlir::Value begin(mlir::OpBuilder &b, const IndexRange &range) const;
  /// A common value, made again at the beginning of the round where it is made inside.
  mlir::Value again(mlir::OpBuilder &b, mlir::Value value) const;

private:
  std::optional<int64_t> tripInRound(mlir::Value value) const;

  mlir::Operation *round;
  bool ofThread;
};

/// Both ranges have the same common part.
bool haveSameBegin(const IndexRange &a, const IndexRange &b);

/// The loop runs on a thread, warp or lane of a block.
bool isOnThreads(LoopOp loop);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_FOOTPRINT_H
