# SPDX-License-Identifier: Apache-2.0
"""What a user reads after a slip: the thing, what it should be, the nearest name, and the user's own line."""

import re
import subprocess
import sys

import lacis
import numpy
import pytest
import torch
from lacis import knobs, steps

ARRAY = numpy.ones((4, 4), dtype=numpy.float32)
META = torch.ones(4, 4, device="meta")


def handle():
    return lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(40, 24)).eval(), target="eager")["0.weight"]


def packed():
    return lacis.pack(torch.eye(4), lacis.Csr)


def layer(x):
    linear = handle().set_format("csr")
    return linear._schedule.build()(x)


TENSORS = {
    "expected a torch tensor, not ndarray; torch.as_tensor makes one": lambda: lacis.pack(ARRAY, lacis.Csr),
    "a mask must be a bool tensor with at least one axis, not ndarray": lambda: lacis.Pattern.from_mask(ARRAY, "csr"),
    "einsum: operand 1 is a numpy.ndarray, not a torch tensor; torch.as_tensor": lambda: lacis.einsum(
        "ij,jk->ik", packed(), ARRAY
    ),
    "einsum: operand 1 is a list, not a torch tensor": lambda: lacis.compile("ij,jk->ik", packed(), [1.0]),
    "linear: the input is a numpy.ndarray, not a torch tensor; torch.as_tensor makes one": lambda: layer(ARRAY),
    "a tensor on meta has no values to pack; load them first": lambda: lacis.pack(META, lacis.Csr),
    "a mask on meta has no values, so it names no entries": lambda: lacis.Pattern.from_mask(META > 0, lacis.Csr),
    "einsum: operand 1 is on meta and has no values; load them first": lambda: lacis.einsum(
        "ij,jk->ik", packed(), META
    ),
}


@pytest.mark.parametrize("message", TENSORS)
def test_what_is_no_tensor_or_has_no_values(message):
    with pytest.raises(lacis.DataError, match=re.escape(message)) as caught:
        TENSORS[message]()
    assert caught.value.location[0] == __file__


@pytest.mark.parametrize("grad", [torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("x", [ARRAY, torch.ones(3, 40, device="meta")], ids=["numpy", "meta"])
def test_a_built_layer_names_what_it_was_given(x, grad):
    model = torch.nn.Sequential(torch.nn.Linear(40, 24))
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].set_format(lacis.Csr)
    with grad(), pytest.raises(lacis.DataError, match="linear.*(not a torch tensor|on meta)"):
        s.build()(x)


@pytest.mark.parametrize(
    "name, meant",
    [("csr", lacis.Csr()), ("CSC", lacis.Csc()), ("ell", lacis.Ell()), ("coo", lacis.Coo()), ("dcsr", lacis.Dcsr())],
)
def test_formats_have_names(name, meant):
    assert handle().set_format(name).format == meant
    assert lacis.pack(torch.eye(3), name).format == meant


def test_formats_that_wait_for_something_have_names():
    assert handle().block(4, 8).set_format("bsr").format == lacis.Bsr(4, 8)
    assert handle().block(4, 8).set_format("blocked_ell").format == lacis.BlockedEll(4, 8)
    assert lacis.pack(torch.ones(2, 3, 4), "csf").format == lacis.Csf(3)
    assert handle().decompose(ell=lacis.Ell(2), rest="coo").format.parts["rest"] == lacis.Coo()


FORMATS = {
    "set_format: no format 'cssr'; the nearest are 'csr', 'dcsr'; the predefined ones are bcsc, ": lambda: (
        handle().set_format("cssr")
    ),
    "no format 'csv'; the nearest are": lambda: lacis.pack(torch.eye(3), "csv"),
    "expected a format, as lacis.Csr, 'csr' or '(i, j) -> (i : dense, ...)', not int": lambda: handle().set_format(3),
    "no axis 2: the tensor has 2 axes; .block(b0, b1) before it makes 4 of them": lambda: (
        handle().set_format(lacis.Ell, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3])._schedule.build()
    ),
    "set_format: 'axis' is a list of axes, as axis=[0, 1], not 0": lambda: handle().set_format(lacis.Csr, axis=0),
}


@pytest.mark.parametrize("message", FORMATS)
def test_what_is_no_format(message):
    with pytest.raises((lacis.FormatError, lacis.ScheduleError), match=re.escape(message)) as caught:
        FORMATS[message]()
    assert caught.value.location[0] == __file__


