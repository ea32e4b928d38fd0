# SPDX-License-Identifier: Apache-2.0
"""The smallest Triton kernel that reads and writes: what its launcher costs the host."""

import triton
import triton.language as tl


@triton.jit
def _copy(x, y, rows, columns, stride, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + at, tl.load(x + at, at < rows * columns), at < rows * columns)


def launch(x, y):
    _copy[(1,)](x, y, x.shape[0], x.shape[1], x.stride(0), block=64)
    return y
