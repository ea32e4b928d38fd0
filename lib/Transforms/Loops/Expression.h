// SPDX-License-Identifier: Apache-2.0
/// \file
/// The value of one element of an expression, as operations inside a nest.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_EXPRESSION_H
#define LACIS_LIB_TRANSFORMS_LOOPS_EXPRESSION_H

#include "LevelWalk.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace lacis {

/// The name of a loop of a generic: its letter in `lacis.loops`, else a, b, c, …
std::string letterName(mlir::linalg::GenericOp generic, unsigned dim);
/// How a generic brings what it makes at each point together with its output; nothing where no one operation does.
std::optional<Reduction> reductionOf(mlir::linalg::GenericOp generic);
/// The function's argument behind parts and walks, or null.
mlir::BlockArgument argumentOf(mlir::Value tensor);
/// The zeros that an output with a format begins as, behind a fill with another value; or null.
ZerosOp zerosOf(mlir::Value initial);
/// Does a dense output have every letter of this operand? Unless the operand is dense too, the nest runs over its
/// entries, and the output is zero elsewhere.
bool scatters(mlir::linalg::GenericOp generic, mlir::OpOperand &operand);
/// Slots of a dense last level may hold no entry; a walk meets the same slots in another order.
bool mayPad(mlir::Value tensor);

/// Which of the copies of the values that share a pattern is at these coordinates, one for each axis; null where there
/// is but one.
mlir::Value copyOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, llvm::ArrayRef<mlir::Value> coordinates);

/// Where a workspace on a pattern has the value at `position`: which copy, and the slot.
llvm::SmallVector<mlir::Value> slotAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value pattern, mlir::Value position,
                                      llvm::ArrayRef<mlir::Value> coordinates);

/// Follows the producers of a tensor: epilogues are inlined, a product accumulates over the walk of its encoded
/// operand and over the letters that only dense operands have, a chain of products one after another.
class Expression {
public:
  using Places = llvm::DenseMap<mlir::Value, mlir::Value>;

  /// `sizes` are the sizes of the letters by name; `kept` the workspaces of what nests before this one made.
  explicit Expression(const llvm::StringMap<mlir::Value> &sizes, const Places *kept = nullptr) : sizes(sizes), kept(kept) {}

  /// The element of `tensor` at `coordinates`.
  llvm::FailureOr<mlir::Value> element(mlir::OpBuilder &b, mlir::Value tensor,
                                       llvm::ArrayRef<mlir::Value> coordinates);
  /// Records the loops behind an output coordinate, so that levels find their digits.
  void noteDigits(const Letter &letter) { digitsOf[letter.coordinate] = letter.digits; }
  /// The nest is at `position` of `pattern`: tensors with that pattern have a value there.
  void setSample(mlir::Value pattern, mlir::Value position);
  /// The nest is at `position` of what the levels of `tensor` before `level` hold; its walk goes on from there.
  void setListed(mlir::Value tensor, unsigned level, mlir::Value position);
  /// Of the parts of a sum this one alone has entries where the nest is.
  void setOnly(mlir::Value tensor) { only = tensor; }
  /// The nest knows the coordinate of a binding of the format of `tensor`.
  void setBound(mlir::Value tensor, unsigned number, const Letter &letter) { bound.push_back({tensor, number, letter}); }
  /// No encoded operand has an entry: sums over them are what they begin with.
  void setEmpty() { empty = true; }
  /// The element of `tensor` at the present point is known.
  void setSummed(mlir::Value tensor, mlir::Value value) { summed[tensor] = value; }
  /// A tile has the elements of a dense operand that the nest reads: those along `axis`, at `place` of the tile.
  void setCopied(mlir::Value tensor, mlir::Value tile, unsigned axis, mlir::Value place) {
    copied[tensor] = {tile, axis, place};
  }
  /// `carried` and what the product adds to it at `position` of its operand; `known` are the letters with a coordinate.
  llvm::FailureOr<mlir::Value> update(mlir::OpBuilder &b, mlir::OpOperand &operand, mlir::Value position,
                                      llvm::ArrayRef<Letter *> known, mlir::Value carried);

  /// `carried` and what the statement adds to it at a point: `known` are all its letters, with coordinates.
  llvm::FailureOr<mlir::Value> add(mlir::OpBuilder &b, mlir::linalg::GenericOp generic, llvm::ArrayRef<Letter> known,
                                   mlir::Value carried);

private:
  /// The value of each encoded input at the present point, by operand number.
  using Stored = llvm::SmallDenseMap<unsigned, mlir::Value>;

  llvm::FailureOr<mlir::Value> sumOnce(mlir::OpBuilder &b, mlir::linalg::GenericOp generic,
                                       llvm::ArrayRef<mlir::Value> coordinates);
  llvm::FailureOr<mlir::Value> evaluate(mlir::OpBuilder &b, mlir::linalg::GenericOp generic,
                                        llvm::ArrayRef<mlir::Value> coordinates);
  llvm::FailureOr<mlir::Value> accumulate(mlir::OpBuilder &b, mlir::linalg::GenericOp generic,
                                          llvm::MutableArrayRef<Letter> letters, Stored &stored, mlir::Value carried);
  llvm::FailureOr<mlir::Value> walk(mlir::OpBuilder &b, mlir::OpOperand &operand,
                                    llvm::MutableArrayRef<Letter> letters, Stored &stored, mlir::Value carried);
  /// The loops over the entries of what a statement before made.
  llvm::FailureOr<mlir::Value> walkMade(mlir::OpBuilder &b, mlir::OpOperand &operand,
                                        llvm::MutableArrayRef<Letter> letters, Stored &stored, mlir::Value carried);
  /// `carried` and what one entry adds to it; nothing where it is padding of a stored block.
  llvm::FailureOr<mlir::Value> addEntry(mlir::OpBuilder &b, mlir::OpOperand &operand, mlir::Value position,
                                        llvm::MutableArrayRef<Letter> letters, Stored &stored, mlir::Value carried);
  llvm::FailureOr<llvm::SmallVector<Letter>> lettersOf(mlir::linalg::GenericOp generic);
  /// What is stored of the operand at `position`, with these letters.
  mlir::Value valueAt(mlir::OpBuilder &b, mlir::OpOperand &operand, mlir::Value position,
                      llvm::ArrayRef<Letter> letters);
  llvm::FailureOr<mlir::Value> body(mlir::OpBuilder &b, mlir::linalg::GenericOp generic,
                                    llvm::ArrayRef<Letter> letters, const Stored &stored, mlir::Value carried);

  const llvm::StringMap<mlir::Value> &sizes;
  const Places *kept;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<Digit, mlir::Value>>> digitsOf;
  mlir::BlockArgument sampled; // the argument whose pattern the output has
  mlir::Value samplePattern, samplePosition;
  mlir::Value listed, listedPosition; // an operand whose rows the nest runs over
  unsigned listedLevel = 0;
  mlir::Value only;
  struct Bound {
    mlir::Value tensor;
    unsigned number;
    Letter letter;
  };
  llvm::SmallVector<Bound, 0> bound;
  bool empty = false;
  llvm::DenseMap<mlir::Value, mlir::Value> summed;
  struct Sum {
    llvm::SmallVector<mlir::Value> coordinates;
    mlir::Value value;
  };
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Sum, 1>> sums; // that the nest has made
  struct Copied {
    mlir::Value tile;
    unsigned axis;
    mlir::Value place;
  };
  llvm::DenseMap<mlir::Value, Copied> copied;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_EXPRESSION_H
