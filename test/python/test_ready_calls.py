# SPDX-License-Identifier: Apache-2.0
"""Calls of a kernel that are like one before: what they see, keep, and leave to the way that looks at everything."""

import gc
import weakref

import lacis
import pytest
import torch
from lacis.runtime.bound import changed
from lacis.runtime.ready import ReadyCalls, ReadySamples
from test_epilogue import W, X
from test_plain_tiles import check, tiled, weight
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture
def packed():
    return lacis.pack(torch.randn(24, 40).relu(), lacis.Csr)


@pytest.fixture
def kernel(packed):
    return lacis.compile("ij,bj->bi", packed, torch.randn(16, 40))


def counted(monkeypatch, kind=ReadyCalls) -> list:
    """What the quick way answered, call by call."""
    answers, run = [], kind.run
    monkeypatch.setattr(kind, "run", lambda *given: answers.append(run(*given)) or answers[-1])
    return answers


def test_the_second_call_is_ready_and_sees_new_values(packed, kernel, monkeypatch):
    answers = counted(monkeypatch)
    with torch.inference_mode():
        for size, ready in ((16, False), (16, True), (8, False), (16, True), (8, True)):
            x = torch.randn(size, 40)
            torch.testing.assert_close(kernel(packed, x), x @ packed.to_dense().T)
            assert (answers[-1] is not None) == ready
        packed.values.mul_(2)
        torch.testing.assert_close(kernel(packed, x), x @ packed.to_dense().T)
        assert answers[-1] is not None
        packed.values = packed.values + 1
        torch.testing.assert_close(kernel(packed, x), x @ packed.to_dense().T)
        assert answers[-1] is None
        other = packed.with_values(packed.values * 3)
        torch.testing.assert_close(kernel(other, x), x @ other.to_dense().T)
        assert answers[-1] is None


def test_an_epilogue_is_ready_too(monkeypatch):
    answers, packed, bias = counted(monkeypatch), lacis.pack(W, lacis.Csr), torch.nn.Parameter(torch.randn(11))
    kernel = lacis.compile("ij,bj->bi", packed, X, epilogue=lacis.Epilogue(bias=bias))
    with torch.no_grad():
        for ready in (False, True):
            torch.testing.assert_close(kernel(packed, X), X @ W.T + bias)
            assert (answers[-1] is not None) == ready
        bias.data = torch.randn(11)
        torch.testing.assert_close(kernel(packed, X), X @ W.T + bias)
        assert answers[-1] is not None
        other = lacis.Epilogue(bias=torch.randn(11))
        torch.testing.assert_close(kernel(packed, X, epilogue=other), X @ W.T + other.bias)
        bias.data = torch.randn(10)
        with pytest.raises(lacis.DataError, match=r"bias must have shape \[11\], not \[10\]"):
            kernel(packed, X)


def test_what_is_sampled_is_ready_too(packed, monkeypatch):
    answers, pattern = counted(monkeypatch, ReadySamples), packed.pattern
    kernel = lacis.compile("ij,ik,jk->ij", pattern, torch.randn(24, 8), torch.randn(40, 8))

    def look(a, b, ready):
        found = kernel(pattern, a, b)
        assert found.pattern is pattern and (answers[-1] is not None) == ready
        torch.testing.assert_close(found.to_dense(), (a @ b.T) * pattern.to_mask())

    with torch.no_grad():
        for features, ready in ((8, False), (8, True), (16, False), (8, True)):
            look(torch.randn(24, features), torch.randn(40, features), ready)
        look(torch.randn(8, 24).T, torch.randn(40, 16)[:, ::2], True)
        with pytest.raises(lacis.DataError, match="k"):
            kernel(pattern, torch.randn(24, 8), torch.randn(40, 16))
        with pytest.raises(lacis.ScheduleError, match="the operands differ from those it was compiled for"):
            kernel(pattern, torch.randn(24, 8).double(), torch.randn(40, 8).double())
    a = torch.randn(24, 8, requires_grad=True)
    kernel(pattern, a, torch.randn(40, 8)).values.sum().backward()
    assert answers[-1] is None and a.grad is not None


