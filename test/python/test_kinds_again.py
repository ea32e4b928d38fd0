# SPDX-License-Identifier: Apache-2.0
"""Kinds that are built in, written again as kinds of a user's: what they store, and the code that they give."""

import itertools
import re

import lacis
import pytest
import torch
import user_kinds  # noqa: F401  # @my_csr and @my_delta
from lacis.packing import pack
from strategies import sparse


@lacis.kind
class MyEll(lacis.LevelKind):
    """`packed<9>`, written again."""

    crd = lacis.array("i32", per="position")
    fixed = 9

    def coordinate(self, at, lo, pos):
        crd = self.crd[pos]
        return crd, crd >= 0

    def place(self, fibre):
        at, slots = places(fibre, self.fixed)
        crd = fibre.crd.new_full((slots,), -1)
        crd[at] = fibre.crd
        return lacis.Placed(at, slots, (slots,), {"crd": crd})


@lacis.kind
class MyCode(lacis.LevelKind):
    """`structured<2>` of groups of four, written again."""

    code = lacis.array("u8", per="own")
    fixed, bits, each = 2, 2, 4

    def one(self, lo, pos):
        return self.code[lo // self.each] >> pos % self.each * self.bits & 3

    def coordinate(self, at, lo, pos):
        mine, first = self.one(lo, pos), pos == lo
        other = self.one(lo, lacis.where(first, pos + 1, pos - 1))
        return mine, lacis.where(first, other >= mine, mine > other)

    def place(self, fibre):
        at, slots = places(fibre, self.fixed)
        count = fibre.starts().diff()
        last = torch.zeros_like(count).scatter_reduce(0, fibre.parent, fibre.crd, "amax")
        codes = last[:, None].repeat(1, self.fixed)
        codes[:, 0] = torch.where(count == 0, 3, codes[:, 0])
        codes = codes.reshape(-1).index_copy(0, at, fibre.crd)
        rows = torch.nn.functional.pad(codes, (0, -slots % self.each)).reshape(-1, self.each)
        code = (rows << torch.arange(0, 8, self.bits, device=codes.device)).sum(1)
        return lacis.Placed(at, slots, (slots,), {"code": code})


def places(fibre, width):
    """The position of each entry under parents with `width` each, and how many there are."""
    index = torch.arange(len(fibre.crd), device=fibre.crd.device) - fibre.starts()[fibre.parent]
    if bool((index >= width).any()):
        raise lacis.DataError(f"a parent holds more than {width} entries")
    return fibre.parent * width + index, fibre.parents * width


@lacis.kind
class MyLoose(lacis.LevelKind):
    """`var2*crd`, written again."""

    lo = lacis.array("i32", per="parent")
    hi = lacis.array("i32", per="parent")
    crd = lacis.array("i32", per="position")
    gaps = True

    def bounds(self, at):
        return self.lo[at.parent], self.hi[at.parent]

    def coordinate(self, at, lo, pos):
        return self.crd[pos]

    def place(self, fibre):
        starts, count = fibre.starts(), fibre.first.numel()
        arrays = {"lo": starts[:-1], "hi": starts[1:], "crd": fibre.crd[fibre.first]}
        return lacis.Placed(fibre.ends - 1, count, (count,), arrays)


@lacis.kind
class MyRagged(lacis.LevelKind):
    """`ragged`, written again."""

    pos = lacis.array("i32", per="parent", plus=1)
    fills = True

    def bounds(self, at):
        behind = at.parent + 1
        return self.pos[at.parent], self.pos[behind]

    def coordinate(self, at, lo, pos):
        return pos - lo

    def place(self, fibre):
        length = torch.zeros(fibre.parents, dtype=torch.int64, device=fibre.crd.device)
        length = length.scatter_reduce(0, fibre.parent, fibre.crd + 1, "amax")
        pos = torch.cat([length.new_zeros(1), torch.cumsum(length, 0)])
        return lacis.Placed(pos[fibre.parent] + fibre.crd, int(pos[-1]), (int(pos[-1]),), {"pos": pos})


@lacis.kind
class MyBitmap(lacis.LevelKind):
    """`var*bitmap`, written again."""

    pos = lacis.array("i32", per="parent", plus=1)
    bits = lacis.array("u32", per="own")

    def bounds(self, at):
        behind = at.parent + 1  # computed first, as the kinds that are there do: the assembler text has this order
        return self.pos[at.parent], self.pos[behind]

    def open(self, at, lo):
        return at.parent * ((at.size + 31) // 32), -32, 0

    def next(self, state):
        word, base, left = state
        left = self.bits[word]
        return word + 1, base + 32, left

    def coordinate(self, at, lo, pos, word, base, left):
        word, base, left = lacis.whilei(
            lambda state: (state[2] == 0) & (state[1] + 32 < at.size), self.next, (word, base, left)
        )
        return base + lacis.ctz(left), word, base, left & left - 1

    def place(self, fibre):
        words, crd = -(-fibre.size // 32), fibre.crd[fibre.first]
        bits = torch.zeros(fibre.parents * words, dtype=torch.int64, device=crd.device)
        bits.scatter_add_(0, fibre.parent[fibre.first] * words + crd // 32, torch.ones_like(crd) << crd % 32)
        return lacis.Placed(fibre.ends - 1, len(crd), (len(crd),), {"pos": fibre.starts(), "bits": bits})


AGAIN = {
    "@my_csr": ("compressed", "j"),
    "@my_delta": ("var*delta<8>", "j"),
    "@my_ell": ("packed<9>", "j"),
    "@my_loose": ("var2*crd", "j"),
    "@my_ragged": ("ragged", "j"),
    "@my_code": ("structured<2>", "j floordiv 4 : dense, j mod 4"),
    "@my_bitmap": ("var*bitmap", "j"),
}


@pytest.mark.long
@pytest.mark.parametrize("mine", AGAIN)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_it_has_the_code_of_the_one_that_is_there(mine, target):
    """At most two entries in a group of four, and nine in a row. A user's `//` and `>>` are of numbers with a sign."""
    w, (theirs, axis) = torch.zeros(16, 40), AGAIN[mine]
    for row, group in itertools.product(range(16), range(4)):
        w[row, 4 * group + torch.randperm(4)[: torch.randint(3, ())]] = 1.5
    codes, x = [], torch.randn(64, 40)
    for kind in (mine, theirs):
        packed = pack(w, f"(i, j) -> (i : dense, {axis} : {kind})").validate()
        kernel = lacis.compile("ij,bj->bi", packed, x, target=target)
        codes.append(kernel.asm["asm" if target == "cpu" else "ptx"])
        if target == "cpu":
            torch.testing.assert_close(kernel(packed, x), x @ w.T, atol=1e-5, rtol=1e-5)
    if mine == "@my_code":
        codes = [re.sub(r"\.[su](?=32|64)", ".", code) for code in codes]
    if (mine, target) != ("@my_code", "cpu"):
        assert codes[0] == codes[1]


@pytest.mark.long
def test_a_bitmap_of_words():
    """A word more each round, up to the size: nothing counts the rounds, and the code is that of `var*bitmap`."""
    lacis.check_kind(MyBitmap)
    for size, density in ((71, 0.1), (32, 1.0), (5, 0.0)):
        w, x = sparse(7, size, density=density), torch.randn(3, size)
        packed, there = (pack(w, f"(i, j) -> (i : dense, j : {kind})") for kind in ("@my_bitmap", "var*bitmap"))
        assert torch.equal(packed.storage["bits1"], there.storage["bits1"])
        torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x), x @ w.T, atol=1e-5, rtol=1e-5)


@pytest.mark.long
def test_as_many_positions_under_each_parent():
    rows, columns = torch.arange(9)[:, None], torch.arange(35)[None]
    masks = [(columns + rows) % 5 == 0, (columns < 9) & (rows > 3), columns < 0 * rows]
    lacis.check_kind(MyEll, masks=masks)
    w = sparse(9, 35, density=1.0) * masks[0]
    packed, there = (pack(w, f"(i, j) -> (i : dense, j : {kind})") for kind in ("@my_ell", "packed<9>"))
    assert torch.equal(packed.storage["crd1"].reshape(9, 9), there.storage["crd1"]) and packed.slots == 81
    with pytest.raises(lacis.DataError, match="a parent holds more than 9 entries"):
        pack(torch.ones(2, 10), packed.format)
    storage = {"crd1": packed.storage["crd1"][:-1]}
    with pytest.raises(lacis.DataError, match=r"must have shape \[81\], not \[80\]"):
        lacis.PackedTensor.from_storage(packed.format, packed.shape, storage, packed.values[:-1])
