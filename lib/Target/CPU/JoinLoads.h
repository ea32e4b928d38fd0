// SPDX-License-Identifier: Apache-2.0
/// \file
/// How neighbouring integers of few bits are loaded on a processor.
#ifndef LACIS_LIB_TARGET_CPU_JOINLOADS_H
#define LACIS_LIB_TARGET_CPU_JOINLOADS_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace lacis {

/// Loads two neighbouring integers of 8 or 16 bits, as rounds of an unrolled loop read them, as one of twice the bits.
std::unique_ptr<mlir::Pass> createJoinLoadsPass();

} // namespace lacis

#endif // LACIS_LIB_TARGET_CPU_JOINLOADS_H
