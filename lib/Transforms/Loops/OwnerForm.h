// SPDX-License-Identifier: Apache-2.0
/// \file
/// The forms in which the levels of an operand own the elements of an output.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_OWNERFORM_H
#define LACIS_LIB_TRANSFORMS_LOOPS_OWNERFORM_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

namespace lacis {

/// A form and why it is taken.
struct OwnerForm {
  llvm::StringRef name; // locate, list, permute, push, share or companion
  std::string why;
};

/// Every level with a digit of these axes has a position for every coordinate: it is located.
bool isLocated(FormatAttr format, llvm::ArrayRef<unsigned> axes);
/// No digit of an axis lies inside another: the tile's digits are below those of the index.
bool nestsDigits(FormatAttr format);
/// How many of the first levels list what an output with these axes has of them, each once; 0 where the first does not.
unsigned listedLevels(FormatAttr format, llvm::ArrayRef<unsigned> axes);

/// How many of the first levels have digits of such an output only, and are located: they own what the levels below push
/// to a tile, or to the output.
unsigned ownerLevels(FormatAttr format, llvm::ArrayRef<unsigned> axes);

/// The digits of such an output that levels below the owners find.
llvm::SmallVector<Digit> pushedDigits(FormatAttr format, llvm::ArrayRef<unsigned> axes);
/// These have bounds, and together so few elements that a tile of them stays in the first-level cache.
bool pushesToTile(FormatAttr format, llvm::ArrayRef<unsigned> axes);

/// The digits of such an output that the first levels name for each of their positions, in ascending order: a row, which
/// several neighbours may name. None where the levels begin with another digit.
llvm::SmallVector<Digit> sharedDigits(FormatAttr format, llvm::ArrayRef<unsigned> axes);
/// The axis of such an output that binding `number` has in another order, or nothing.
std::optional<unsigned> permutedAxis(FormatAttr format, llvm::ArrayRef<unsigned> axes, unsigned number);

/// Why the levels of `format` cannot own an output with these axes in that form, or nothing.
std::string objectionTo(llvm::StringRef form, FormatAttr format, llvm::ArrayRef<unsigned> axes);
/// What is known of the coordinates of the first level.
struct RowFacts {
  bool uneven; // some have far more entries than most
  bool filled; // most of many are listed
  bool hypersparse; // most of many rows have no entry, and the sum can be made in parts
  bool alone; // the output has no other axis
};
/// The best form of the levels.
OwnerForm bestForm(FormatAttr format, llvm::ArrayRef<unsigned> axes, RowFacts rows);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_OWNERFORM_H
