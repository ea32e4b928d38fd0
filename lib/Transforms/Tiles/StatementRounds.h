// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rounds of a consumer: statements on the tiles that a round brings, and what they hand on to the next.
#ifndef LACIS_LIB_TRANSFORMS_TILES_STATEMENTROUNDS_H
#define LACIS_LIB_TRANSFORMS_TILES_STATEMENTROUNDS_H

#include "TileStatements.h"

namespace lacis {

/// The loop over the positions of a row, or over parts of a dense axis; where a stored block has the columns of several
/// tiles, or a level below has positions, loops inside make a round of each.
struct Rounds {
  LoopOpInterface loop;
  llvm::SmallVector<LoopOpInterface> inside; // outermost first

  /// The loops that a nest has around the statements of a round.
  static Rounds of(LoopOpInterface loop);
  mlir::Block *statements() { return &(inside.empty() ? loop : inside.back())->getRegion(0).front(); }
  bool contain(LoopOp other) { return other == loop || llvm::is_contained(inside, other); }
  /// Is the number of a round enough to know its place?
  bool areCounted() { return llvm::all_of(inside, llvm::IsaPred<LoopOp>); }
  /// The loop, or null where it is over parts of a dense axis.
  LevelLoopOp positions() { return mlir::dyn_cast<LevelLoopOp>(*loop); }
  /// How many neighbouring positions of an execution layout are one round, whose columns stand side by side in a tile.
  int64_t gathered();
  /// The loops in a role; they carry the places that rounds fill, and `more`. The innermost is answered.
  mlir::Operation *open(mlir::OpBuilder &b, StagedBoxes &boxes, RoleScalars &scalars, mlir::ValueRange more);
  /// Ends them with what the last round has left; answers what they have left.
  mlir::ValueRange close(mlir::OpBuilder &b, mlir::Operation *innermost, mlir::ValueRange values);
  /// The bounds of the positions, and how many rounds they are.
  struct Span {
    mlir::Value lo, hi, count;
  };
  Span span(mlir::OpBuilder &b, RoleScalars &scalars);
  /// The positions and the coordinates of a round, of which those before it are counted.
  void placeAt(mlir::OpBuilder &b, RoleScalars &scalars, const Span &span, mlir::Value number);

private:
  llvm::SmallVector<mlir::Value> placeOf(mlir::OpBuilder &b, const Span &span, mlir::Value position);
  llvm::SmallVector<mlir::Value> inOneWord(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> words);
  void gatherAt(mlir::OpBuilder &b, RoleScalars &scalars, const Span &span, mlir::Value number);
};

/// A loop of the nest once more in a role, which maps its numbers.
mlir::Operation *openAgain(mlir::OpBuilder &b, LoopOpInterface loop, RoleScalars &scalars, mlir::ValueRange carried);
/// A loop of one round where the condition holds, and of none elsewhere: it carries what a branch would.
LoopOp openOnce(mlir::OpBuilder &b, mlir::Location loc, const LoopName &name, mlir::Value condition,
                mlir::ValueRange carried);

class StatementRounds {
public:
  StatementRounds(Rounds rounds, StagedBoxes &boxes, RoleScalars &scalars, TileStatements &statements)
      : rounds(rounds), round(rounds.loop), loc(round.getLoc()), boxes(boxes), scalars(scalars),
        statements(statements) {}

  /// All rounds of a row. Of a skewed loop, products of one round wait for the next, and run beside its first ones.
  llvm::LogicalResult emit(mlir::OpBuilder &b);

private:
  void findStates();
  llvm::LogicalResult findPostponed();
  void keepParts(mlir::OpBuilder &b);
  void addUpParts(mlir::OpBuilder &b);
  bool addsAlone();
  void complete(mlir::OpBuilder &b);
  llvm::LogicalResult emitInTurn(mlir::OpBuilder &b);
  llvm::LogicalResult emitSkewed(mlir::OpBuilder &b);
  llvm::LogicalResult emitRound(mlir::OpBuilder &b);
  llvm::LogicalResult emitInOrder(mlir::OpBuilder &b, llvm::ArrayRef<LoopOp> statements);
  LoopOp openLater(mlir::OpBuilder &b, const Rounds::Span &span);
  llvm::SmallVector<mlir::Value> carried(bool withPostponed);
  void setCarried(mlir::ValueRange values, bool withPostponed);

  Rounds rounds;
  LoopOpInterface round;
  mlir::Location loc;
  StagedBoxes &boxes;
  RoleScalars &scalars;
  TileStatements &statements;
  llvm::SetVector<mlir::Value> states; // tensors that rounds write and that hold something before the first
  llvm::SetVector<mlir::Value> parts;  // of these, sums that are added up at the end
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_STATEMENTROUNDS_H
