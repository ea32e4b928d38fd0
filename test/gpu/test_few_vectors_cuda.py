# SPDX-License-Identifier: Apache-2.0
"""Products with few vectors: nests of their own, picked by the size at the launch, the same numbers on both sides."""

import pathlib
import sys

import lacis
import pytest
import torch
from lacis import steps

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from conformance import bound, product  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

SIZES = (1, 2, 3, 4, 5, 8, 9, 16, 31, 32, 33, 64, 65, 96)
FORMATS = [lacis.Csr, lacis.Csc, lacis.Coo, lacis.Dcsr, lacis.Ell, lacis.Bsr(4, 4), lacis.Bsr(16, 16), lacis.Bsr(32, 8)]


def sparse(rows: int, columns: int, dtype) -> torch.Tensor:
    dense = torch.randn(rows, columns, device="cuda") * (torch.rand(rows, columns, device="cuda") < 0.1)
    dense[3] = 0
    dense[5] = torch.randn(columns, device="cuda")
    return dense.to(dtype)


def close(found, x, w, bias=None, slope: float = 1.0, expected=None):
    """Against `x @ w.T + bias` in float64, or `expected` of it; `slope` is by how much that may multiply an error."""
    x, w = x.to(found.dtype), w.to(found.dtype)
    expected = product(x, w, bias) if expected is None else expected
    error = (found.double() - expected).abs()
    assert (error <= slope * bound(x, w, bias)).all(), error.max()


@pytest.mark.parametrize("format", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(130, 301), (256, 512)], ids=str)
def test_one_kernel_takes_every_number_of_tokens(format, dtype, shape):
    dense = sparse(*shape, dtype)
    packed = lacis.pack(dense, format)
    x = torch.randn(max(SIZES), shape[1], device="cuda", dtype=dtype)
    kernel = lacis.compile("ij,bj->bi", packed, x[:1])
    for size in SIZES:
        found = kernel(packed, x[:size])
        close(found, x[:size], dense)
        assert torch.equal(kernel(packed, x[:size]), found)
        columns = x[:size].T.contiguous()
        close(lacis.einsum("ij,jk->ik", packed, columns).T, x[:size], dense)


TURNED = "(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, j mod 32 : dense, i mod 32 : dense)"


