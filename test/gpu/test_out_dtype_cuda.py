# SPDX-License-Identifier: Apache-2.0
"""`out_dtype=torch.float32` on a GPU: sums of tensor cores and of loops, and their gradients, against float64."""

import pathlib
import sys

import pytest
import torch
from test_tile_schedules_cuda import blocked

import lacis

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from test_out_dtype import is_near  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
TARGETS = ("auto", "cuda:sm_90") if HOPPER else ("auto",)  # the latter without what is Hopper's alone
SINGLE, HALVES = torch.float32, (torch.bfloat16, torch.float16)
BLOCKS = [128, 64, 32, 16, 8]
PRODUCTS = ("ij,bj->bi", "ij,bj->ib", "ij,jb->ib", "ij,bi->bj")
FACTORS = ("ij,ik,jk->ij", "ij,ki,kj->ij")
# Rows, columns, tokens, and the share of blocks that are not stored.
PROBLEMS = [(1000, 712, 264, 0.6), (520, 1024, 1032, 0.0), (1000, 712, 7, 0.6), (264, 200, 333, 0.8), (64, 64, 64, 1.0)]


def weight(block: int, rows, columns, dtype, sparsity=0.6):
    """Stored blocks, or entries alone where the block is 1."""
    dense = blocked(rows, columns, (block, block), sparsity, dtype)
    return lacis.pack(dense, lacis.Bsr(block, block) if block > 1 else lacis.Csr), dense.double()


def dtype_of(block: int) -> torch.dtype:
    """The dtypes take turns."""
    return HALVES[[*BLOCKS, 1].index(block) % 2]


def require_tiles(kernel, block: int, tokens: int) -> None:
    if block > 1 and tokens % 8 == 0:
        assert any(step.mnemonic == "tensorize" for step in kernel.steps), kernel.remarks


def operands(expression, sizes, dtype):
    terms = expression.partition("->")[0].split(",")[1:]
    return [torch.randn([sizes[letter] for letter in term], device="cuda").to(dtype) for term in terms]


def poisoned(kernel, *given, **keywords):
    """Run where memory that was freed is NaN, three times, bit-equal."""
    found = []
    for _ in range(3):
        torch.full((1 << 25,), float("nan"), device="cuda")  # 128 MB: more than the second-level cache
        with torch.no_grad():
            found.append(kernel(*given, **keywords))
    numbers = [y if isinstance(y, torch.Tensor) else y.values for y in found]
    assert all(y.dtype == SINGLE and torch.equal(y, numbers[0]) for y in numbers)
    return numbers[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("expression", PRODUCTS)
def test_products(expression, block, target):
    """The sum is accurate to 15 bits, which tensor cores truncate as they add up; rounded to a half it has 8 or 11."""
    dtype = dtype_of(block)
    for rows, columns, tokens, sparsity in PROBLEMS if target == "auto" else (*PROBLEMS[:2], PROBLEMS[3]):
        packed, dense = weight(block, rows, columns, dtype, sparsity)
        (x,) = operands(expression, {"i": rows, "j": columns, "b": tokens}, dtype)
        kernel = lacis.compile(expression, packed, x, target=target, out_dtype=SINGLE)
        require_tiles(kernel, block, tokens)
        got = poisoned(kernel, packed, x)
        assert is_near(got, torch.einsum(expression, dense, x.double()), 15), (rows, columns, tokens, sparsity)
        assert not dense.any() or not torch.equal(got, got.to(dtype).float())  # a draw of few blocks may keep none


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("expression", FACTORS)
def test_sampled_products(expression, block, target):
    """Few and most of the blocks, and long sums, which are cut."""
    dtype = dtype_of(block)
    for depth, sparsity in ((8, 0.6), (136, 0.2), (1032, 0.8), (4096, 0.9))[: 4 if target == "auto" else 2]:
        packed, _ = weight(block, 1000, 712, dtype, sparsity)
        factors = operands(expression, {"i": 1000, "j": 712, "k": depth}, dtype)
        kernel = lacis.compile(expression, packed.pattern, *factors, target=target, out_dtype=SINGLE)
        terms = ",".join(expression.partition("->")[0].split(",")[1:]) + "->ij"
        want = packed.pattern.gather(torch.einsum(terms, *(factor.double() for factor in factors)))
        assert is_near(poisoned(kernel, packed.pattern, *factors), want, 15), (depth, sparsity)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("activation", [None, "gelu"])
@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("expression", PRODUCTS[:3])
def test_what_follows_the_sum(expression, block, activation, target):
    """A residual too, which consumers read from shared memory part by part as they store."""
    for rows, columns, tokens, sparsity in (PROBLEMS[0], PROBLEMS[3]):
        packed, _ = weight(block, rows, columns, torch.bfloat16, sparsity)
        (x,) = operands(expression, {"i": rows, "j": columns, "b": tokens}, torch.bfloat16)
        shape = (rows, tokens) if expression.endswith("ib") else (tokens, rows)
        bias, residual = (torch.randn(size, device="cuda").bfloat16() for size in ((rows,), shape))
        after = lacis.Epilogue(bias=bias, activation=activation, residual=residual)
        kernel = lacis.compile(expression, packed, x, epilogue=after, target=target, out_dtype=SINGLE)
        double = lacis.Epilogue(bias.double(), activation, residual=residual.double())
        want = lacis.einsum(expression, packed.to(torch.float64), x.double(), epilogue=double, target="eager")
        # Activations are approximated by the instructions of the device only where the result is rounded.
        assert is_near(poisoned(kernel, packed, x), want, 15), (rows, columns, tokens)


@pytest.mark.parametrize("tokens", [33, 1100])
@pytest.mark.parametrize("block", BLOCKS)
def test_long_rows(block, tokens):
    """Rows that are cut: partial sums are kept, and added up where they are stored."""
    dense = blocked(1024, 2304, (block, block), 0.95)
    dense[block : 2 * block] = torch.randn(2304, device="cuda").bfloat16()
    packed, x = lacis.pack(dense, lacis.Bsr(block, block)), torch.randn(tokens, 2304, device="cuda").bfloat16()
    kernel = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE)
    assert is_near(poisoned(kernel, packed, x), x.double() @ dense.double().T, 15)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("block", [*BLOCKS, 1])
