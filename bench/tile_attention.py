# SPDX-License-Identifier: Apache-2.0
"""Attention on stored blocks, written by hand (test/Tiles), on the GPU: 8192 tokens, 32 heads, bf16, beside SDPA."""

from __future__ import annotations

import dataclasses
import heapq

import torch
from lacis.runtime import kernels

from .measure import Case, measure
from .tiles import FOLDER, processors

TITLE = "Block-sparse attention on tensor cores, 32 heads of 128, 8192 tokens, bf16"
HEAD = 128
ITEM = 1.5  # what beginning and ending a row of blocks costs, in blocks


@dataclasses.dataclass(frozen=True)
class Form:
    """A kernel of `test/Tiles`: the size of its blocks, and how many lists a processor has."""

    file: str
    block: int
    groups: int

    @property
    def text(self) -> str:
        return (FOLDER / f"{self.file}.mlir").read_text()


SERIAL64, SKEW64 = Form("attention64", 64, 2), Form("attention64-skew", 64, 2)
SERIAL128, SKEW128 = Form("attention128", 128, 1), Form("attention128-skew", 128, 1)


class Attention:
    """One pattern of blocks, bool [row blocks, column blocks], and the kernel on it."""

    def __init__(self, form: Form, mask: torch.Tensor, heads: int, device="cuda", target: str = "cuda:sm_90a"):
        self.form, self.heads, self.shape = form, heads, [size * form.block for size in mask.shape]
        self.kernel = kernels.compile_kernel(form.text, target)
        counts = mask.sum(1)
        own = {"pos1": torch.cat([torch.zeros(1), counts.cumsum(0)]), "crd1": mask.nonzero()[:, 1]}
        lists = work_lists(counts.tolist(), heads, form.groups, processors(torch.device(device)))
        arrays = [own[name] for name in self.kernel.storage] + [lists[array.name] for array in self.kernel.derived]
        self.storage = [array.int().to(device) for array in arrays]

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Of [heads, tokens, 128] each."""
        flat = [x.reshape(-1, HEAD) for x in (q, k, v)]
        return self.kernel(flat, self.storage, list(flat[0].shape), self.shape).view(q.shape)


def work_lists(counts: list[int], heads: int, groups: int, processors: int) -> dict[str, torch.Tensor]:
    """Pairs (row of blocks, head) of each worker: very long rows first, then head by head, the longest row first."""
    workers, cost = processors * groups, [count + ITEM for count in counts]
    long = 0.2 * sum(cost) * heads / workers
    rows = sorted(range(len(cost)), key=lambda row: -cost[row])
    first = [(row, head) for row in rows if cost[row] > long for head in range(heads)]
    order = first + [(row, head) for head in range(heads) for row in rows if cost[row] <= long]
    # Neighbours of the order go to different processors first.
    loads = [(0.0, number % processors * groups + number // processors) for number in range(workers)]
    given: list[list[tuple[int, int]]] = [[] for _ in range(workers)]
    for row, head in order:
        load, worker = heapq.heappop(loads)
        given[worker].append((row, head))
        heapq.heappush(loads, (load + cost[row], worker))
    items = torch.tensor([item for own in given for item in own], dtype=torch.int32).reshape(-1, 2)
    ends = torch.tensor([0] + [len(own) for own in given]).cumsum(0)
    return {"pos1": ends, "crd1": items[:, 0].contiguous(), "crd2": items[:, 1].contiguous()}


def expected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, block: int) -> torch.Tensor:
    """In float64; rows without blocks are 0."""
    kept = mask.to(q.device).repeat_interleave(block, 0).repeat_interleave(block, 1)
    heads = []
    for head in range(len(q)):  # one after the other: a matrix of scores is large
        scores = (q[head].double() @ k[head].double().T / HEAD**0.5).masked_fill(~kept, -torch.inf)
        heads.append(scores.softmax(1).nan_to_num(0.0) @ v[head].double())
    return torch.stack(heads)


def random_mask(rows: int, columns: int, kept: float) -> torch.Tensor:
    """With the diagonal."""
    return (torch.rand(rows, columns) < kept) | torch.eye(rows, columns, dtype=torch.bool)


def compared(run, want: torch.Tensor, what: str, repeats: int) -> tuple[torch.Tensor, float]:
    """What `run` answers, in each of so many more calls bit by bit, and its relative error."""
    first = run()
    for _ in range(repeats):
        if not torch.equal(run(), first):
            raise AssertionError(f"{what}: two runs differ")
    error = ((first.double() - want).norm() / want.norm()).item()
    if not error < 6e-3:
        raise AssertionError(f"{what}: error {error}")
    return first, error


def check(
    form: Form, tokens: int, heads: int, kept: float, device="cuda", target="cuda:sm_90a", repeats: int = 3
) -> float:
    """The relative error of a few runs on fresh numbers, which must agree bit by bit; a row of blocks is empty."""
    q, k, v = (torch.randn(heads, tokens, HEAD, device=device).bfloat16() for _ in range(3))
    mask = random_mask(tokens // form.block, tokens // form.block, kept)
    mask[-1] = False
    attention, want = Attention(form, mask, heads, device, target), expected(3 * q, k, v, mask, form.block)
    what = f"{form.file}, {tokens} tokens, {heads} heads, {kept}"
    return compared(lambda: attention(3 * q, k, v), want, what, repeats)[1]


def case(form: Form, zeros: float, tokens: int = 8192, heads: int = 32) -> Case:
    q, k, v = (torch.randn(heads, tokens, HEAD, device="cuda").bfloat16() for _ in range(3))
    attention = Attention(form, random_mask(tokens // form.block, tokens // form.block, 1 - zeros), heads)
    batched = [x.unsqueeze(0) for x in (q, k, v)]
    with torch.inference_mode():
        times = measure(
            {
                "lacis": lambda: attention(q, k, v),
                "torch dense": lambda: torch.nn.functional.scaled_dot_product_attention(*batched),
            },
            "cuda",
            rounds=20,
            flush=True,
        )
    return Case(f"{form.file}, {zeros:.0%} zeros", times)


FORMS = (SERIAL64, SKEW64, SERIAL128, SKEW128)


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    for form in FORMS:
        check(form, 2048, 3, 0.3)
    return [case(form, zeros) for form in FORMS for zeros in (0.75, 0.9)]
