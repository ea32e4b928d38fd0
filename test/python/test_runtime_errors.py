# SPDX-License-Identifier: Apache-2.0
"""What the launcher refuses, before anything runs, and in which words."""

import handmade
import lacis
import pytest
import strategies
import torch

from lacis import _core
from lacis.errors import CompileError, DataError
from lacis.runtime import library
from lacis.runtime.bound import BoundCall


@pytest.fixture(scope="module")
def key():
    return handmade.load(handmade.csr_linear())


STORAGE, DENSE, X = handmade.csr_problem()
VALID = {"operands": [X], "storage": STORAGE, "shape": [5, 37], "packed_shape": [37, 29]}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"operands": []}, "expected (1 dense operands, got 0|3 storage tensors)"),
        ({"shape": [1] * 17}, "tensors have at most 16 dimensions"),
        ({"operands": [X.double()]}, "operand 1: expected dtype f32, got f64"),
        ({"operands": [X.cfloat()]}, "operand 1: expected dtype f32, got a dtype that lacis has no kernels for"),
        ({"operands": [X[0]]}, "operand 1: expected 2 dimensions, got 1"),
        ({"storage": STORAGE[:2]}, r"expected 3 storage tensors \(pos1, crd1, values\), got 2"),
        ({"storage": [STORAGE[0].long(), *STORAGE[1:]]}, "pos1: expected dtype i32, got i64"),
        ({"storage": [STORAGE[0].repeat_interleave(2)[::2], *STORAGE[1:]]}, "pos1: expected a contiguous tensor"),
        (
            {"operands": [X[:, :28]]},
            "operand 1: expected size 29 in dimension 1 \\('j', as in dimension 1 of operand 0\\), got 28",
        ),
        ({"storage": [STORAGE[0][:-1], *STORAGE[1:]]}, "pos1: expected size 38 in dimension 0, got 37"),
        ({"storage": [*STORAGE[:2], STORAGE[2][:-1]]}, "values: expected size .* \\(as in dimension 0 of crd1\\), got"),
        (
            {"shape": [5, 36]},
            "output: expected size 37 in dimension 1 \\('i', as in dimension 0 of operand 0\\), got 36",
        ),
        ({"shape": [4, 37]}, "output: expected size 5 in dimension 0 \\('b', as in dimension 0 of operand 1\\), got 4"),
        ({"shape": [5]}, "output: expected 2 dimensions, got 1"),
        ({"shape": [-1, 37]}, "negative size in the shape of the output"),
        ({"packed_shape": []}, "expected the 2 sizes of the packed operand, got 0"),
        ({"packed_shape": [-1, 29]}, "a negative size of the packed operand: -1"),
    ],
)
@pytest.mark.parametrize("grad", [False, True])
def test_refused_arguments(key, change, message, grad):
    arguments = {**VALID, **change}
    with pytest.raises(DataError, match=message), torch.set_grad_enabled(grad):
        library.einsum(arguments["operands"], arguments["storage"], arguments["shape"], key, arguments["packed_shape"])


def test_the_operator_itself_raises_what_torch_raises(key):
    with pytest.raises(RuntimeError, match="lacis data: operand 1: expected size 29 in dimension 1"):
        torch.ops.lacis.einsum.default([X[:, :28]], STORAGE, [5, 37], key, [37, 29], [])
    with pytest.raises(RuntimeError, match="lacis data: output: expected size 37"), torch.inference_mode():
        torch.ops.lacis.einsum.inference([X, *STORAGE], [2, 5, 36, 37, 29], key)
    with pytest.raises(RuntimeError, match="a bound call drops -1 sizes; expected none or more"):
        torch.ops.lacis.bind.default(STORAGE, key, [37, 29], -1, [37])
    with pytest.raises(RuntimeError, match="a bound call needs 1 dense operands, of which 2 come later"):
        torch.ops.lacis.bind.pair(STORAGE, key, [37, 29], [5, 37])
    with pytest.raises(RuntimeError, match="of which 0 come later; got 0 tensors"):
        torch.ops.lacis.bind.fill([], key, X)
    with pytest.raises(RuntimeError, match="this call fills nothing"):
        torch.ops.lacis.fill(torch.ops.lacis.bind.default(STORAGE, key, [37, 29], 1, [37]))
    for sizes in ([], [-1], [3, 5, 37]):
        with pytest.raises(RuntimeError, match="begin with the rank of the output"), torch.inference_mode():
            torch.ops.lacis.einsum.inference([X, *STORAGE], sizes, key)


