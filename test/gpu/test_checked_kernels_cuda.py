# SPDX-License-Identifier: Apache-2.0
"""Checked kernels on a GPU: a damaged array raises and nothing is out of bounds; sound ones give the same numbers."""

import lacis
import pytest
import torch
from lacis.runtime import library

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
FORMATS = [lacis.Csr, lacis.Csc, lacis.Coo, lacis.Ell, lacis.Bsr(16, 16)]


def operands(format, dtype=torch.float32):
    torch.manual_seed(0)
    w = lacis.pack((torch.randn(256, 192) * (torch.rand(256, 192) < 0.2)).to("cuda", dtype), format)
    return w, torch.randn(33, 192, device="cuda", dtype=dtype)


def launched(kernel, w, x):
    """The launch alone, without a look through the operand."""
    return library.einsum([x], kernel.arrays(w), (x.shape[0], w.shape[0]), kernel.key, list(w.shape))


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_damaged_arrays_raise(format, monkeypatch):
    w, x = operands(format)
    plain = lacis.compile("ij,bj->bi", w, x)
    monkeypatch.setenv("LACIS_DEBUG", "1")
    checked = lacis.compile("ij,bj->bi", w, x)
    expected = plain(w, x)
    for array in checked.arrays(w):
        if array.is_floating_point() or array.dtype == torch.bool or array.numel() == 0:
            continue
        for value in (10**6, -(10**6), 2**31 - 1):
            kept = array.flatten()[-1].clone()
            array.view(-1)[-1] = value
            try:
                launched(checked, w, x)  # a value that no walk meets does no harm
            except lacis.DataError as error:
                assert "a checked kernel asked for element" in error.message
            array.view(-1)[-1] = kept
        torch.cuda.synchronize()
        torch.testing.assert_close(launched(checked, w, x), expected, rtol=0, atol=0)
    coordinates = next(a for a, name in zip(checked.arrays(w), checked.names) if name[2].startswith("crd"))
    coordinates.fill_(10**6)
    with pytest.raises(lacis.DataError, match="a checked kernel asked for element"):
        launched(checked, w, x)


@pytest.mark.skipif(
    torch.cuda.is_available() and torch.cuda.get_device_capability() != (9, 0), reason="no tensor cores of sm_90a"
)
@pytest.mark.parametrize("block", [16, 64])
def test_kernels_for_tensor_cores(block, monkeypatch):
    torch.manual_seed(0)
    blocks = torch.rand(512 // block, 512 // block) < 0.3
    dense = torch.randn(512, 512) * blocks.repeat_interleave(block, 0).repeat_interleave(block, 1)
    w = lacis.pack(dense.to("cuda", torch.bfloat16), lacis.Bsr(block, block))
    x = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    expected = lacis.compile("ij,bj->bi", w, x)(w, x)
    monkeypatch.setenv("LACIS_DEBUG", "1")
    checked = lacis.compile("ij,bj->bi", w, x)
    assert "tiles" in checked.stages and "lacis.checked" in checked.text
    torch.testing.assert_close(launched(checked, w, x), expected, rtol=0, atol=0)
    for array, name in zip(checked.arrays(w), checked.names):
        if not name[2].startswith("crd") or array.numel() == 0:
            continue
        kept = array.clone()
        array.fill_(10**5)
        with pytest.raises(lacis.DataError, match="a checked kernel asked for element"):
            launched(checked, w, x)
        array.copy_(kept)
        torch.testing.assert_close(launched(checked, w, x), expected, rtol=0, atol=0)


def test_a_graph_cannot_be_captured(monkeypatch):
    monkeypatch.setenv("LACIS_DEBUG", "1")
    w, x = operands(lacis.Csr)
    kernel = lacis.compile("ij,bj->bi", w, x)
    launched(kernel, w, x)
    refused = (
        r"a checked kernel \(LACIS_DEBUG\) waits for the device, which a CUDA graph cannot record; "
        "capture without LACIS_DEBUG"
    )
    with pytest.raises(lacis.CompileError, match=refused):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            launched(kernel, w, x)
    torch.randn(3, device="cuda")  # the capture that failed has ended
    launched(kernel, w, x)
