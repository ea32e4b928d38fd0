// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sum in memory that iterations of a loop add to where they find their element.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_PUSHEDSUM_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_PUSHEDSUM_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// y[i] = y[i] and s, brought together
struct PushedSum {
  ReadOp read;
  WriteOp write;
  Reduction kind;
};

/// What a loop whose iterations meet adds to, or nothing: they hold parts of rows instead.
std::optional<PushedSum> pushedSum(LoopOp loop);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_PUSHEDSUM_H
