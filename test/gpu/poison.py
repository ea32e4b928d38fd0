# SPDX-License-Identifier: Apache-2.0
"""Poison in memory that nobody has written yet: NaN in what torch allocates, and in every processor's shared memory."""

from __future__ import annotations

import contextlib
import ctypes
import functools

import torch

NAN = 0x7FFF7FFF  # not a number as float32, and twice as bfloat16 or float16
THREADS = 512
HEAD = """
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 memory[];
"""
ENTRY = """
.visible .entry NAME(.param .u64 found, .param .u32 words, .param .u32 word)
{
  .reg .pred %end, %same;
  .reg .b32 %at, %words, %word, %base, %address, %read;
  .reg .b64 %found;
  ld.param.u64 %found, [found];
  cvta.to.global.u64 %found, %found;
  ld.param.u32 %words, [words];
  ld.param.u32 %word, [word];
  mov.u32 %base, memory;
  mov.u32 %at, %tid.x;
NEXT:
  setp.ge.u32 %end, %at, %words;
  @%end ret;
  mad.lo.u32 %address, %at, 4, %base;
  EACH
  add.u32 %at, %at, THREADS;
  bra NEXT;
}
"""
FILL = "st.volatile.shared.u32 [%address], %word;"
COUNT = """ld.volatile.shared.u32 %read, [%address];
  setp.eq.u32 %same, %read, %word;
  @%same red.global.add.u32 [%found], 1;"""


def entry(name: str, each: str) -> str:
    """A kernel whose threads visit every word of a block's shared memory."""
    return ENTRY.replace("NAME", name).replace("EACH", each).replace("THREADS", str(THREADS))


PTX = HEAD + entry("fill", FILL) + entry("count", COUNT)


class Kernels:
    """The two kernels above, loaded through the driver; each takes all the shared memory that a block may have."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        torch.cuda.current_stream().synchronize()  # makes the context
        self.module = ctypes.c_void_p()
        self._check(self.driver.cuModuleLoadData(ctypes.byref(self.module), PTX.encode()))
        properties = torch.cuda.get_device_properties("cuda")
        self.bytes, self.processors = properties.shared_memory_per_block_optin, properties.multi_processor_count
        self.fill, self.count = (self._function(name) for name in (b"fill", b"count"))

    def _function(self, name: bytes) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._check(self.driver.cuModuleGetFunction(ctypes.byref(function), self.module, name))
        most_dynamic = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._check(self.driver.cuFuncSetAttribute(function, most_dynamic, self.bytes))
        return function

    def launch(self, function, found: int = 0) -> None:
        """One block a processor, on torch's stream."""
        words, word = ctypes.c_uint32(self.bytes // 4), ctypes.c_uint32(NAN)
        each = (ctypes.c_uint64(found), words, word)
        arguments = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in each))
        grid, block = (self.processors, 1, 1), (THREADS, 1, 1)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self._check(self.driver.cuLaunchKernel(function, *grid, *block, self.bytes, stream, arguments, None))

    @staticmethod
    def _check(status: int) -> None:
        assert status == 0, f"the driver answered {status}"


kernels = functools.cache(Kernels)


def shared_memory() -> None:
    """Fill it with NaN on every processor."""
    kernels().launch(kernels().fill)


def left_in_shared_memory() -> float:
    """The share of it that holds the poison still."""
    found = torch.zeros((), device="cuda", dtype=torch.int32)
    kernels().launch(kernels().count, found.data_ptr())
    return found.item() * 4 / (kernels().bytes * kernels().processors)


@contextlib.contextmanager
def allocations():
    """What torch allocates, outputs and workspaces of kernels too, is full of NaN."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def flush_cache() -> None:
    """Writes more than the second-level cache holds, so that the next kernel loads its inputs from memory."""
    torch.empty(2 * torch.cuda.get_device_properties("cuda").L2_cache_size, device="cuda", dtype=torch.int8).zero_()