def test_copies_of_values_are_never_older_than_they_are(monkeypatch):
    packed = weight("16")
    x = torch.randn(8, packed.shape[1]).to(packed.dtype)
    kernel, answers = tiled("ij,bj->bi", [packed, x], "cuda:sm_90a"), counted(monkeypatch)
    with torch.no_grad():
        for factor in (1, 2, 3):
            packed.values.mul_(factor)
            for ready in (False, True):
                check(kernel(packed, x), x.double() @ packed.to_dense().double().T)
                assert (answers[-1] is not None) == ready


def test_an_einsum_is_ready_too(packed, monkeypatch):
    answers, x = counted(monkeypatch), torch.randn(16, 40)
    with torch.no_grad():
        for target, ready in (("auto", False), ("auto", True), ("cpu", False), ("auto", True)):
            got = lacis.einsum("ij,bj->bi", packed, x, target=target)
            torch.testing.assert_close(got, x @ packed.to_dense().T)
            assert bool(answers and answers.pop() is not None) == ready
        with pytest.raises(lacis.DataError, match="'j' is 40 long, but 41"):
            lacis.einsum("ij,bj->bi", packed, torch.randn(16, 41))
    x.requires_grad_()
    lacis.einsum("ij,bj->bi", packed, x).sum().backward()
    torch.testing.assert_close(x.grad, packed.to_dense().sum(0).expand(16, 40))


@pytest.mark.long
def test_einsums_that_say_other_things_are_others(packed):
    x, w = torch.randn(16, 40), packed.to_dense()
    largest = (x[:, None] + w).masked_fill(w == 0, -torch.inf).amax(-1)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x), x @ w.T)
            torch.testing.assert_close(lacis.einsum("ij,bj->ib", packed, x), w @ x.T)
            torch.testing.assert_close(lacis.einsum("bj,ij->bi", x, packed), x @ w.T)
            torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x, semiring="max_plus"), largest)
            after = lacis.Epilogue(activation="relu")
            torch.testing.assert_close(lacis.einsum("ij,bj->bi", packed, x, epilogue=after), (x @ w.T).relu())


def test_it_keeps_no_operand_alive(packed, kernel):
    twin = lacis.pack(packed.to_dense(), lacis.Csr)
    crd, x = weakref.ref(twin.storage["crd1"]), torch.randn(16, 40)
    with torch.no_grad():
        for run in (kernel, kernel, lambda *operands: lacis.einsum("ij,bj->bi", *operands)):
            run(twin, x)
    del twin
    gc.collect()
    assert crd() is None


def test_other_modes_take_the_other_way(packed, kernel):
    x = torch.randn(16, 40)
    with torch.no_grad():
        expected = kernel(packed, x)
        torch.testing.assert_close(kernel(packed, x), expected)
        assert "bound" not in make_fx(lambda x: kernel(packed, x))(x).code
        with pytest.raises(lacis.DataError, match="'j' is 40 long, but 41"):
            kernel(packed, torch.randn(16, 41))
        with pytest.raises(lacis.Error):
            kernel(packed, x.double())
        torch.testing.assert_close(kernel(packed, x.T.contiguous().T), expected)
    y = kernel(packed, x.requires_grad_())
    y.sum().backward()
    torch.testing.assert_close(x.grad, packed.to_dense().sum(0).expand(16, 40))


def test_what_says_that_tensors_are_the_same():
    """It looks into dictionaries, and refuses what its caller never gives."""
    same = changed()
    first, other = torch.zeros(2), torch.zeros(2)
    known, written = (({"x": first}, "x", first),), ((first, first._version),)
    assert same((), ()) == 0 and same(known, written) == 0
    first.add_(1)
    assert same(known, written) == 2 and same(known, ()) == 0
    for held in ({"x": other}, {}):
        assert same(((held, "x", first),), written) == 1
    refusals = {
        "expected two tuples": ([], ()),
        "expected a dictionary, a key and a tensor": (((),), ()),
        "expected a tensor and its version": ((), ((first,),)),
    }
    for words, given in refusals.items():
        with pytest.raises(TypeError, match=f"held: {words}"):
            same(*given)
    with pytest.raises(TypeError, match="held: expected two tuples"):
        same(())
    with pytest.raises(AttributeError, match="_version"):
        same((), ((1, 2),))
