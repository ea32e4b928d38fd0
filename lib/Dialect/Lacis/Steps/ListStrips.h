// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over listed rows, in strips that write the rows between them, too.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_LISTSTRIPS_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_LISTSTRIPS_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Is the output, which this step calls `operand`, zero where no level lists it, before the launch?
bool beginsAsZeros(Nest &nest, llvm::StringRef operand);

/// for p0: for p1: y[row p] = s  -->  for p0: { y[from the last row before to the last of p0] = 0; for p1: y[row p] = s }
/// `at` is the loop over strips of a list. Answers why not, or nothing.
std::string fillInStrips(LoopOp at, mlir::Location loc);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_LISTSTRIPS_H
