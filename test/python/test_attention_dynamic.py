# SPDX-License-Identifier: Apache-2.0
"""Patterns that are made on the device for each call: nothing waits, nothing is compiled again, any lists are right."""

import pytest
import torch
from dense_attention import agree
from test_attention_fused import gradients, ways  # noqa: F401
from test_chain_tiles import tiled
from test_chain_tiles_gradients import chains, check, given
from torch.utils._python_dispatch import TorchDispatchMode

import lacis
from lacis.attentions.lists import columns_of, pattern_of_lists
from lacis.attentions.walks import by_columns
from lacis.emit.block_lists import block_lists
from lacis.runtime import kernels, library, ptxas
from lacis.runtime.targets import resolve_target

SIDE, HEADS, ROWS, COLUMNS = 4, 4, 18, 22  # which blocks do not divide


class NobodyWaits(TorchDispatchMode):
    """Refuses what lets the host wait for a device, or makes a size of numbers."""

    WAITS = (
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "unique",
        "is_nonzero",
        "equal",
        "repeat_interleave.Tensor",
    )

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function)
        by_mask = name.startswith("aten.index") and any(
            isinstance(each, torch.Tensor) and each.dtype == torch.bool
            for index in args[1:2] if isinstance(index, (list, tuple)) for each in index
        )  # fmt: skip
        assert not by_mask and not any(f"aten.{each}" in name for each in self.WAITS), name
        return function(*args, **(kwargs or {}))


class Own(lacis.PatternRule):
    """A user's: lists in any order, for each batch and head of keys."""

    block = SIDE

    def blocks(self, q, k):
        rows, columns = self.grid(q.shape[2], k.shape[2], self.block)
        numbers = torch.arange(rows)[:, None] * 5 + torch.tensor([3, 1, 3])
        lists = (numbers + torch.arange(k.shape[1])[:, None, None]) % columns
        return torch.where(numbers % 4 == 0, -1, lists)[None]


RULES = {
    "top": lacis.TopKBlocks(2, block=SIDE),
    "clusters": lacis.KMeans(3, 2, block=SIDE),
    "own": Own(),
}


