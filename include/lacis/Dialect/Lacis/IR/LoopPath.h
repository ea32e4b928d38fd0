// SPDX-License-Identifier: Apache-2.0
/// \file
/// What loops are called: letters, and the path of what they belong to. Names with dots are made and taken apart here alone.
#ifndef LACIS_DIALECT_LACIS_IR_LOOPPATH_H
#define LACIS_DIALECT_LACIS_IR_LOOPPATH_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

namespace lacis {

/// The letters and digits of a loop, and what it belongs to, which may be null.
struct LoopName {
  LoopName(llvm::StringRef letters, PathAttr path = {}) : letters(letters), path(path) {}
  LoopName(const std::string &letters, PathAttr path = {}) : letters(letters), path(path) {}
  LoopName(const char *letters, PathAttr path = {}) : letters(letters), path(path) {}

  /// As steps and messages spell it: `upto8.ell.j`.
  std::string str() const { return path ? path.spell() + letters : letters; }
  /// That of a loop over a digit: `j0`.
  LoopName operator+(llvm::StringRef digits) const { return {letters + digits.str(), path}; }

  std::string letters;
  PathAttr path;
};

/// Is a loop of these letters and this path, which may be null, spelled so?
bool isSpelled(llvm::StringRef name, llvm::StringRef letters, PathAttr path);
/// A path of one step.
PathAttr pathOf(mlir::MLIRContext *context, PathKind kind, llvm::StringRef name);
/// The steps of both; either may be null.
PathAttr join(PathAttr outer, PathAttr inner);
/// The path of a nest that is called after a loop.
PathAttr nestOf(mlir::MLIRContext *context, const LoopName &loop);
/// The name of a loop over both: `i_j` of rows and entries, `i_ell.j` where the entries belong to something.
LoopName joined(mlir::MLIRContext *context, const LoopName &rows, const LoopName &entries);

//===- Names as steps spell them ------------------------------------------===//

/// What the loops of a nest, part or copy that is called so begin with: `ell.`
std::string prefixOf(llvm::StringRef nest);
/// What the nest and the loop, or the operand, are called: (`upto8`, `x`) of `upto8.x`, (nothing, `x`) of `x`.
std::pair<llvm::StringRef, llvm::StringRef> splitName(llvm::StringRef name);
/// The nest for up to so many: `upto8`.
std::string caseName(int64_t most);
/// The letter in a loop's name: `i` in `i0`, in `i10`, and in `upto8.i0`.
llvm::StringRef letterOf(llvm::StringRef loop);
/// The pairs of names of rows and entries that a name may join; the name of a part may have such a sign in it.
llvm::SmallVector<std::pair<llvm::StringRef, llvm::StringRef>> joinedIn(llvm::StringRef name);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LOOPPATH_H
