# SPDX-License-Identifier: Apache-2.0
"""Under LACIS_DEBUG a kernel guards its accesses: damaged arrays raise, sound ones give the same numbers."""

import lacis
import pytest
import torch
from lacis.formats import decompose
from lacis.runtime import library
from strategies import mostly_long

X = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def debug(monkeypatch):
    monkeypatch.setenv("LACIS_DEBUG", "1")


def packed(format=lacis.Csr):
    torch.manual_seed(0)
    return lacis.pack(torch.randn(24, 40) * (torch.rand(24, 40) < 0.3), format)


def unvalidated(kernel, w):
    """The launch alone, as a compiled graph makes it."""
    return library.einsum([X], kernel.arrays(w), (5, 24), kernel.key, list(w.shape))


WHY = "a position or coordinate of the packed operand, or of what was derived from it, does not fit, see its '.validate"
DAMAGE = [
    ("crd1", 3, 40, "copy of operand 1: a checked kernel asked for element 640 of 640"),
    ("crd1", 3, -1, "copy of operand 1: a checked kernel asked for element -16 of 640"),
    ("crd1", 7, 2**31 - 1, "copy of operand 1: a checked kernel asked for element 34359738352 of 640"),
    ("pos1", 5, 2**31 - 1, r"crd1: a checked kernel asked for element 289 of 289 \(shape \[289\]\); " + WHY),
    ("pos1", 5, -(2**31), "crd1: a checked kernel asked for element -2147483648 of 289"),
    ("pos1", 24, 300, "crd1: a checked kernel asked for element 289 of 289"),
]


def test_an_access_outside_raises_and_does_not_happen():
    w = packed()
    kernel = lacis.compile("ij,bj->bi", w, X)
    assert "lacis.checked" in kernel.text
    expected = X @ w.to_dense().T
    for name, place, value, message in DAMAGE:
        array = w.storage[name]
        kept, array[place] = array[place].item(), value
        with pytest.raises(lacis.DataError, match=message):
            unvalidated(kernel, w)
        array[place] = kept
        torch.testing.assert_close(unvalidated(kernel, w), expected)


def test_what_is_first_in_order_is_named_whatever_the_timing():
    w = packed()
    kernel = lacis.compile("ij,bj->bi", w, X)
    w.storage["crd1"][::7] = 10**6
    w.storage["crd1"][100] = 50
    messages = set()
    for _ in range(20):
        with pytest.raises(lacis.DataError) as error:
            unvalidated(kernel, w)
        messages.add(error.value.message)
    assert len(messages) == 1 and "element 800 of 640" in messages.pop()


@pytest.mark.parametrize("format", mostly_long([lacis.Csc, decompose(ell=lacis.Ell(8), rest=lacis.Coo)], lacis.Csc))
def test_sound_arrays_give_the_same_numbers(format, monkeypatch):
    w = packed(format)
    checked = lacis.compile("ij,bj->bi", w, X)
    found = checked(w, X)
    monkeypatch.delenv("LACIS_DEBUG")
    plain = lacis.compile("ij,bj->bi", w, X)
    assert "lacis.checked" not in plain.text and plain.key != checked.key
    torch.testing.assert_close(found, plain(w, X), rtol=0, atol=0)
    torch.testing.assert_close(checked(w, X), found, rtol=0, atol=0)  # it stays what it was compiled to be


def test_a_graph_of_torch_compile_is_checked():
    model = torch.nn.Sequential(torch.nn.Linear(40, 24)).eval()
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csc)
    s.build()
    weight = model[0].weight
    run = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(run(X), model(X))
        derived = getattr(weight, next(iter(weight.derived.values()))["crd1"])
        derived[5] = -3
        with pytest.raises(RuntimeError, match=r"copy of operand 1: a checked kernel asked for element \d+ of"):
            run(X)
