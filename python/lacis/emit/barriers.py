# SPDX-License-Identifier: Apache-2.0
"""Where the threads of a block wait for each other, in kernels that are written at the stage of buffers."""


def with_barriers(text: str, is_on_gpu: bool) -> str:
    """The text with a barrier for each word BARRIER; on a CPU one thread runs them all in order, and needs none.

    >>> with_barriers("BARRIER", True), with_barriers("BARRIER", False)
    ('nvvm.barrier0', '')
    """
    return text.replace("BARRIER", "nvvm.barrier0" if is_on_gpu else "")
