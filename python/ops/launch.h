// SPDX-License-Identifier: Apache-2.0
/// \file
/// One launch of a kernel on tensors of torch, into a new one.
#ifndef LACIS_PYTHON_OPS_LAUNCH_H
#define LACIS_PYTHON_OPS_LAUNCH_H

#include "memory.h"

namespace lacis::ops {

/// A kernel and what it says of its tensors; both live as long as the process.
struct FoundKernel {
  lacis_kernel *kernel = nullptr;
  const lacis_signature *signature = nullptr;

  /// Throws unless this process has the kernel, or finds it in the search path.
  explicit FoundKernel(std::string_view key);
};

/// Room for the tensors and sizes of most calls.
constexpr size_t kUsual = 16;

/// One call: dense operands first, then storage. It owns nothing.
struct Call {
  AtenTensorHandle first = nullptr;
  const AtenTensorHandle *others = nullptr;
  size_t numOthers = 0;
  size_t numOperands = 0;
  size_t mayLackLeading = 0; // so many of the first operands may be without their leading dimension, which is 1 then
  bool outputMayLackLeading = false;
  const int64_t *shape = nullptr;
  size_t rank = 0;
  AtenTensorHandle into = nullptr; // the output where it is there; its shape is `shape` else
  const int64_t *packedShape = nullptr;
  size_t packedRank = 0;
};

/// The output, of `call.shape`; nothing where it is `call.into`. Operands and output with more dimensions than the kernel's have them in front.
OwnedTensor launch(const FoundKernel &found, const Call &call);

} // namespace lacis::ops

#endif
