# SPDX-License-Identifier: Apache-2.0
"""Products with few vectors: nests of their own, picked by the size at the launch, the same numbers on both sides."""

import lacis
import pytest
import torch
from lacis import steps

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

SIZES = (1, 2, 3, 4, 5, 8, 9, 16, 31, 32, 33)
FORMATS = [lacis.Csr, lacis.Csc, lacis.Coo, lacis.Dcsr, lacis.Ell, lacis.Bsr(4, 4), lacis.Bsr(16, 16), lacis.Bsr(32, 8)]


def sparse(rows: int, columns: int, dtype) -> torch.Tensor:
    dense = torch.randn(rows, columns, device="cuda") * (torch.rand(rows, columns, device="cuda") < 0.1)
    dense[3] = 0
    dense[5] = torch.randn(columns, device="cuda")
    return dense.to(dtype)


def close(found, expected):
    """Sums of a few hundred products of magnitude one, rounded once to the dtype."""
    accumulate = torch.finfo(torch.float64 if found.dtype == torch.float64 else torch.float32).eps
    allowed = expected.abs() * torch.finfo(found.dtype).eps + 512 * accumulate
    assert ((found.double() - expected).abs() <= 2 * allowed).all(), (found.double() - expected).abs().max()


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
        close(found, x[:size].double() @ dense.double().T)
        assert torch.equal(kernel(packed, x[:size]), found)
        columns = x[:size].T.contiguous()
        close(lacis.einsum("ij,jk->ik", packed, columns), dense.double() @ columns.double())


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_a_matrix_times_a_vector(format):
    dense = sparse(256, 512, torch.float32)
    packed, x = lacis.pack(dense, format), torch.randn(512, device="cuda")
    close(lacis.einsum("ij,j->i", packed, x), dense.double() @ x.double())
    close(lacis.einsum("ij,i->j", packed, x[:256]), x[:256].double() @ dense.double())


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
            torch.testing.assert_close(
                model(x), torch.nn.functional.linear(x, weight, dense.bias), rtol=1e-4, atol=1e-4
            )


def test_few_vectors_allocate_no_workspace():
    packed = lacis.pack(sparse(256, 512, torch.float32), lacis.Csr)
    x = torch.randn(5, 512, device="cuda")
    kernel = lacis.compile("ij,bj->bi", packed, x)
    allocations = []
    with torch.no_grad():
        for size in (1, 4, 5):
            kernel(packed, x[:size])
            before = torch.cuda.memory_stats()["allocation.all.allocated"]
            kernel(packed, x[:size])
            allocations.append(torch.cuda.memory_stats()["allocation.all.allocated"] - before)
    assert allocations == [1, 1, 2], "the output; and a workspace where copies are made"


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
        expected = x[:size].double() @ dense.double().T
        found = kernel(packed, x[:size])
        close(found, expected)
        for _ in range(20):
            assert torch.equal(kernel(packed, x[:size]), found)
        finished = lacis.einsum("ij,bj->bi", packed, x[:size], epilogue=epilogue)
        close(finished, torch.nn.functional.gelu(expected + bias.double()))


@pytest.mark.parametrize("block", [16, 64])
def test_a_batch_on_either_side_of_the_limits_is_one_model(block):
    model = torch.nn.Sequential(torch.nn.Linear(1024, 512, device="cuda", dtype=torch.bfloat16))
    s = lacis.create_schedule(model)
    s["0.weight"].block(block, block).sparsify(lacis.BlockMagnitude(0.7)).set_format(lacis.Bsr)
    s.build()
    weight, bias = s["0.weight"].packed.to_dense().double(), model[0].bias.double()
    with torch.inference_mode():
        for size in (*SIZES, 64, 200):
            x = torch.randn(size, 1024, device="cuda", dtype=torch.bfloat16)
            close(model(x), x.double() @ weight.T + bias)
