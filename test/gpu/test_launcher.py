# SPDX-License-Identifier: Apache-2.0
"""The CUDA launcher: streams, graphs, threads, no synchronization, and what it refuses."""

import pathlib
import sys
import threading

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import handmade  # noqa: E402
from test_kernels import TEXT  # noqa: E402

from lacis.errors import Error  # noqa: E402
from lacis.runtime import kernels  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Problem:
    """One CSR linear layer on the GPU."""

    def __init__(self, rows=1000, columns=700, batch=33):
        major, minor = torch.cuda.get_device_capability()
        self.kernel = kernels.compile_kernel(TEXT, f"cuda:sm_{major}{minor}" + "a" * (major >= 9))
        storage, dense, x = handmade.csr_problem(rows, columns, batch)
        named = dict(zip(("pos1", "crd1", "values"), (tensor.cuda() for tensor in storage)))
        self.storage = [named[name] for name in self.kernel.storage]
        self.dense, self.x = dense.cuda(), x.cuda()

    def run(self, x=None):
        x = self.x if x is None else x
        return self.kernel([x], self.storage, [x.shape[0], self.dense.shape[0]], list(self.dense.shape))

    def expect(self, y, x=None):
        x = self.x if x is None else x
        torch.testing.assert_close(y, (x.double() @ self.dense.double().T).float(), atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def problem():
    return Problem()


def test_result(problem):
    problem.expect(problem.run())


def test_current_stream(problem):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x = problem.x * 2
        y = problem.run(x)
    stream.synchronize()
    problem.expect(y, x)


def test_never_synchronizes(problem):
    problem.run()
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        problem.run()
    finally:
        torch.cuda.set_sync_debug_mode(before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_graph_capture(mode):
    problem = Problem()  # loaded in compile_kernel, so that the first launch may be captured
    with mode():
        graph = torch.cuda.CUDAGraph()
        x = problem.x.clone()
        with torch.cuda.graph(graph):
            y = problem.run(x)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        problem.expect(y, x)


def test_new_thread(problem):
    results = []
    thread = threading.Thread(target=lambda: results.append(problem.run()))
    thread.start()
    thread.join()
    problem.expect(results[0])


def test_empty_batch(problem):
    assert problem.run(problem.x[:0]).shape == (0, 1000)


def test_compiled_by_inductor(problem):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.relu(problem.run(x)), fullgraph=True)
    torch.testing.assert_close(compiled(problem.x), torch.relu(problem.run()))


def test_refuses_tensors_of_two_devices(problem):
    with pytest.raises(Error, match="different devices"):
        problem.run(problem.x.cpu())


def test_refuses_tensors_of_the_host(problem):
    x, problem_storage = problem.x.cpu(), [tensor.cpu() for tensor in problem.storage]
    with pytest.raises(Error, match="got tensors of the CPU"):
        problem.kernel([x], problem_storage, [33, 1000], [1000, 700])


def test_driver_log_is_in_the_message():
    from lacis import _core

    launch = {"entry": "k", "grid": [handmade.dim(6)] * 3, "block": [1, 1, 1], "shared": 0}
    header = handmade.csr_header(target="cuda:sm_90a", kind="ptx", launches=[launch])
    artifact = handmade.serialise(header, b".version 8.0\n.target sm_80\n.address_size 64\n.nonsense\n")
    with pytest.raises(Exception, match="(?s)device 0, which is sm_.*CUDA_ERROR_INVALID_PTX"):
        _core.load(handmade.key_of(artifact), artifact, device=0)


def test_too_much_shared_memory():
    from lacis import _core

    ptx = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    launch = {"entry": "k", "grid": [handmade.dim(6)] * 3, "block": [1, 1, 1], "shared": 300_000}
    artifact = handmade.serialise(handmade.csr_header(target="cuda:sm_80", kind="ptx", launches=[launch]), ptx)
    with pytest.raises(Exception, match="needs 300000 bytes of shared memory"):
        _core.load(handmade.key_of(artifact), artifact, device=0)
