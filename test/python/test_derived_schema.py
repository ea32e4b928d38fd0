# SPDX-License-Identifier: Apache-2.0
"""Derived arrays have one schema: what the compiler says of them is what the Python functions take and make."""

import importlib.resources
import inspect
import json
import math

import pytest
import torch

import lacis
from lacis.patterns import functions
from lacis.patterns.derivation import Derivation
from lacis.patterns.regroup import Regrouped

SCHEMA = json.loads(importlib.resources.files("lacis.patterns").joinpath("derived.json").read_text())
DTYPES = {"i32": torch.int32, "i64": torch.int64, "bf16": torch.bfloat16}
WORKERS = 7
STEPS = [(kernel, number) for kernel in SCHEMA["kernels"] for number in range(len(kernel["derived"]))]


@pytest.fixture(autouse=True)
def few_workers(monkeypatch):
    monkeypatch.setattr(functions, "_workers", lambda structure: WORKERS)


def evaluate(size, known):
    """A size of the artifact; `known` has the sizes of the axes, the stored blocks, the workers, and counts."""
    if isinstance(size, int):
        return size
    ((kind, parts),) = size.items()
    if kind == "arg":
        return known[parts]
    if kind in ("sum", "ceildiv"):
        *parts, number = parts
    found = [evaluate(part, known) for part in parts]
    if kind == "ceildiv":
        return -(-found[0] // number)
    return {"product": math.prod, "min": min, "sum": lambda parts: sum(parts) + number}[kind](found)


def problem(kernel, shape, density):
    """A packed tensor in the kernel's format."""
    format = lacis.Format.parse(kernel["operand"])
    block = format.tile or (1, 1)
    grid = torch.rand(-(-shape[0] // block[0]), -(-shape[1] // block[1])) < density
    mask = grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: shape[0], : shape[1]]
    return lacis.pack(mask.to(getattr(torch, kernel["dtype"])), format, mask=mask)


def test_parameters_have_the_names_of_the_declarations():
    assert set(SCHEMA["functions"]) == set(functions.FUNCTIONS)
    for name, declared in SCHEMA["functions"].items():
        taken = list(inspect.signature(functions.FUNCTIONS[name]).parameters.values())[1:]
        assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in taken)
        taken = {each.name: each.default is each.empty for each in taken if each.name not in ("workers", "slots")}
        assert taken == declared


@pytest.mark.parametrize("shape", [(520, 776), (64, 1000), (0, 128), (130, 0)])
@pytest.mark.parametrize("density", [0.3, 0.0, 1.0])
@pytest.mark.parametrize("kernel", SCHEMA["kernels"], ids=lambda kernel: kernel["operand"][:40])
def test_arrays_are_as_the_compiler_says(kernel, shape, density):
    """Names, dtypes and sizes; counts are what the first array says that has as many elements."""
    packed = problem(kernel, shape, density)
    for number, record in enumerate(kernel["derived"]):
        step = Derivation.of(kernel["derived"], number)
        made = packed.pattern.made(step)
        arrays = dict(made.arrays) if isinstance(made, Regrouped) else made
        if any(array["name"] == "values" for array in record["arrays"]):  # of a pattern alone there are none
            arrays["values"] = made.values(packed.values, step.line)
        assert [name for name in arrays if name not in {array["name"] for array in record["arrays"]}] == []
        known = dict(enumerate([*shape, len(packed.values), WORKERS]))
        for array in record["arrays"]:
            if array["name"] not in arrays:
                assert (array["name"], packed.pattern.part().buffers) == ("link3", {})
                continue
            got = arrays[array["name"]]
            assert got.dtype == DTYPES[array["dtype"]], array["name"]
            for size, wanted in zip(got.shape, array["sizes"]):
                if isinstance(wanted, dict) and "arg" in wanted:
                    known.setdefault(wanted["arg"], size)
            if all(_is_known(wanted, known) for wanted in array["sizes"]):
                assert list(got.shape) == [evaluate(wanted, known) for wanted in array["sizes"]], array["name"]


def _is_known(size, known):
    if isinstance(size, int):
        return True
    ((kind, parts),) = size.items()
    return parts in known if kind == "arg" else all(_is_known(part, known) for part in parts)


def test_the_schema_covers_every_function():
    seen = {record["function"] for kernel, number in STEPS for record in [kernel["derived"][number]]}
    assert seen == set(functions.FUNCTIONS)
    assert all(
        array["name"] and "sizes" in array
        for kernel in SCHEMA["kernels"]
        for r in kernel["derived"]
        for array in r["arrays"]
    )
