// SPDX-License-Identifier: Apache-2.0
/// \file
/// How vectors of bfloat16 become float32 on a processor.
#ifndef LACIS_LIB_TARGET_CPU_WIDENHALVES_H
#define LACIS_LIB_TARGET_CPU_WIDENHALVES_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace lacis {

/// Widens bfloat16 in loops by halves, the even lanes and the odd ones, and puts results in order behind the loops.
std::unique_ptr<mlir::Pass> createWidenHalvesPass();

} // namespace lacis

#endif // LACIS_LIB_TARGET_CPU_WIDENHALVES_H
