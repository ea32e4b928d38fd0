// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ways to bring together what iterations of a loop add to one element of the output; each is one file.
#ifndef LACIS_DIALECT_LACIS_IR_RACESTRATEGY_H
#define LACIS_DIALECT_LACIS_IR_RACESTRATEGY_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// A strategy of `race`, as its file registers it.
struct RaceStrategy {
  llvm::StringRef name;
  /// Why it would not do at the loop, in words that follow "race: "; empty where it would.
  std::string (*objection)(LoopOp loop, Nest &nest);
  /// Rewrites the nest around a loop to which there is no objection; the loop that takes its place keeps its name.
  void (*apply)(LoopOp loop, Nest &nest, mlir::Location loc);
  /// It works inside groups of iterations: what they leave is brought together by another strategy.
  bool inGroups = false;
};

/// Adds a strategy to those there are; true, for a static initialiser.
bool registerRaceStrategy(RaceStrategy strategy);

/// The strategy of that name, or null.
const RaceStrategy *findRaceStrategy(llvm::StringRef name);

/// The names of all, in the order of the alphabet: 'atomic', 'order'.
std::string raceStrategyNames();

/// The names of those that would do at the loop, or 'none'.
std::string strategiesFor(LoopOp loop, Nest &nest);

/// Iterations of the loop meet in one element of the output: they hold parts of rows, or carry a sum.
bool meetInOutput(LoopOp loop);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_RACESTRATEGY_H
