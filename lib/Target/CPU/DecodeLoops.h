// SPDX-License-Identifier: Apache-2.0
/// \file
/// How loops that take coordinates out of bytes compute their indices on a processor.
#ifndef LACIS_LIB_TARGET_CPU_DECODELOOPS_H
#define LACIS_LIB_TARGET_CPU_DECODELOOPS_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace lacis {

/// Indices of loops that decode in 64 bits, what rounds share first, and sizes in words that say what divides them.
std::unique_ptr<mlir::Pass> createDecodeLoopsPass();

} // namespace lacis

#endif // LACIS_LIB_TARGET_CPU_DECODELOOPS_H