FIELDS = {
    "split: 'factor' is a whole number, not 'four'": lambda: steps.Split("b", "four"),
    "split: 'factor' is a whole number, not 4.0": lambda: handle().split("b", 4.0),
    "split: 'factor' is a whole number, not True": lambda: steps.Split("b", True),
    "split: 'loop' is a name in quotes, not 3": lambda: steps.Split(3, 4),
    "bind: 'unit' is a name in quotes, not a list": lambda: steps.Bind("b", []),
    "walk: 'axes' are written one after the other: 'j', 'i', not ('j', 'i')": lambda: handle().walk("0", ("j", "i")),
    "reorder: 'loops' are written one after the other: 'b', 'i', not ['b', 'i']": lambda: steps.Reorder(["b", "i"]),
    "block: each of 'sizes' is a whole number, not 'x'": lambda: handle().block(4, "x"),
    "specialize: the size of 'b' is a whole number, not 'x'": lambda: steps.Specialize(b="x"),
    "split: missing 1 required positional argument: 'factor'; it takes loop, factor": lambda: handle().split("b"),
    "split: got an unexpected keyword argument 'by'; it takes loop, factor": lambda: handle().split("b", by=3),
    "walk: argument 'operand' is missing; it takes operand, axes": lambda: handle().walk(),
    "einsum: 'steps' is a list of records, as steps=[lacis.steps.Split('i', 32)]": lambda: lacis.einsum(
        "ij,jk->ik", packed(), torch.ones(4, 4), steps=steps.Split("i", 2)
    ),
    "einsum: 'steps' is a list of records": lambda: lacis.compile(
        "ij,jk->ik", packed(), torch.ones(4, 4), steps=["split"]
    ),
    "create_schedule: a torch.nn.Module is expected, not a str": lambda: lacis.create_schedule("model"),
}


@pytest.mark.parametrize("message", FIELDS)
def test_fields_of_steps(message):
    with pytest.raises(lacis.ScheduleError, match=f"^[^:]*:[0-9]+: {re.escape(message)}") as caught:
        FIELDS[message]()
    assert caught.value.location[0] == __file__


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert steps.Split("b", numpy.int64(4)) == steps.Split("b", 4)


NAMES = {
    "a handle has no verb 'set_fromat'; the nearest is 'set_format'; it has apart, ": lambda: handle().set_fromat,
    "a handle has no verb 'paralel'; the nearest is 'parallel'": lambda: handle().grad.paralel,
    "lacis.steps has no 'Splt'; the nearest are 'Split', 'SplitNnz'; it has Apart, ": lambda: steps.Splt,
    "module 'lacis' has no attribute 'CSR'; the nearest are 'Csr', ": lambda: lacis.CSR,
    "module 'lacis' has no attribute 'nothing'": lambda: lacis.nothing,
    "lacis.knobs has no 'debgu'; the nearest is 'debug'; it has cache_dir, ": lambda: knobs.debgu,
    "lacis.knobs has no 'dump'; the nearest is 'dump_dir'": lambda: setattr(knobs, "dump", "/tmp"),
}


@pytest.mark.parametrize("message", NAMES)
def test_the_nearest_name_comes_first(message):
    with pytest.raises(AttributeError, match=re.escape(message)):
        NAMES[message]()


def test_a_variable_that_nothing_reads_is_said():
    script = "import os; os.environ['LACIS_DEBGU'] = os.environ['LACIS_TEST_SEED'] = '1'; import lacis"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "lacis reads no variable 'LACIS_DEBGU'; the nearest are 'LACIS_DEBUG'" in done.stderr
    assert "LACIS_TEST_SEED" not in done.stderr


def test_handles_print_formats_in_full():
    assert repr(handle().set_format(lacis.Ell(width=8))) == 's["0.weight"].set_format(Ell(width=8))'
    assert repr(handle().set_format(lacis.Bsr(4, 8))) == 's["0.weight"].set_format(Bsr(4, 8))'
    assert repr(handle().set_format(lacis.BlockedEll(4, 8, width=2))).endswith("set_format(BlockedEll(4, 8, width=2))")
    assert repr(handle().set_format(lacis.Csr)).endswith(".set_format(Csr)")
    both = handle().decompose(ell=lacis.Ell(width=8), rest=lacis.Coo)
    assert repr(both) == 's["0.weight"].decompose(ell=Ell(width=8), rest=Coo)'
    assert ".set_format(Ell(width=8))" in str(handle().set_format(lacis.Ell(width=8))._schedule)
