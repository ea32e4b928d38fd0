// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls that are bound to all their tensors, or to all but one or two: what a layer does again and again.
#ifndef LACIS_PYTHON_OPS_BOUND_H
#define LACIS_PYTHON_OPS_BOUND_H

#include "stack.h"

namespace lacis::ops {

/// bind(Tensor[] tensors, str kernel_key, int[] packed_shape, int dropped, int[] tail, int[] fills=[]) -> int: the number
/// of a call of a kernel on `tensors`, which are its dense operands but the first, and its storage. Its output has the
/// shape of the first operand, whose `dropped` last sizes `tail` replaces. The tensors are kept until `unbind`; what
/// they hold is looked at in each call. `fills` are calls of `bind.fill` that each call makes before.
void bind(StableIValue *stack, uint64_t, uint64_t);

/// bind.pair(Tensor[] tensors, str kernel_key, int[] packed_shape, int[] shape) -> int: the same where the first two
/// dense operands come later. The output has the shape `shape`.
void bindPair(StableIValue *stack, uint64_t, uint64_t);

/// bind.fill(Tensor[] tensors, str kernel_key, Tensor into) -> int: the same where no operand comes later, for a kernel
/// that has no packed operand, and `into` is the output of each call.
void bindFill(StableIValue *stack, uint64_t, uint64_t);

/// fill(int call) -> (): such a call. Torch counts no change of the output: the caller says so.
void fill(StableIValue *stack, uint64_t, uint64_t);

/// einsum.bound(Tensor operand, int call) -> Tensor: a call that `bind` bound. It refuses grad mode, as einsum.inference does.
void einsumBound(StableIValue *stack, uint64_t, uint64_t);

/// einsum.bound_pair(Tensor first, Tensor second, int call) -> Tensor: a call that `bind.pair` bound.
void einsumBoundPair(StableIValue *stack, uint64_t, uint64_t);

/// unbind(int call) -> (): gives the tensors back; a call that is under way ends first.
void unbind(StableIValue *stack, uint64_t, uint64_t);

} // namespace lacis::ops

#endif
