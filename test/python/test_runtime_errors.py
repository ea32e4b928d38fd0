# SPDX-License-Identifier: Apache-2.0
"""What the launcher refuses, before anything runs, and in which words."""

import handmade
import pytest
import torch

from lacis import _core
from lacis.errors import CompileError
from lacis.runtime import library


@pytest.fixture(scope="module")
def key():
    return handmade.load(handmade.csr_linear())


STORAGE, DENSE, X = handmade.csr_problem()
VALID = {"operands": [X], "storage": STORAGE, "shape": [5, 37], "packed_shape": [37, 29]}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"operands": []}, "expected 1 dense operands, got 0"),
        ({"operands": [X.double()]}, "operand 1: expected dtype f32, got f64"),
        ({"operands": [X[0]]}, "operand 1: expected 2 dimensions, got 1"),
        ({"storage": STORAGE[:2]}, r"expected 3 storage tensors \(pos1, crd1, values\), got 2"),
        ({"storage": [STORAGE[0].long(), *STORAGE[1:]]}, "pos1: expected dtype i32, got i64"),
        ({"storage": [STORAGE[0].repeat_interleave(2)[::2], *STORAGE[1:]]}, "pos1: expected a contiguous tensor"),
        ({"shape": [5, 36]}, r"output: expected shape \[5, 37\], got \[5, 36\]"),
        ({"shape": [5]}, "output: expected 2 dimensions, got 1"),
        ({"shape": [-1, 37]}, "negative size"),
        ({"packed_shape": []}, "expected the 1 sizes of the packed operand"),
        ({"packed_shape": [2**31, 29], "shape": [5, 2**31]}, "64-bit indices"),
    ],
)
def test_refused_arguments(key, change, message):
    arguments = {**VALID, **change}
    if arguments["shape"] == [5, 2**31]:
        arguments["operands"], arguments["shape"] = [X[:0]], [0, 2**31]
    with pytest.raises(RuntimeError, match=message):
        library.einsum(arguments["operands"], arguments["storage"], arguments["shape"], key, arguments["packed_shape"])


def test_unknown_key():
    library.register()
    with pytest.raises(RuntimeError, match="no kernel 'no such key' is loaded.*LACIS_KERNEL_PATH"):
        library.einsum([X], STORAGE, [5, 37], "no such key", [37, 29])


def test_damaged_artifact():
    artifact = bytearray(handmade.csr_linear())
    artifact[100] ^= 1
    with pytest.raises(CompileError, match="damaged artifact"):
        _core.load("1" * 64, bytes(artifact))
    with pytest.raises(CompileError, match="not an artifact"):
        _core.artifact_info(b"")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"args": [{"kind": "banana", "operand": 0}]}, "banana"),
        ({"launches": [{"entry": "no_such_function", "units": handmade.dim(6)}]}, "no_such_function"),
        ({"output": {"dtype": "f31", "shape": []}}, "f31"),
        ({"kind": "wasm"}, "wasm"),
    ],
)
def test_malformed_header(change, message):
    artifact = handmade.csr_linear(**change)
    with pytest.raises(CompileError, match=message):
        _core.load(handmade.key_of(artifact), artifact)


def test_unresolved_function_is_named():
    code = handmade.compile_c("extern double sin(double); void linear_0(double *x) { *x = sin(*x); }")
    artifact = handmade.serialise(handmade.csr_header(), code)
    with pytest.raises(CompileError, match="sin"):
        _core.load(handmade.key_of(artifact), artifact)


def test_host_kernel_on_a_gpu():
    artifact = handmade.csr_linear(index_bits=64)
    with pytest.raises(CompileError, match="made for the CPU"):
        _core.load(handmade.key_of(artifact), artifact, device=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_cuda_kernel_without_a_driver():
    launch = {"entry": "k", "grid": [handmade.dim(6)] * 3, "block": [1, 1, 1], "shared": 0}
    header = handmade.csr_header(target="cuda:sm_90a", kind="ptx", launches=[launch])
    artifact = handmade.serialise(header, b".version 8.0\n.target sm_90a\n.address_size 64\n")
    with pytest.raises(CompileError, match="no CUDA driver on this machine"):
        _core.load(handmade.key_of(artifact), artifact, device=0)
    with pytest.raises(CompileError, match="made for cuda:sm_90a got tensors of the CPU"):
        _core.load(handmade.key_of(artifact), artifact)


def test_sixty_four_bit_kernels_take_any_size():
    key = handmade.load(handmade.csr_linear(index_bits=64))
    y = library.einsum([X[:0]], STORAGE, [0, 2**31], key, [2**31, 29])
    assert y.shape == (0, 2**31)