@pytest.mark.parametrize("expression", (*PRODUCTS, *FACTORS))
def test_gradients(expression, block, strict):
    """In the dtype of the operands. Tiles round what arrives to that; loops take it as it is, so none is lost."""
    dtype = dtype_of(block)
    packed, dense = weight(block, 520, 392, dtype)
    given = [x.requires_grad_() for x in operands(expression, {"i": 520, "j": 392, "b": 100, "k": 100}, dtype)]
    packed = packed.with_values(packed.values.detach().requires_grad_())
    got = lacis.einsum(expression, packed, *given, out_dtype=SINGLE, strict=strict)
    wide = [each.detach().double().requires_grad_() for each in (dense, *given)]
    want = torch.einsum(expression, *wide)
    got, want = (got, want) if isinstance(got, torch.Tensor) else (got.values, packed.pattern.gather(want))
    assert got.dtype == SINGLE and is_near(got, want, 15)
    arriving = torch.randn_like(got)
    got.backward(arriving)
    want.backward(arriving.double())
    bits = 7 if dtype == torch.bfloat16 else 10
    assert packed.values.grad.dtype == dtype
    assert is_near(packed.values.grad, packed.pattern.gather(wide[0].grad), bits)
    for one, other in zip(given, wide[1:]):
        assert one.grad.dtype == dtype and is_near(one.grad, other.grad, bits)


def test_loops_lose_nothing_of_what_arrives():
    """Numbers that no float16 holds, where the gradients are float16."""
    packed, dense = weight(16, 520, 392, torch.float16)
    x = (torch.randn(100, 392, device="cuda") * 2**10).half().requires_grad_()
    packed = packed.with_values((packed.values * 2**13).requires_grad_())
    got = lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE, strict=True)
    arriving = torch.randn_like(got) * 2.0**-26
    of_x, of_values = torch.autograd.grad(got, (x, packed.values), arriving)
    assert is_near(of_x, arriving.double() @ (dense * 2**13), 10)
    assert is_near(of_values, packed.pattern.gather(arriving.double().T @ x.detach().double()), 10)


def test_autocast_and_graphs():
    packed, dense = weight(64, 512, 384, torch.bfloat16)
    x = torch.randn(100, 384, device="cuda").bfloat16()
    want = x.double() @ dense.T
    with torch.autocast("cuda", dtype=torch.bfloat16), torch.no_grad():
        got = lacis.einsum("ij,bj->bi", packed.to(SINGLE), x.float(), out_dtype=SINGLE)
    assert got.dtype == SINGLE and is_near(got, want, 15)
    kernel = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE)
    with torch.no_grad():
        kernel(packed, x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            again = kernel(packed, x)
        x.mul_(2)
        graph.replay()
    assert is_near(again, 2 * want, 15)
