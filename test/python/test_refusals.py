# SPDX-License-Identifier: Apache-2.0
"""What schedules, formats, packing and expressions refuse, in their words: one smallest call for each message."""

import os

import lacis
import pytest
import torch
from derived_cost import COST
from lacis.capture.expression import check_epilogue
from lacis.errors import DataError, FormatError, ScheduleError
from lacis.formats import decompose
from lacis.formats.digit import Digit
from lacis.nn.load import _check_integers
from lacis.packing.check_values import check_values
from lacis.patterns.derivation import Derivation
from lacis.patterns.derived import companion_arrays
from lacis.patterns.functions import make, segment_schedule, tile_schedule
from lacis.patterns.place import sort_entries
from lacis.patterns.regroup import regroup
from lacis.runtime.cache import Cache, CacheError

SUM = decompose(ell=lacis.Ell(width=1), rest=lacis.Coo)
VECTOR = lacis.Format.parse("#lacis.format<(i) -> (i : compressed)>")
BLOCKS = "(i floordiv {0} : dense, j floordiv {0} : compressed{1}, i mod {0} : dense, j mod {0} : dense)>"


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Linear(8, 4))


def schedule(built=False):
    s = lacis.create_schedule(model(), target="eager")
    s["0.weight"].set_format(lacis.Csr)
    if built:
        s.build()
    return s


def changed(change, name="0.weight", format=lacis.Csr):
    """Builds a schedule of a model whose first layer `change` has changed in between."""
    layer = torch.nn.Linear(6, 8)
    whole = layer if name == "weight" else torch.nn.Sequential(layer)
    s = lacis.create_schedule(whole, target="eager")
    s[name].set_format(format)
    change(layer)
    s.build()


def replaced(layer):
    layer.forward = torch.relu


def named_forward():
    s = lacis.create_schedule(model(), target="eager")
    s["0.weight"].decompose(forward=lacis.Ell(width=2), rest=lacis.Coo)
    s.build()


def nested_sum():
    s = schedule()
    s["1.weight"].block(2, 2).set_format(SUM)
    s.build()


def unfinished():
    class Unfinished(lacis.Format):
        def __init__(self):
            self.indices = []

    return Unfinished().levels


def blocks(size, rest=""):
    return "#lacis.format<(i, j) -> " + BLOCKS.format(size, rest)


def packed(format=lacis.Csr, size=(4, 4)):
    return lacis.pack(torch.eye(*size), format)


def structure(format):
    (part,) = packed(format, (8, 8)).pattern.parts.values()
    return part


SCHEDULES = {
    "a name is expected, not int": lambda: schedule()[0],
    "the model has no parameter or module '0.wieght'; the nearest are '0.weight'": lambda: schedule()["0.wieght"],
    "'0:output': an activation is '0:out', '0:in0', '0:in1', ...": lambda: schedule()["0:output"],
    "set_format: the model is built; call restore() first": lambda: schedule(True)["0.weight"].set_format(lacis.Coo),
    "build: the model is built already; call restore() first": lambda: schedule(True).build(),
    "build: nothing is scheduled": lambda: lacis.create_schedule(model()).build(),
    "report: the model is not built; call build() first": lambda: schedule().report(torch.randn(2, 6)),
    "'1.weight' was not scheduled when the model was built": lambda: schedule(True)["1.weight"].kernel,
    "'0.weight' runs torch's own operators (target 'eager'), it has no kernel": lambda: (
        schedule(True)["0.weight"].kernel
    ),
    "'0.weight' is no parameter of the model any more": lambda: changed(lambda layer: delattr(layer, "weight")),
    "cannot be replaced in place; wrap it in torch.nn.Sequential": lambda: changed(lambda layer: layer, "weight"),
    "is parametrised; call torch.nn.utils.parametrize.remove_parametrizations first": lambda: changed(
        torch.nn.utils.parametrizations.weight_norm, "0.bias", VECTOR
    ),
    "the forward of its Linear was replaced on the object, so no kernel can take its place": lambda: changed(replaced),
    "'0.weight' has no axes that a format could store; a lazy one has them after one run": lambda: (
        lacis.create_schedule(torch.nn.Sequential(torch.nn.LazyLinear(3)))["0.weight"]
    ),
    "a part cannot be named 'forward', a module has that name already": named_forward,
    "compile: target 'eager' has no kernel; lacis.einsum(..., target='eager') runs torch's operators": lambda: (
        lacis.compile("ij,j->i", packed(), torch.ones(4), target="eager")
    ),
}

