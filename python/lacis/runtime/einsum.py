# SPDX-License-Identifier: Apache-2.0
"""`lacis.einsum`: an einsum with one packed operand."""

from __future__ import annotations

import torch

from ..capture import Epilogue
from ..capture.traced import is_traced
from ..capture.traced_einsum import traced_einsum
from ..errors import DataError, user_location
from ..packing import PackedTensor
from ..patterns import Pattern
from .call import Call, run
from .compile import load_kernels
from .ready import ReadyEinsums
from .reference import reference
from .repeated import RepeatedEinsums

ready_einsums = ReadyEinsums()
_repeated = RepeatedEinsums()


def einsum(
    expression: str,
    *operands,
    semiring: str = "plus_times",
    epilogue: Epilogue | None = None,
    deterministic: bool = True,
    target: str = "auto",
    steps=(),
    strict: bool = False,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor | PackedTensor:
    """Sum of products as `torch.einsum` writes it; one operand is packed, the others are dense.

    >>> import torch, lacis
    >>> w = lacis.pack(torch.tensor([[0.0, 2.0], [3.0, 0.0]]), lacis.Csr)
    >>> einsum("nk,bk->bn", w, torch.tensor([[1.0, 10.0]]), target="eager").tolist()
    [[20.0, 3.0]]

    Where the output has the letters of the packed operand, in any order, it is computed at the entries alone and
    comes back as a `PackedTensor` on the same pattern. There the operand may also be a `lacis.Pattern`, which has
    no values; duplicates in it each get the value of their place.

    >>> einsum("ij,i,j->ij", w.pattern, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]), target="eager").to_dense()
    tensor([[0., 5.],
            [6., 0.]])

    Letters that the output has besides those of a pattern are batch letters, heads that share it: the result is packed
    on the pattern below a batch, its values [heads, slots] wherever the letter stands.

    >>> heads = einsum("ij,hi,hj->hij", w.pattern, torch.ones(2, 2), torch.ones(2, 2), target="eager")
    >>> heads.shape, heads.nnz
    (torch.Size([2, 2, 2]), 4)

    `semiring`: `"plus_times"`; `"max_plus"` and `"max_times"`, the largest sum or product over the entries, and
    -infinity where there is none (NaN wins, as in `torch.amax`); `"or_and"` on bool operands, False where there is
    no entry. All but the first are forward only: their gradient raises. `epilogue`: see `lacis.Epilogue`.
    `deterministic`: no result depends on timing; `False` admits steps by which it does (`race` with `"atomic"`).
    `target`: `"auto"` (where the operands lie), `"eager"` (torch's own operators), or as in `lacis.create_schedule`.

    Half types are summed in float32. `out_dtype`: the dtype of the result, by default the operands' own, to which the
    sum is rounded; with `torch.float32` half operands give it, and what an epilogue makes of it, unrounded. Gradients
    come back in the dtype of the operands; what arrives for them is float32, and is rounded to that dtype first only
    where the kernel multiplies tiles. Under autocast operands are cast to the region's dtype, and the result has this
    one. Raises `DataError` for any other dtype, which no kernel stores.

    >>> half, x = w.to(torch.bfloat16), torch.tensor([[1 + 1 / 128, 1 + 1 / 128]], dtype=torch.bfloat16)
    >>> einsum("nk,bk->bn", half, x, out_dtype=torch.float32, target="eager")
    tensor([[2.0156, 3.0234]])
    >>> einsum("nk,bk->bn", half, x, target="eager").tolist()
    [[2.015625, 3.03125]]

    Only entries take part, so NaN and infinity in a dense operand reach the outputs of kept entries alone; but on
    tensor cores, where tiles are multiplied whole, they may reach other outputs of the same token, and in a gradient of
    the values others of the same row or column. `strict=True` keeps them from there:
    no default schedule makes such tiles, in gradients neither, and a step `tensorize` raises `ScheduleError` (unless
    its kind is `"mma"`).
    Without a packed operand it is `torch.einsum`. Raises `DataError` when operands do not fit
    the expression or each other; ellipses and letters twice in one term have no code.
    """
    if not any(isinstance(operand, (PackedTensor, Pattern)) for operand in operands):
        return _without_packed(expression, operands, semiring != "plus_times" or epilogue is not None, out_dtype)
    said = (expression, semiring, deterministic, target, strict, out_dtype, torch.backends.cuda.matmul.fp32_precision)
    plain = epilogue is None and not steps and target != "eager"
    if plain:
        for known in (ready_einsums, _repeated):
            if (result := known.run(said, operands)) is not None:
                return result
    given = (user_location(), steps, semiring, epilogue, deterministic, strict)
    call = Call(expression, operands, *given, out_dtype=out_dtype)
    if target == "eager":
        return run(call, reference)

    def compute(asked: Call):
        kernels = load_kernels(asked, target)
        result = asked.launch(kernels)
        if plain and asked is call:
            ready_einsums.keep(said, call, kernels, result)
            _repeated.keep(said, operands, call, kernels.get(""))
        return result

    return run(call, compute)


def _without_packed(expression: str, operands, has_more: bool, out_dtype) -> torch.Tensor:
    """A statement of a chain, or torch's own einsum; `has_more` says that a semiring or an epilogue was given."""
    if is_traced(operands):
        if out_dtype is not None:
            raise DataError("einsum: a chain of lacis.kernel has the dtype of its operands, and no out_dtype")
        return traced_einsum(expression, operands)
    if has_more or out_dtype is not None:
        raise DataError("einsum: semirings, epilogues and out_dtype need one packed operand; see lacis.pack")
    return torch.einsum(expression, *operands)
