# SPDX-License-Identifier: Apache-2.0
"""The torch operators: results, fake kernels, gradients, threads, torch.compile, export."""

import copy
import subprocess
import sys

import handmade
import pytest
import lacis
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from lacis.errors import DataError, Error
from lacis.runtime import library


@pytest.fixture(scope="module")
def key():
    return handmade.load(handmade.csr_linear())


def call(key, storage, x, rows, columns):
    return library.einsum([x], storage, [x.shape[0], rows], key, [rows, columns])


def test_matches_dense(key):
    storage, dense, x = handmade.csr_problem()
    torch.testing.assert_close(call(key, storage, x, 37, 29), x @ dense.T)


def test_strided_input(key):
    storage, dense, x = handmade.csr_problem()
    x = x.T.contiguous().T
    assert not x.is_contiguous()
    torch.testing.assert_close(call(key, storage, x, 37, 29), x @ dense.T)


@pytest.mark.parametrize("rows, batch", [(0, 5), (37, 0), (1, 1)])
def test_empty_and_single(key, rows, batch):
    storage, dense, x = handmade.csr_problem(rows=rows, batch=batch)
    y = call(key, storage, x, rows, 29)
    assert y.shape == (batch, rows)
    torch.testing.assert_close(y, x @ dense.T)


def test_obeys_torch_threads_and_never_depends_on_them(key):
    storage, dense, x = handmade.csr_problem(rows=2000, columns=500, batch=16)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(call(key, storage, x, 2000, 500))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(results[0], r) for r in results)


def test_no_grad_and_inference_mode(key):
    storage, dense, x = handmade.csr_problem()
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            y = call(key, storage, x, 37, 29)
        torch.testing.assert_close(y, x @ dense.T)
        assert not y.requires_grad


def test_backward_raises(key):
    storage, _, x = handmade.csr_problem()
    x.requires_grad_()
    y = call(key, storage, x, 37, 29)
    assert y.requires_grad
    with pytest.raises(Error, match="loaded without the kernels of its gradients"):
        y.sum().backward()
    assert x.grad is None


def test_inference_overload_refuses_grad_mode(key):
    storage, _, x = handmade.csr_problem()
    with pytest.raises(RuntimeError, match="no_grad"):
        torch.ops.lacis.einsum.inference([x, *storage], [2, 5, 37, 37, 29], key)


def test_opcheck(key):
    storage, _, x = handmade.csr_problem()
    arguments = ([x], storage, [5, 37], key, [37, 29], [])
    tests = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_static",
        "test_aot_dispatch_dynamic",
    )
    torch.library.opcheck(torch.ops.lacis.einsum.default, arguments, test_utils=tests)
    with torch.no_grad():
        torch.library.opcheck(
            torch.ops.lacis.einsum.inference,
            ([x, *storage], [2, 5, 37, 37, 29], key),
            test_utils=("test_schema", "test_faketensor"),
        )


class Linear(torch.nn.Module):
    def __init__(self, key, storage, shape):
        super().__init__()
        self.key, self.shape = key, shape
        for name, tensor in zip(("pos1", "crd1", "values"), storage):
            self.register_buffer(name, tensor)

    def forward(self, x):
        y = library.einsum([x], [self.pos1, self.crd1, self.values], [x.shape[0], self.shape[0]], self.key, self.shape)
        return torch.relu(y)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_torch_compile(key, dynamic, grad):
    storage, dense, x = handmade.csr_problem()
    torch._dynamo.reset()
    model = torch.compile(Linear(key, storage, (37, 29)), fullgraph=True, dynamic=dynamic, backend="aot_eager")
    with torch.set_grad_enabled(grad):
        for batch in (5, 9):
            x = torch.randn(batch, 29)
            torch.testing.assert_close(model(x), torch.relu(x @ dense.T))


def test_export(key):
    storage, dense, x = handmade.csr_problem()
    batch = torch.export.Dim("batch")
    program = torch.export.export(Linear(key, storage, (37, 29)), (x,), dynamic_shapes={"x": {0: batch}})
    x = torch.randn(11, 29)
    torch.testing.assert_close(program.module()(x), torch.relu(x @ dense.T))


def test_deepcopied_storage(key):
    storage, dense, x = handmade.csr_problem()
    model = copy.deepcopy(Linear(key, storage, (37, 29)))
    torch.testing.assert_close(model(x), torch.relu(x @ dense.T))


def test_only_the_stable_abi():
    path = library._library_path("_ops.so")
    symbols = subprocess.run(["nm", "-D", "-C", "--undefined-only", path], capture_output=True, text=True, check=True)
    assert "torch_parallel_for" in symbols.stdout
    for prefix in ("at::", "c10::", "torch::jit", "caffe2::"):
        assert prefix not in symbols.stdout


def test_threads_register_once():
    script = """
import threading
from lacis.runtime import library
threads = [threading.Thread(target=library.register) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Overriding" not in done.stderr


def test_fake_results_have_the_dtype_that_the_kernel_answers():
    w, x = lacis.pack(torch.eye(3).half(), lacis.Csr), torch.ones(3).half()
    kernel = lacis.compile("ij,k->ijk", w, x)  # sums up in float32, and is rounded afterwards
    arguments = ([x], kernel.arrays(w), [3, 3, 3], kernel.key, [3, 3], [])
    assert kernel.family.key == kernel.key and torch.ops.lacis.einsum.default(*arguments).dtype == torch.float32
    torch.library.opcheck(torch.ops.lacis.einsum.default, arguments, test_utils=("test_schema", "test_faketensor"))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert lacis.einsum("ij,k->ijk", w, mode.from_tensor(x)).dtype == torch.float16


def test_a_call_without_what_its_gradient_walks_says_so():
    w, x = lacis.pack(torch.eye(3), lacis.Csr), torch.ones(2, 3, requires_grad=True)
    kernel = lacis.compile("ij,bj->bi", w, x)
    kernel.family.bind(["1"])
    y = torch.ops.lacis.einsum.default([x], kernel.arrays(w), [2, 3], kernel.key, [3, 3], [])
    with pytest.raises(DataError, match=r"walks 'pos\d' of the index #lacis.format<.*'companions'"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="expected .*, got 2"):
        torch.ops.lacis.einsum.default([x], kernel.arrays(w)[:2], [2, 3], kernel.key, [3, 3], [])