def freed(tensor: torch.Tensor, bytes: int = 0) -> torch.Tensor:
    """A tensor whose storage is smaller than it, as sharded training leaves them."""
    tensor = tensor.clone()
    tensor.untyped_storage().resize_(bytes)
    return tensor


WITHOUT_MEMORY = (
    "has .* elements and no memory for them, its storage was freed or made smaller; gather or load it first"
)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("bytes", [0, 4])
@pytest.mark.parametrize("place, name", [(0, "operand 1"), (1, "pos1"), (2, "crd1"), (3, "values")])
def test_freed_storage(key, place, name, bytes, grad):
    for x in [X, X.T.contiguous().T][: 2 if place == 0 else 1]:
        tensors = [freed(each, bytes) if n == place else each for n, each in enumerate([x, *STORAGE])]
        with pytest.raises(DataError, match=f"{name}: the tensor {WITHOUT_MEMORY}"), torch.set_grad_enabled(grad):
            library.einsum(tensors[:1], tensors[1:], [5, 37], key, [37, 29])


def test_a_layer_whose_values_were_freed():
    model = torch.nn.Sequential(torch.nn.Linear(40, 24))
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    x, values = torch.randn(3, 40, requires_grad=True), s.build()[0].weight.values
    with torch.no_grad():
        expected, kept = model(x), values.clone()
    model(x)
    y = model(x)
    size = values.untyped_storage().nbytes()
    values.untyped_storage().resize_(0)
    for grad in (False, True):
        with pytest.raises(DataError, match=f"values: the tensor {WITHOUT_MEMORY}"), torch.set_grad_enabled(grad):
            model(x)
    with pytest.raises(DataError, match=f"values: the tensor {WITHOUT_MEMORY}"):
        y.sum().backward()
    values.untyped_storage().resize_(size)
    with torch.no_grad():
        values.data.copy_(kept)
        assert torch.equal(model(x), expected)


def test_tensors_of_the_meta_device_beside_real_ones(key):
    for grad in (False, True):
        for place in range(4):
            tensors = [tensor.to("meta") if n == place else tensor for n, tensor in enumerate([X, *STORAGE])]
            with pytest.raises(DataError, match=f"tensor {place} of the call lies on the meta device"):
                with torch.set_grad_enabled(grad):
                    library.einsum(tensors[:1], tensors[1:], [5, 37], key, [37, 29])
    meta = [tensor.to("meta") for tensor in [X, *STORAGE]]
    assert library.einsum(meta[:1], meta[1:], [5, 37], key, [37, 29]).is_meta
    with torch.no_grad():
        call = BoundCall(STORAGE, key, [37, 29], 1, [37])
        with pytest.raises(RuntimeError, match="an operand lies on the meta device"):
            torch.ops.lacis.einsum.bound(X.to("meta"), call.number)


def test_companions_alone_are_no_call(key):
    with pytest.raises(RuntimeError, match="a call needs dense operands and storage tensors, got none"):
        torch.ops.lacis.einsum.default([], [], [5, 37], key, [37, 29], STORAGE)


def test_thirty_two_bits_hold_the_sizes():
    pos = torch.zeros(1, dtype=torch.int32).expand(2**31 + 1)
    key = handmade.load(handmade.csr_linear(sizes=[], tensors=[]))
    with pytest.raises(DataError, match="64-bit indices"):
        library.einsum([X[:0]], [STORAGE[0], *STORAGE[1:]], [0, 2**31], key, [2**31, 29])
    with pytest.raises(DataError, match="pos1: expected a contiguous tensor"):
        library.einsum([X[:0]], [pos, *STORAGE[1:]], [0, 2**31], key, [2**31, 29])


def test_unknown_key():
    library.register()
    what_instead = "build the model first, or name the folder that lacis.save_kernels wrote in LACIS_KERNEL_PATH"
    with pytest.raises(CompileError, match=f"no kernel 'no such key' is loaded: {what_instead}"):
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
        ({"args": [{"kind": "banana", "operand": 0}]}, "argument of kind 'banana'"),
        ({"launches": [{"entry": "no_such_function", "units": handmade.dim(6)}]}, "no_such_function"),
        ({"output": {"dtype": "f31", "shape": [handmade.dim(5), handmade.dim(6)]}}, "f31"),
        ({"kind": "wasm"}, "code of kind 'wasm' cannot be loaded by this build"),
    ],
)
def test_malformed_header(change, message):
    artifact = handmade.csr_linear(**change)
    with pytest.raises(CompileError, match=message):
        _core.load(handmade.key_of(artifact), artifact)


