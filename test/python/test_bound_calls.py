# SPDX-License-Identifier: Apache-2.0
"""Calls in inference that are bound to their tensors: what they see, keep, refuse, and leave to other modes."""

import copy
import gc
import subprocess
import sys
import threading
import weakref

import pytest
import torch
from test_forward import build, reference
from torch.fx.experimental.proxy_tensor import make_fx

import lacis
from lacis.runtime.bound import BoundCall, run, run_pair


def bound(layer) -> BoundCall:
    return layer._quick._bound[1]


@pytest.fixture
def model():
    model, _ = build(training=False)
    return model


def test_one_binding_serves_until_a_tensor_is_another(model):
    layer, x = model[0], torch.randn(3, 40)
    with torch.inference_mode():
        model(x)
        first = bound(layer)
        model(torch.randn(2, 3, 40))
        assert bound(layer) is first
    layer.weight.values.data = layer.weight.values.data * 2  # the same Parameter
    with torch.no_grad():
        torch.testing.assert_close(model(x), reference(model, x))
        assert bound(layer) is first
        layer.bias = torch.nn.Parameter(torch.randn(24))
        torch.testing.assert_close(model(x), reference(model, x))
        assert bound(layer) is not first


def test_training_keeps_no_tensors_of_inference_nor_of_an_earlier_pattern(model):
    layer, x = model[0], torch.randn(3, 40)
    with torch.no_grad():
        model(x)
    crd = weakref.ref(layer.weight.crd1)
    model(x)
    assert bound(layer) is None
    fewer = layer.weight.to_dense().detach()
    fewer[0] = 0
    layer.weight.set_packed(lacis.pack(fewer, layer.weight.format))
    model(x)
    gc.collect()
    assert crd() is None
    with torch.no_grad():
        torch.testing.assert_close(model(x), reference(model, x))


def test_a_number_means_nothing_after_its_call_is_gone(model):
    layer, x = model[0], torch.randn(3, 40)
    with torch.no_grad():
        model(x)
        number = bound(layer).number
        expected = model(x)
        assert torch.equal(torch.ops.lacis.einsum.bound(x, number), expected)
        with pytest.raises(RuntimeError, match="the first operand has 0 dimensions; expected at least 1"):
            torch.ops.lacis.einsum.bound(x[0, 0], number)
    with pytest.raises(RuntimeError, match="no_grad"):
        torch.ops.lacis.einsum.bound(x, number)
    layer._quick.release()
    with torch.no_grad(), pytest.raises(RuntimeError, match=f"call {number} is not bound in this process"):
        torch.ops.lacis.einsum.bound(x, number)


def test_other_modes_see_the_functional_operator(model):
    layer, x = model[0], torch.randn(3, 40)
    with torch.no_grad():
        expected = model(x)
        with torch.autocast("cpu", torch.bfloat16):
            assert model(x).dtype == torch.bfloat16
            assert torch.ops.lacis.einsum.bound(x, bound(layer).number).dtype == torch.bfloat16
        graph = make_fx(model)(x)
        assert "bound" not in graph.code
        assert torch.equal(graph(x), expected)
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fake = mode.from_tensor(x)
            assert model(fake).shape == expected.shape
            found = torch.ops.lacis.einsum.bound(fake, bound(layer).number)
            assert found.shape == expected.shape and found.dtype == expected.dtype
        swapped = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        swapped["0.bias"] += 1
        other = torch.func.functional_call(model, swapped, (x,))
        torch.testing.assert_close(other, expected + 1)
        assert torch.equal(model(x), expected)
        torch.testing.assert_close(torch.func.vmap(model)(x[:, None])[:, 0], expected)


def test_copies_and_threads_have_calls_of_their_own(model):
    layer, x = model[0], torch.randn(3, 40)
    with torch.no_grad():
        expected = model(x)
        twin = copy.deepcopy(model)
        with torch.no_grad():
            twin[0].bias += 1
        torch.testing.assert_close(twin(x), expected + 1)
    failures = []

    def work():
        with torch.no_grad():
            for n in range(200):
                if n % 10 == 0:
                    layer._quick.release()
                if not torch.equal(model(x), expected):
                    failures.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_two_operands_may_come_later():
    """The gradient of a layer's values is a call of what it is given and of what arrives."""
    model, _ = build()
    layer, x, dy = model[0], torch.randn(2, 3, 40), torch.randn(2, 3, 24)
    layer(x).backward(dy)
    pair, input_first = layer._quick_steps._last.found()._of_values[0]
    x, dy = (x, dy) if input_first else (dy, x)
    with torch.no_grad():
        assert torch.equal(run_pair()(x, dy, pair.number), layer.weight.values.grad)
        assert torch.equal(run_pair()(x[0, 0], dy[0, 0], pair.number), run_pair()(x[:1, 0], dy[:1, 0], pair.number))
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(run_pair()(x, dy, pair.number), layer.weight.values.grad)
        with pytest.raises(RuntimeError, match="this call takes two operands"):
            torch.ops.lacis.einsum.bound(x, pair.number)
        model(torch.randn(3, 40))
        with pytest.raises(RuntimeError, match="this call takes one operand"):
            run_pair()(x, dy, bound(layer).number)
        arguments = x, dy, pair.number
        overload = torch.ops.lacis.einsum.bound_pair
        torch.library.opcheck(overload, arguments, test_utils=("test_schema", "test_faketensor"))
    with pytest.raises(RuntimeError, match="no_grad"):
        run_pair()(x, dy, pair.number)


@pytest.mark.parametrize("before", ["", "m(x)", "m(x), einsum('ij,bj->bi', w, x)"])
def test_a_call_while_the_interpreter_exits(before):
    """In `__del__`, after all handlers: it answers, or raises, and the process ends in peace."""
    script = f"""
import lacis, torch
m, x = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.ones(2, 4)
s = lacis.create_schedule(m)
s["0.weight"].set_format(lacis.Csr)
m, einsum, w = s.build(), lacis.einsum, lacis.pack(torch.eye(4), lacis.Csr)
with torch.no_grad():
    {before or "pass"}
class Late:
    held = m, x, w, einsum, torch
    def __del__(self):
        m, x, w, einsum, torch = self.held
        with torch.no_grad():
            print("answered", m(x).shape, flush=True)
            einsum("ij,bj->bi", w, x)
late = Late()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and "answered torch.Size([2, 4])" in done.stdout, done.stderr
    assert "Fatal" not in done.stderr and "terminate" not in done.stderr


def test_opcheck(model):
    with torch.no_grad():
        model(torch.randn(3, 40))
        arguments = torch.randn(2, 3, 40), bound(model[0]).number
        torch.library.opcheck(torch.ops.lacis.einsum.bound, arguments, test_utils=("test_schema", "test_faketensor"))
        assert run()(*arguments).shape == (2, 3, 24)