FORMATS = {
    "a format needs at least one level": lambda: lacis.Format.of([], axes=("i",)),
    "format 'Unfinished' has no levels; set self.indices in its __init__": unfinished,
    "fuse needs at least one axis": lambda: lacis.fuse(),
    "block an axis before it is fused": lambda: lacis.fuse(*lacis.iter(dim=2).__enter__()).block(2),
    "a block size must be positive, not 0": lambda: Digit(0, 0, 1),
    "a block of 8 does not divide the block of 12 around it": lambda: Digit(0, 8, 0).within(Digit(0, 1, 12)),
    "part 'both' is a sum itself; name all parts in one decompose()": lambda: decompose(both=SUM, rest=lacis.Coo),
    "'layout' has no code yet": lambda: lacis.pack(
        torch.eye(4), lacis.Format.parse("#lacis.format<(i, j) -> (i : dense, j : compressed), layout = 1>")
    ),
    "a sum cannot be nested; decompose() the blocked tensor, and give its parts formats": nested_sum,
    "blocks of 2 axes do not fit a tensor of 3": lambda: lacis.BlockMagnitude(0.5, block=(2, 2)).mask(
        torch.ones(4, 4, 4)
    ),
    "an execution layout is of matrices with stored blocks, not": lambda: regroup(structure(lacis.Csr), blocks(2)),
    "tiles of 3x3 and stored blocks of 4x4 do not nest": lambda: regroup(structure(lacis.Bsr(4, 4)), blocks(3)),
    "is no execution layout": lambda: lacis.pack(torch.eye(4), lacis.Csr).pattern.layout(
        Derivation.index("(i, j) -> (j : dense, i : compressed<unique=false>, link)")
    ),
    "no function 'regroup' makes derived arrays": lambda: make(Derivation("regroup", ()), structure(lacis.Csr)),
    "tile_schedule: lists without a period are of one extent": lambda: tile_schedule(
        regroup(structure(lacis.Bsr(4, 4)), blocks(4)), columns=8, swizzle_group=1, cost=COST
    ),
    "segment_schedule: work lists are over the panels of a layout": lambda: segment_schedule(
        structure(lacis.Csr), length=8, cost=COST
    ),
    "a companion has the stored blocks of its format": lambda: companion_arrays(
        structure(lacis.Csr), blocks(2, ", link")
    ),
    "coordinates, too many for 64 bits; fuse fewer axes": lambda: sort_entries(
        lacis.Format.parse("#lacis.format<(i, j) -> ((i, j) : compressed)>"),
        (2**32, 2**32),
        [torch.zeros(1).long()] * 2,
    ),
}

PACKING = {
    "'crow_indices' must have length 3, not 4": lambda: lacis.pack(
        torch.sparse_csr_tensor([0, 0, 0, 0], [], [], (2, 2), check_invariants=False), lacis.Csr
    ),
    "a sparse tensor with batch or dense dimensions cannot be packed; pack its matrices one by one": lambda: lacis.pack(
        torch.eye(2).expand(2, 2, 2).to_sparse_csr(), lacis.Csf(3)
    ),
    "cannot pack a tensor of layout torch._mkldnn; packed are": lambda: lacis.pack(torch.eye(2).to_mkldnn(), lacis.Csr),
    "values of the parts ['ell', 'rest'] are needed, not of ['ell']": lambda: packed(SUM).with_values({"ell": None}),
    "the values of all parts must have one dtype": lambda: packed(SUM).with_values(
        {name: values.to(dtype) for (name, values), dtype in zip(packed(SUM).values.items(), (torch.half, torch.float))}
    ),
    "'values' must be a tensor, not int": lambda: packed().with_values(3),
    "'values' is on meta, the pattern on cpu": lambda: check_values(
        "values", torch.ones(4, device="meta"), (4,), torch.device("cpu")
    ),
    "only matrices are drawn, the tensor has 1 axes": lambda: lacis.pack(torch.ones(3), VECTOR).plot(),
    "a shape has no negative sizes: [-1, 4]": lambda: lacis.PackedTensor.from_storage(lacis.Csr, (-1, 4), {}),
    "'pos1' is missing; the format stores crd1, pos1, values": lambda: lacis.PackedTensor.from_storage(
        lacis.Csr, (4, 4), {"crd1": None, "values": None}
    ),
    "'crd1' must hold integers, not torch.float32": lambda: _check_integers("crd1", torch.ones(2), torch.int32),
    "'crd1' does not fit into torch.int32; build the model on the larger pattern": lambda: _check_integers(
        "crd1", torch.tensor([2**40]), torch.int32
    ),
    "the mask is on meta, the tensor on cpu": lambda: lacis.pack(
        torch.eye(2), lacis.Csr, mask=torch.ones(2, 2, dtype=torch.bool, device="meta")
    ),
    "einsum: 'ij,j,j->i' names 3 operands, 2 are given": lambda: lacis.einsum("ij,j,j->i", packed(), torch.ones(4)),
    "einsum: an expression is text like 'nk,bk->bn', not int": lambda: lacis.einsum(3, packed(), torch.ones(4)),
    "einsum: operand 1 is on meta and has no values; load them first, or compile without them": lambda: lacis.einsum(
        "ij,j->i", packed(), torch.ones(4, device="meta")
    ),
    "einsum: or_and has no epilogue, its result is bool": lambda: check_epilogue(
        lacis.Epilogue(), "i", "ij", {}, "or_and", torch.bool, "cpu"
    ),
}


@pytest.mark.parametrize(
    "kind, message, call",
    [
        *((ScheduleError, *case) for case in SCHEDULES.items()),
        *((FormatError, *case) for case in FORMATS.items()),
        *((DataError, *case) for case in PACKING.items()),
    ],
    ids=[*SCHEDULES, *FORMATS, *PACKING],
)
def test_a_refusal_says_what_is_wrong(kind, message, call):
    with pytest.raises(kind) as error:
        call()
    assert message in str(error.value)


def test_a_folder_that_cannot_be_a_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="file: File exists"):
        Cache(tmp_path / "file")
    with pytest.raises(ValueError, match="'../x' is no hexadecimal key"):
        Cache(tmp_path / "own").path("../x")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CacheError, match="belongs to another user"):
        Cache(tmp_path / "other")
