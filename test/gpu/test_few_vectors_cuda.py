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
    error = torch.finfo(found.dtype).eps * expected.shape[-1] ** 0.5 * 4
    torch.testing.assert_close(found.double(), expected, rtol=error, atol=error * 4)


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
    x = torch.randn(4, 512, device="cuda")
    kernel = lacis.compile("ij,bj->bi", packed, x)
    kernel(packed, x)
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        kernel(packed, x)
        torch.cuda.synchronize()
    launched = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert len(launched) == 1, launched