@pytest.mark.parametrize("expression", ["ij,bj->bi", "ij,jb->bi", "ij,bj->ib", "ij,jb->ib"])
@pytest.mark.parametrize("format", [lacis.Bsr(16, 16), lacis.Bsr(32, 32), lacis.Bsr(64, 128), TURNED], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_warps_multiply_stored_blocks_in_any_order(expression, format, dtype):
    dense, bias = sparse(256, 384, dtype), torch.randn(256, device="cuda", dtype=dtype)
    packed, (left, right) = lacis.pack(dense, format), expression[3:].split("->")
    rows = lambda t, letters: t if letters[0] == "b" else t.T  # of tokens
    for size in (1, 7, 8, 9, 32, 33):
        sizes = {"i": 256, "j": 384, "b": size}
        x, dy = (torch.randn([sizes[n] for n in term], device="cuda", dtype=dtype) for term in (left, right))
        kernel = lacis.compile(expression, packed, x, epilogue=lacis.Epilogue(bias=bias, activation="relu"))
        of_input = lacis.compile(expression, packed, x).family.gradient("1").kernel
        assert "mma.sync" in kernel.asm["tiles"]
        with torch.no_grad():
            found = kernel(packed, x)
            assert torch.equal(kernel(packed, x), found)
            want = torch.relu(product(rows(x, left), dense, bias))
            close(rows(found, right), rows(x, left), dense, bias, expected=want)
            close(rows(of_input.run([dy], packed, x.shape), left), rows(dy, right), dense.T)


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_a_matrix_times_a_vector(format):
    dense = sparse(256, 512, torch.float32)
    packed, x = lacis.pack(dense, format), torch.randn(512, device="cuda")
    close(lacis.einsum("ij,j->i", packed, x)[None], x[None], dense)
    close(lacis.einsum("ij,i->j", packed, x[:256])[None], x[None, :256], dense.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_few_features_of_an_uneven_graph(dtype):
    """Rows of 1 to 3,000 entries and some without; a share that one row fills, and shares of many rows."""
    lengths = torch.cat([torch.tensor([3000, 0, 0, 1500]), torch.randint(0, 9, (700,))])
    kept = (torch.arange(3001)[None] < lengths[:, None]).cuda()
    dense = (torch.randn(704, 3001, device="cuda") * kept).to(dtype)
    packed = lacis.pack(dense, lacis.Csr)
    assert packed.pattern.uneven == (True, True)
    close(lacis.einsum("ij,j->i", packed, dense[0])[None], dense[:1], dense)
    for features in (1, 2, 3, 4, 5, 8, 9, 33):
        x = torch.randn(3001, features, device="cuda", dtype=dtype)
        found = lacis.einsum("ij,jk->ik", packed, x)
        close(found.T, x.T, dense)
        assert torch.equal(lacis.einsum("ij,jk->ik", packed, x), found)
        close(lacis.einsum("ij,bj->bi", packed, x.T.contiguous()), x.T, dense)


@pytest.mark.parametrize("stages", [2, 5])
def test_entries_that_are_loaded_ahead_are_added_up_in_the_same_order(stages):
    """One row has every entry, one has none."""
    dense, x = sparse(256, 512, torch.float32), torch.randn(512, device="cuda")
    packed = lacis.pack(dense, lacis.Csr)
    rows = [steps.Split("i", 128), steps.Bind("i0", "block.x"), steps.Bind("i1", "thread.x")]
    plain = lacis.einsum("ij,j->i", packed, x, steps=rows)
    found = lacis.einsum("ij,j->i", packed, x, steps=[*rows, steps.Pipeline("j", stages)])
    assert torch.equal(found, plain)
    close(found[None], x[None], dense)


def test_a_layer_decodes_and_prefills_with_one_kernel():
    dense = torch.nn.Linear(512, 256, device="cuda")
    model = torch.nn.Sequential(dense)
    s = lacis.create_schedule(model)
    s["0.weight"].sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csr)
    s.build()
    weight = s["0.weight"].packed.to_dense()
    assert any(isinstance(step, steps.Upto) for step in s["0.weight"].kernel.steps)
    with torch.inference_mode():
        for size in SIZES:
            x = torch.randn(size, 512, device="cuda")
            close(model(x), x, weight, model[0].bias)


@pytest.mark.parametrize("size, launches", [(1, 1), (4, 1), (5, 2), (32, 2), (64, 2), (65, 3)])
def test_few_vectors_are_one_launch_without_a_workspace(size, launches):
    """From five vectors on they are copied, from 65 on the output too, in launches and a workspace of their own."""
    even = torch.randn(256, 512, device="cuda") * (torch.rand(256, 512, device="cuda") < 0.1)
    packed, x = lacis.pack(even, lacis.Csr), torch.randn(size, 512, device="cuda")
    kernel = lacis.compile("ij,bj->bi", packed, x)
    with torch.no_grad():
        kernel(packed, x)
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        kernel(packed, x)
        allocated = torch.cuda.memory_stats()["allocation.all.allocated"] - before
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            kernel(packed, x)
            torch.cuda.synchronize()
    launched = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert allocated == min(launches, 2), "the output, and a workspace where copies are made"
    assert not launched or len(launched) == launches, launched  # none where the machine lets nobody look


def test_the_first_call_of_a_packed_operand_may_be_captured():
    dense, x = sparse(256, 512, torch.float32), torch.randn(2, 512, device="cuda")
    kernel = lacis.compile("ij,bj->bi", lacis.pack(dense, lacis.Csr), x)
    packed, graph = lacis.pack(dense, lacis.Csr), torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        y = kernel(packed, x)
    graph.replay()
    close(y, x, dense)
    with pytest.raises(lacis.DataError, match="once before the capture"), torch.no_grad():
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            lacis.einsum("ij,bj->bi", packed, x, epilogue=lacis.Epilogue(scale=0.3, activation="relu"))


BLOCKS = [
    *(lacis.Bsr(size, size) for size in (16, 32, 64, 128)),
    lacis.Bsr(64, 16),
    lacis.Bsr(16, 128),
    lacis.Bcsc(32, 32),
    lacis.BlockedEll(16, 16),
]


def blocked(rows: int, columns: int, dtype, kept: float = 0.3) -> torch.Tensor:
    """Whole blocks of 16, with a row of blocks that is full and one that is empty."""
    grid = torch.rand(rows // 16, columns // 16, device="cuda") < kept
    grid[:8] = False
    grid[8:16] = True
    mask = grid.repeat_interleave(16, 0).repeat_interleave(16, 1)
    return (torch.randn(rows, columns, device="cuda") * mask).to(dtype)


@pytest.mark.parametrize("format", BLOCKS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_blocks_of_half_types_are_multiplied_by_tensor_cores(format, dtype):
    dense = blocked(512, 1024, dtype)
    packed, x = lacis.pack(dense, format), torch.randn(max(SIZES), 1024, device="cuda", dtype=dtype)
    bias = torch.randn(512, device="cuda", dtype=dtype)
    kernel = lacis.compile("ij,bj->bi", packed, x[:1])
    assert any(isinstance(step, steps.Tensorize) and step.kind == "mma" for step in kernel.steps)
    epilogue = lacis.Epilogue(bias=bias, activation="gelu")
    for size in SIZES:
        found = kernel(packed, x[:size])
        close(found, x[:size], dense)
        for _ in range(20):
            assert torch.equal(kernel(packed, x[:size]), found)
        finished = lacis.einsum("ij,bj->bi", packed, x[:size], epilogue=epilogue)
        expected = torch.nn.functional.gelu(product(x[:size], dense, bias))
        close(finished, x[:size], dense, bias, slope=1.2, expected=expected)


@pytest.mark.parametrize("block", [16, 64])
def test_a_batch_on_either_side_of_the_limits_is_one_model(block):
    model = torch.nn.Sequential(torch.nn.Linear(1024, 512, device="cuda", dtype=torch.bfloat16))
    s = lacis.create_schedule(model)
    s["0.weight"].block(block, block).sparsify(lacis.BlockMagnitude(0.7)).set_format(lacis.Bsr)
    s.build()
    weight, bias = s["0.weight"].packed.to_dense(), model[0].bias
    with torch.inference_mode():
        for size in (*SIZES, 200):
            x = torch.randn(size, 1024, device="cuda", dtype=torch.bfloat16)
            close(model(x), x, weight, bias)
