// SPDX-License-Identifier: Apache-2.0
/// \file
/// Declarations of the conversions and their registration.
#ifndef LACIS_CONVERSION_CONVERSIONPASSES_H
#define LACIS_CONVERSION_CONVERSIONPASSES_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "mlir/Pass/Pass.h"

namespace lacis {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lacis/Conversion/ConversionPasses.h.inc"
} // namespace lacis

#endif // LACIS_CONVERSION_CONVERSIONPASSES_H
