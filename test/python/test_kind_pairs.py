# SPDX-License-Identifier: Apache-2.0
"""Every extent with every coordinate: at the top, below, in blocks that do not divide, inside them, over both axes."""

import itertools

import expressions
import lacis
import pytest
import torch
from lacis.errors import FormatError
from lacis.formats import Format
from lacis.packing import PackedTensor, pack
from strategies import sparse

LAYOUTS = [
    "(i, j) -> (i : dense, j : {})",
    "(i, j) -> (j : {}, i : compressed)",
    "(i, j) -> (j : {}, i : {})",
    "(i, j) -> (i floordiv 3 : dense, j floordiv 16 : {}, i mod 3 : dense, j mod 16 : dense)",
    "(i, j) -> (j : compressed, i floordiv 16 : dense, i mod 16 : {})",
    "(i, j) -> (i floordiv 16 : compressed, j floordiv 3 : {}, (i mod 16, j mod 3) : {})",
    "(i, j) -> ((j, i) : {})",
]
EXTENTS = ("full*{}", "fixed*{}<48{}>", "fixed*{}<16{}>", "fixed*{}<?{}>", "var*{}", "var2*{}")
COORDINATES = ("implicit", "crd", "bitmap", "delta", "code")
PAIRS = [extent.format(c, ", 16" if c == "delta" else "") for extent, c in itertools.product(EXTENTS, COORDINATES)]


def formats() -> list[Format]:
    """What the grammar takes of all."""
    found = []
    for layout, pair in itertools.product(LAYOUTS, PAIRS):
        try:
            found.append(Format.parse(layout.format(*[pair] * layout.count("{}"))))
        except FormatError:
            continue
    return list(dict.fromkeys(found))


def has_room(format: Format) -> bool:
    """Do the widths in the text fit what the suite of expressions packs?"""
    try:
        return all(pack(torch.ones(each["i"], each["j"]), format).slots for each in expressions.SIZES[:2])
    except lacis.DataError:
        return False


FORMATS = formats()


def test_the_grammar_takes_most_pairs():
    kinds = {level.kind for format in FORMATS for level in format.levels}
    assert len(FORMATS) > 80 and kinds == {
        *("dense", "compressed", "packed", "ragged", "bitmap", "structured", "full*bitmap", "fixed*bitmap"),
        *("fixed*delta", "var*delta", "var2*crd", "var2*delta"),
    }


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_a_pair_is_packed_read_and_multiplied(format):
    for seed, (shape, density) in enumerate(itertools.product([(17, 35), (5, 16), (1, 9), (0, 5), (4, 0)], (0.2, 0.9))):
        w = sparse(*shape, density=density, dtype=torch.float64, seed=seed)
        try:
            packed = pack(w, format).validate()
        except lacis.DataError as error:
            assert " has width " in str(error)
            continue
        assert torch.equal(packed.to_dense(), w)
        again = PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)
        x = torch.ones(2, shape[1], dtype=torch.float64)
        torch.testing.assert_close(lacis.einsum("ij,bj->bi", again, x, target="eager"), x @ w.T)


@pytest.mark.long
@pytest.mark.parametrize("expression", ["ij,bj->bi", "ij,bi->bj", "ij,bi,bj->ij"])
@pytest.mark.parametrize("format", [f for f in FORMATS if has_room(f)], ids=str)
def test_kernels_of_a_pair(format, expression):
    sizes = [each for each in expressions.SIZES if max(each["i"], each["j"]) <= 48]
    expressions.run(expression, format, torch.float32, sizes=sizes[:4])
