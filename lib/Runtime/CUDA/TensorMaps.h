// SPDX-License-Identifier: Apache-2.0
/// \file
/// Describes a matrix to the copy engine of a device, by value, in the arguments of a launch.
#ifndef LACIS_LIB_RUNTIME_CUDA_TENSORMAPS_H
#define LACIS_LIB_RUNTIME_CUDA_TENSORMAPS_H

#include "Driver.h"
#include "lacis/Runtime/LaunchPlan.h"

namespace lacis::runtime::cuda {

struct alignas(64) TensorMapBytes {
  char bytes[128] = {};
};

/// Fails where the engine cannot read such a matrix, and says why. An empty one is never read: its map stays zero.
llvm::Error encodeTensorMap(const Driver &driver, const TensorMapValue &value, TensorMapBytes &map);

} // namespace lacis::runtime::cuda

#endif