def test_unresolved_function_is_named():
    code = handmade.compile_c("extern double sin(double); void linear_0(double *x) { *x = sin(*x); }")
    artifact = handmade.serialise(handmade.csr_header(), code)
    with pytest.raises(CompileError, match="compiled code cannot be linked: .*sin"):
        _core.load(handmade.key_of(artifact), artifact)


def test_a_name_that_is_no_text_is_quoted_all_the_same():
    code = handmade.compile_c("extern double sin(double); void linear_0(double *x) { *x = sin(*x); }")
    assert code.count(b"\0sin\0") == 1
    artifact = handmade.serialise(handmade.csr_header(), code.replace(b"\0sin\0", b"\0s\xff\xfe\0"))
    with pytest.raises(CompileError, match="compiled code cannot be linked: .*s\ufffd"):
        _core.load(handmade.key_of(artifact), artifact)


def test_a_header_nests_only_so_deep():
    too_deep = "the artifact's header has more than 64 lists and objects within each other"
    for text in (b"[" * 200_000, b'{"args":' * 65 + b"1" + b"}" * 65):
        with pytest.raises(CompileError, match=too_deep):
            _core.artifact_info(handmade.sealed(text, b"code"))
    with pytest.raises(CompileError, match="artifact has no key 'target'"):  # brackets in strings do not count
        _core.artifact_info(handmade.sealed(b'{"format_version": 5, "kind": "\\"' + b"[" * 99 + b'"}', b"code"))


def test_host_kernel_on_a_gpu():
    artifact = handmade.csr_linear(index_bits=64)
    with pytest.raises(CompileError, match="a kernel made for the CPU got tensors of device 0"):
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
    key = handmade.load(handmade.csr_linear(index_bits=64, sizes=[], tensors=[]))
    y = library.einsum([X[:0]], STORAGE, [0, 2**31], key, [2**31, 29])
    assert y.shape == (0, 2**31)


FORMATS = {
    "csr": lacis.Csr,
    "csc": lacis.Csc,
    "coo": lacis.Coo,
    "ell": lacis.Ell,
    "bsr": lacis.Bsr(4, 4),
    "blocked ell": lacis.BlockedEll(4, 4),
}


CASES = [(name, "ij,bj->bi") for name in FORMATS]
CASES += [(name, "ij,ib->bj") for name in ("csr", "csc", "bsr", "blocked ell")]
CASES += [(name, "ij,ik,jk->ij") for name in ("csr", "csc", "bsr", "blocked ell")]
CASES = CASES if strategies.LONG else CASES[::5]
SIZES = {"i": 24, "j": 40, "b": 5, "k": 6}


@pytest.mark.parametrize("name, expression", CASES)
def test_a_compiled_kernel_refuses_tensors_that_contradict_each_other(name, expression):
    """Each tensor, each dimension, one element too few: nothing is launched."""
    inputs, _, output = expression.partition("->")
    mask = torch.rand(24, 40, generator=torch.Generator().manual_seed(0)) < 0.3
    packed = lacis.pack(torch.randn(24, 40) * mask, FORMATS[name])
    dense = [torch.randn([SIZES[letter] for letter in letters]) for letters in inputs.split(",")[1:]]
    kernel = lacis.compile(expression, packed, *dense)
    tensors, count = [*dense, *kernel.arrays(packed)], len(dense)
    shape = list(packed.values.shape) if output == "ij" else [SIZES[letter] for letter in output]

    def run(tensors, shape=shape, packed_shape=(24, 40)):
        return torch.ops.lacis.einsum.default(tensors[:count], tensors[count:], shape, kernel.key, packed_shape, [])

    def one_less(sizes, axis):
        return [size - (n == axis) for n, size in enumerate(sizes)]

    run(tensors)
    refused = "lacis data: .*: expected (size|a multiple of|at least size|shape)"
    for n, tensor in enumerate(tensors):
        for axis in range(tensor.ndim if tensor.numel() else 0):
            less = tensor.narrow(axis, 0, tensor.shape[axis] - 1).contiguous()
            with pytest.raises(RuntimeError, match=refused):
                run([*tensors[:n], less, *tensors[n + 1 :]])
        with pytest.raises(RuntimeError, match="expected dtype"):
            run([*tensors[:n], tensor.to(torch.int8), *tensors[n + 1 :]])
    for axis in range(len(shape)):
        with pytest.raises(RuntimeError, match=refused):
            run(tensors, one_less(shape, axis))
    for axis in range(2):
        with pytest.raises(RuntimeError, match=refused):
            run(tensors, shape, one_less((24, 40), axis))
