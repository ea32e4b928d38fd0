# SPDX-License-Identifier: Apache-2.0
"""What a call of `lacis.attention` asks of the host again and again, and what it does not."""

import types

import pytest
import torch
from dense_attention import drawn

import lacis
from lacis.attentions import tiles
from lacis.runtime import chain
from lacis.runtime.autocast import outside


@pytest.fixture
def capabilities(monkeypatch):
    """The devices that torch is asked for, of which the second is an older one."""
    asked = []

    def capability(device):
        asked.append(device.index)
        return (7, 5) if device.index else (9, 0)

    monkeypatch.setattr(torch.cuda, "get_device_capability", capability)
    tiles._has_tiles.cache_clear()
    yield asked
    tiles._has_tiles.cache_clear()


def test_what_a_device_can_is_asked_once_for_each(capabilities):
    on = lambda device, dtype: types.SimpleNamespace(device=torch.device(device), dtype=dtype)
    for _ in range(2):
        assert tiles.takes_type(on("cuda:0", torch.bfloat16)) and tiles.takes_type(on("cuda:0", torch.float16))
        assert not tiles.takes_type(on("cuda:1", torch.bfloat16))
        assert not tiles.takes_type(on("cuda:0", torch.float32)) and not tiles.takes_type(on("cpu", torch.bfloat16))
    assert capabilities == [0, 1]


def test_padding_that_no_kernel_reads_is_not_made():
    pattern = lacis.Pattern.from_mask(drawn(8, 8), lacis.Csr)
    assert pattern.array("", "", "crd1") is pattern.part().buffers["crd1"]
    assert "kernel_arrays" not in vars(pattern.part())
    assert pattern.array("", "", "valid").shape == (0,)


def test_a_region_is_left_where_there_is_one(monkeypatch):
    with torch.autocast("cpu", torch.bfloat16):
        with outside("cpu"):
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_enabled("cpu")
    monkeypatch.setattr(torch, "autocast", lambda *given, **named: pytest.fail("no region is there"))
    with outside("cpu"):
        assert not torch.is_autocast_enabled("cpu")


def test_lengths_of_one_class_are_one_text(monkeypatch):
    """A kernel is written for the first of them alone, and so are the formats of their patterns."""
    written, read = [], []
    emit, parse = chain.emit_chain, lacis.Format.parse
    monkeypatch.setattr(chain, "emit_chain", lambda spec: written.append(spec.divisible) or emit(spec))
    monkeypatch.setattr(lacis.Format, "parse", lambda text: read.append(text) or parse(text))
    rule, q = lacis.Local(20, block=16), torch.randn(1, 1, 8, 4)
    for keys in range(33, 43, 2):
        k = torch.randn(1, 1, keys, 4)
        lacis.attention(q, k, k, rule)
    assert len(written) == 1 and len(read) <= 1


@pytest.mark.long
def test_numbers_that_are_equal_and_print_otherwise_are_other_kernels():
    """A sign of zero that a function reads from outside."""
    number, x = [0.0], torch.ones(2, 1)

    @lacis.kernel
    def divided(a, b, pattern):
        return 1 / (lacis.einsum("ij,ik,jk->ij", pattern, a, b) * number[0])

    for size, number[0], found in ((3, 0.0, torch.inf), (5, -0.0, -torch.inf)):
        pattern = lacis.Pattern.from_mask(torch.ones(2, size).bool(), lacis.Csr)
        assert (divided(x, torch.ones(size, 1), pattern).values == found).all()