def operands(heads=2, batch=2, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sizes = (HEADS, ROWS), (heads, COLUMNS), (heads, COLUMNS)
    return [torch.randn(batch, *size, 8, generator=generator).to(dtype).requires_grad_() for size in sizes]


def mask_of(lists, batch, heads, shape=(ROWS, COLUMNS), side=SIDE):
    """bool [B, H, Sq, Sk] of lists of blocks."""
    rows, columns = (-(-length // side) for length in shape)
    lists = lists.long().expand(batch, -1, -1, -1).repeat_interleave(heads // lists.shape[1], 1)
    there = (lists >= 0) & (lists < columns)
    kept = torch.zeros(batch, heads, rows, columns + 1).scatter_(3, torch.where(there, lists, columns), 1.0)
    wide = kept[..., :columns].bool().repeat_interleave(side, 2).repeat_interleave(side, 3)
    return wide[:, :, : shape[0], : shape[1]]


def dense(q, k, v, kept):
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q.double() @ k.double().mT / q.shape[-1] ** 0.5).masked_fill(~kept, -torch.inf)
    shares = torch.where(kept.any(-1, keepdim=True), scores, 0).softmax(-1) * kept.any(-1, keepdim=True)
    return shares @ v.double(), scores.logsumexp(-1)


@pytest.mark.parametrize("name", RULES)
def test_a_call_in_the_steady_state(name, monkeypatch, ways):  # noqa: F811
    """Other numbers, both passes: the kernels that are there, and no wait."""
    rule = RULES[name]
    first = operands()
    gradients(lacis.attention(*first, rule, return_lse=True), first)
    monkeypatch.setattr(kernels, "_make", lambda request: pytest.fail(f"compiled again: {request.text[:200]}"))
    q, k, v = operands(seed=1)
    with NobodyWaits():
        found = lacis.attention(q, k, v, rule, return_lse=True)
        mine = torch.autograd.grad(found[0].sum(), (q, k, v), retain_graph=True)
    kept = mask_of(rule.blocks(q, k), 2, HEADS)
    want = dense(q, k, v, kept)
    agree(found, want, rtol=1e-5, atol=1e-5)
    agree(mine, torch.autograd.grad(want[0].sum(), (q, k, v), retain_graph=True), rtol=1e-4, atol=1e-5)
    agree(gradients(found, (q, k, v)), gradients(want, (q, k, v)), rtol=1e-4, atol=1e-4)
    assert all(ways)


LISTS = {
    "unsorted": [[5, 0, 3], [4, 2, 1], [1, 0, 5], [3, 5, 2], [2, 1, 0]],
    "-1 in the middle": [[5, -1, 3], [-1, -1, 1], [1, -1, -1], [-1, 5, -1], [0, -1, 2]],
    "twice": [[2, 2, 2], [3, 1, 3], [-1, 4, 4], [5, 5, 0], [1, 1, -1]],
    "empty rows and columns": [[-1, -1, -1], [1, 0, -1], [-1, -1, -1], [1, 1, 1], [0, -1, -1]],
    "nothing": [[-1, -1, -1]] * 5,
}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_any_kind(name, dtype):
    """By rows and by columns; a list for each of two heads of keys, and for all batches."""
    lists = torch.tensor(LISTS[name], dtype=dtype)
    lists = torch.stack([lists, lists.flip(0)])[None]
    q, k, v = operands()
    found = lacis.attention(q, k, v, lists, return_lse=True)
    want = dense(q, k, v, mask_of(lists, 2, HEADS))
    agree(found, want, rtol=1e-5, atol=1e-5)
    agree(gradients(found, (q, k, v)), gradients(want, (q, k, v)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heads, groups, rows, width, columns", [(6, 2, 5, 4, 7), (4, 4, 33, 40, 20), (3, 1, 2, 1, 1)])
def test_arrays_of_lists(heads, groups, rows, width, columns):
    """Numbers ascend, each once; columns have the rows whose lists name them, in order."""
    generator = torch.Generator().manual_seed(width)
    lists = torch.randint(-2, columns + 2, (2, groups, rows, width), generator=generator)
    shape = (rows * 2, columns * 3 - 1), (2, 3)
    pattern = pattern_of_lists(lists, (2, heads), *shape, columns=True)
    crd = pattern.storage["crd2"].view(2, heads, rows, width)
    assert torch.equal(crd.flatten(0, 2), pattern_of_lists(lists, (2, heads), *shape).storage["crd2"])
    for side in (by_columns(pattern), columns_of(pattern)):  # of the lists as given, and in order
        lo, hi = (side.storage[name].view(2, heads, columns) for name in ("lo2", "hi2"))
        for b in range(2):
            for h in range(heads):
                own = [sorted({x for x in each if 0 <= x < columns}) for each in lists[b, h * groups // heads].tolist()]
                assert crd[b, h].tolist() == [each + [-1] * (width - len(each)) for each in own]
                for j in range(columns):
                    found = side.storage["crd2"][lo[b, h, j] : hi[b, h, j]].tolist()
                    assert found == [i for i, each in enumerate(own) if j in each]
    for each in (pattern, by_columns(pattern), columns_of(pattern)):
        each.part().check()


@pytest.mark.long
def test_gradients_by_columns_on_tiles():
    """Tensor cores walk the columns of lists, between which there is room."""
    lists = torch.tensor([[4, 1, 1], [-1, 0, 4], [-1, -1, -1], [4, -1, 3]])[None, None]
    kept = mask_of(lists, 1, 1, (256, 320), 64)[0, 0]
    inputs, want = given(256, 320, 64, 64, torch.bfloat16, kept)
    pattern = pattern_of_lists(lists, (1, 2), (256, 320), (64, 64))
    for chain, side, wanted in zip(chains(), (pattern, columns_of(pattern)), (want[:1], want[1:])):
        got = tiled(chain, *inputs, side)(*inputs, side)
        for one, other in zip(got if isinstance(got, tuple) else (got,), wanted):
            check(one, other, 2)


@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
def test_code_is_assembled():
    for bits in (32, 64):
        lacis._core.compile(block_lists(bits, True), "cuda:sm_90a", {"ptxas": ptxas.find(), "check_ptxas": True})


def test_threads_of_a_block():
    """The form of a GPU, one thread after another."""
    text = block_lists(32, True).replace("nvvm.barrier0", "")
    key = kernels.compile_kernel(text, resolve_target("cpu", torch.device("cpu"))).key
    lists = torch.randint(-1, 40, (1, 2, 9, 33), dtype=torch.int32)
    sizes = torch.empty(2, 4, 40, 1, 0, dtype=torch.int32)
    pattern = pattern_of_lists(lists, (2, 4), (9, 40), (1, 1), columns=True)
    room = 8 * 9 * 33
    with torch.no_grad():
        made = library.einsum([lists, sizes], [], [2 * room + 2 * 320], key)
    crd, by_rows, lo, hi = made.split([room, room, 320, 320])
    assert torch.equal(crd.view(72, 33), pattern.storage["crd2"])
    want = by_columns(pattern).storage
    assert torch.equal(lo, want["lo2"]) and torch.equal(hi, want["hi2"])
    for begin, end in zip(lo.tolist(), hi.tolist()):
        assert torch.equal(by_rows[begin:end], want["crd2"][begin:end])
