# SPDX-License-Identifier: Apache-2.0
"""`out_dtype=torch.float32`: half operands give the sum unrounded, and gradients in their dtype, against float64."""

import pytest
import torch
from strategies import mostly_long
from torch._subclasses.fake_tensor import FakeTensorMode

import lacis
from lacis import _core
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.runtime import library
from lacis.runtime.keys import without_locations

SINGLE, HALVES = torch.float32, (torch.bfloat16, torch.float16)
FORMATS = {
    "csr": (lacis.Csr, 1),
    "bsr": (lacis.Bsr(16, 16), 16),
    "sum": (lacis.Hyb(1, 4), 1),
    "ell": (lacis.Ell(), 1),
    "columns": (lacis.Bcsc(8, 8), 8),
}
SIZES = {"i": 42, "j": 36, "b": 7, "k": 24}  # blocks have tails
EXPRESSIONS = ("ij,bj->bi", "ij,jk->ik", "ij,ik,jk->ij", "ij->i", "ij->", "ij,k->ijk")
CASES = [(e, f, d) for e in EXPRESSIONS for f in FORMATS for d in HALVES]
HERE = [(EXPRESSIONS[0], "csr", HALVES[0])]


def weight(format: str, dtype, kept=0.4):
    """Some rows of it are empty."""
    layout, block = FORMATS[format]
    rows, columns = SIZES["i"], SIZES["j"]
    mask = torch.rand(-(-rows // block), -(-columns // block)) < kept
    mask[-1] = False
    mask = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)[:rows, :columns]
    return lacis.pack(torch.where(mask, torch.randn(rows, columns), 0), layout).to(dtype)


def tensors(expression: str, dtype):
    """Dense operands for an expression; they are not contiguous."""
    terms = expression.partition("->")[0].split(",")[1:]
    return [torch.randn([2 * SIZES[letter] for letter in t])[(slice(None, None, 2),) * len(t)].to(dtype) for t in terms]


def dense(result) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else result.to_dense()


def is_near(got, want, bits: int) -> bool:
    """Equal but for a rounding to so many bits."""
    return bool((got.double() - want).norm() <= 2.0**-bits * want.norm())


BITS = {torch.bfloat16: 8, torch.float16: 11}
LARGE = 2.0**13


def leaves(packed, given):
    """The same operands, which ask for gradients."""
    values = {name: v.detach().requires_grad_() for name, v in packed.values_by_part.items()}
    return lacis.PackedTensor(packed.pattern, values), [x.detach().requires_grad_() for x in given]


@pytest.mark.parametrize("expression, format, dtype", mostly_long(CASES, *HERE))
def test_sums_and_gradients(expression, format, dtype):
    torch.manual_seed(0)
    packed, given = weight(format, dtype), tensors(expression, dtype)
    packed, given = leaves(packed.map(lambda v, *_: v * LARGE), [x * LARGE for x in given])
    got = lacis.einsum(expression, packed, *given, out_dtype=SINGLE)
    wide = [o.detach().double().requires_grad_() for o in (packed.to_dense(), *given)]
    want = torch.einsum(expression, *wide)
    assert got.dtype == SINGLE and is_near(dense(got), want, 22)
    assert not torch.equal(dense(got).to(dtype).float(), dense(got))
    eager = lacis.einsum(expression, packed, *given, out_dtype=SINGLE, target="eager")
    assert eager.dtype == SINGLE and is_near(dense(eager), want, 22)
    arriving = torch.randn(want.shape) * (2.0**-26 if given else 1)  # less than any float16
    dense(got).backward(arriving)
    want.backward(arriving.double())
    for one, other in zip(given, wide[1:]):
        assert one.grad.dtype == dtype and is_near(one.grad, other.grad, BITS[dtype])
    for name, values in packed.values_by_part.items():
        part = packed.pattern.of_part(name) if name else packed.pattern
        assert values.grad.dtype == dtype and is_near(values.grad, part.gather(wide[0].grad), BITS[dtype])


@pytest.mark.parametrize("dtype, differentiates", mostly_long([(d, g) for d in HALVES for g in (0, 1)], (HALVES[1], 0)))
def test_sampled_on_a_pattern(dtype, differentiates):
    torch.manual_seed(0)
    pattern = weight("bsr", dtype).pattern
    given = [x.requires_grad_(bool(differentiates)) for x in tensors("ij,ik,jk->ij", dtype)]
    got = lacis.einsum("ij,ik,jk->ij", pattern, *given, out_dtype=SINGLE)
    wide = [x.detach().double().requires_grad_() for x in given]
    want = torch.einsum("ik,jk->ij", *wide) * pattern.to_mask()
    assert got.dtype == SINGLE and is_near(got.to_dense(), want, 22)
    if differentiates:
        arriving = torch.randn(want.shape)
        got.to_dense().backward(arriving)
        want.backward(arriving.double())
        assert all(one.grad.dtype == dtype and is_near(one.grad, o.grad, BITS[dtype]) for one, o in zip(given, wide))


def test_any_size_by_one_kernel():
    """No tokens, one, and those in inference that were seen before; nothing stored."""
    packed, dtype = weight("csr", torch.bfloat16), torch.bfloat16
    kernel = lacis.compile("ij,bj->bi", packed, *tensors("ij,bj->bi", dtype), out_dtype=SINGLE)
    empty = lacis.pack(torch.zeros(42, 36, dtype=dtype), lacis.Csr)
    for tokens in (0, 1, 7, 7):
        x = torch.randn(tokens, 36).to(dtype)
        for each in (packed, empty):
            with torch.no_grad():
                got = kernel(each, x)
            want = x.double() @ each.to_dense().double().T
            assert got.dtype == SINGLE and is_near(got, want, 22)
        with torch.no_grad():
            assert lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE).dtype == SINGLE


def test_the_text_and_so_the_key():
    packed, (x,) = weight("csr", torch.bfloat16), tensors("ij,bj->bi", torch.bfloat16)
    asked = (SINGLE, torch.bfloat16, None)
    kept, same, rounded = (emit(capture_einsum("ij,bj->bi", [packed, x], out_dtype=dtype)[0]) for dtype in asked)
    assert same == rounded and "-> (tensor<?x?xf32> " in kept and "-> (tensor<?x?xbf16> " in rounded
    (many,) = lacis.compile_many([("ij,bj->bi", packed, x)], out_dtype=SINGLE)
    assert without_locations(many.text) == without_locations(kept) and many(packed, x).dtype == SINGLE


@pytest.mark.long
def test_the_steps():
    """They are given back, and are those of a rounded result."""
    packed, (x,) = weight("csr", torch.bfloat16), tensors("ij,bj->bi", torch.bfloat16)
    kernel, rounds = (lacis.compile("ij,bj->bi", packed, x, out_dtype=dtype) for dtype in (SINGLE, None))
    assert kernel.steps == rounds.steps and kernel.key != rounds.key
    again = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE, steps=kernel.steps)
    assert again.steps == kernel.steps and again.asm["loops"] == kernel.asm["loops"]
    with torch.no_grad():  # calls that are ready to run again
        dtypes = [lacis.einsum("ij,bj->bi", packed, x, out_dtype=dtype).dtype for dtype in (None, SINGLE) * 2]
    assert dtypes == [torch.bfloat16, SINGLE] * 2


def test_fake_results():
    packed, (x,) = weight("csr", torch.bfloat16), tensors("ij,bj->bi", torch.bfloat16)
    x = x.requires_grad_()
    kernel = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE)
    companions = [packed.array(*name) for name in kernel.family.bind(["1"]).companions]
    arguments = ([x], kernel.arrays(packed), [7, 42], kernel.family.key, [42, 36], companions)
    torch.library.opcheck(torch.ops.lacis.einsum.default, arguments)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert lacis.einsum("ij,bj->bi", packed, mode.from_tensor(x), out_dtype=SINGLE).dtype == SINGLE
    product = lambda x: torch.ops.lacis.einsum.default([x], *arguments[1:])
    traced = torch.compile(product, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(traced, product(x)) and torch.autograd.grad(traced.sum(), x)[0].dtype == torch.bfloat16


def test_the_dtype_that_a_loaded_kernel_says(monkeypatch):
    """A process that loaded a kernel by its key knows no more of it."""
    packed, (x,) = weight("csr", torch.bfloat16), tensors("ij,bj->bi", torch.bfloat16)
    kernel = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE)
    monkeypatch.setattr("lacis.runtime.gradients._families", {})
    assert library.output_dtype(kernel.key, x) == SINGLE
    assert _core.output_dtype("f" * 64) == 0 and library.output_dtype("f" * 64, x) == torch.bfloat16


REFUSED = [
    (
        torch.float16,
        torch.float32,
        "out_dtype is torch.float16; no kernel stores it from operands of torch.float32, only ",
    ),
    (
        torch.bfloat16,
        torch.float16,
        "only torch.float16 or torch.float32, in which they are summed; cast the result with",
    ),
    (torch.float64, torch.float16, r"cast the result with .to\(torch.float64\), or the operands"),
    (torch.float64, torch.float32, "no kernel stores it from operands of torch.float32, only torch.float32; cast"),
    (torch.int32, torch.bfloat16, "out_dtype is torch.int32; no kernel stores it from operands of torch.bfloat16"),
    ("float32", torch.bfloat16, "out_dtype is a dtype, as torch.float32, not 'float32'"),
]


@pytest.mark.parametrize("asked, dtype, message", REFUSED)
@pytest.mark.parametrize("expression", ["ij,bj->bi", "ij->"])
def test_refused(asked, dtype, message, expression):
    packed, given = weight("csr", dtype), tensors(expression, dtype)
    for call in (lacis.einsum, lacis.compile):
        with pytest.raises(lacis.DataError, match=message):
            call(expression, packed, *given, out_dtype=asked)
    with pytest.raises(lacis.DataError, match=message):
        lacis.einsum(expression, packed, *given, out_dtype=asked, target="eager")


def test_where_no_result_has_another_dtype():
    x, packed = torch.ones(2, 2), lacis.pack(torch.eye(2), lacis.Csr)
    with pytest.raises(lacis.DataError, match="semirings, epilogues and out_dtype need one packed operand"):
        lacis.einsum("ij,jk->ik", x, x, out_dtype=SINGLE)

    @lacis.kernel
    def chain(q, k, pattern):
        return lacis.einsum("ij,id,jd->ij", pattern, q, k, out_dtype=SINGLE)

    with pytest.raises(
        lacis.DataError, match="a chain of lacis.kernel has the dtype of its operands, and no out_dtype"
    ):
        chain(x.half(), x.half(), packed.pattern)
    edges = lacis.pack(torch.eye(2) > 0, lacis.Csr)
    with pytest.raises(lacis.DataError, match="from operands of torch.bool, only torch.bool; cast the result"):
        lacis.einsum("ij,j->i", edges, torch.ones(2).bool(), semiring="or_and", out_dtype=SINGLE)


@pytest.mark.parametrize("target", ["auto", "eager"])
def test_autocast(target):
    """The operands have the region's dtype, and the result the one that was asked for."""
    torch.manual_seed(0)
    dtype = torch.bfloat16
    packed, (x,) = leaves(weight("csr", dtype).to(SINGLE), [x.float() for x in tensors("ij,bj->bi", dtype)])
    after = finish(SINGLE)
    want = x.detach().double() @ packed.to_dense().detach().double().T
    with torch.autocast("cpu", dtype=dtype):
        got = lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE, target=target)
        assert got.dtype == SINGLE and is_near(got, want, 22)
        got.sum().backward()
        with torch.no_grad():
            got = lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE, epilogue=after, target=target)
        after = after.to(dtype)
        assert got.dtype == SINGLE and is_near(got, 0.3 * want + after.bias.double() + after.residual.double(), 21)
    assert x.grad.dtype == packed.values.grad.dtype == SINGLE
    assert is_near(x.grad, packed.to_dense().detach().double().sum(0).expand(7, 36), 8)


@pytest.mark.parametrize("operands", mostly_long([SINGLE, torch.bfloat16], torch.bfloat16))
def test_autocast_of_a_kernel(operands):
    """One for float32 runs on what the region casts; one for halves as it is, its gradients in the region, too."""
    dtype = torch.bfloat16
    packed, (x,) = leaves(weight("csr", dtype).to(operands), [x.to(operands) for x in tensors("ij,bj->bi", dtype)])
    want = x.detach().double() @ packed.to_dense().detach().double().T
    kernel = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE)
    with torch.autocast("cpu", dtype=dtype):
        got = kernel(packed, x)
        assert got.dtype == SINGLE and is_near(got, want, 22)
        got.backward(torch.full_like(got, 1 + 2.0**-12))  # no bfloat16
    assert is_near(x.grad, (1 + 2.0**-12) * packed.to_dense().detach().double().sum(0).expand(7, 36), 8)


def test_transforms():
    """Tangents and batches have the dtypes of what they are of."""
    dtype = torch.bfloat16
    packed, (x,) = weight("csr", dtype), tensors("ij,bj->bi", dtype)
    product = lambda x: lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE)
    value, tangent = torch.func.jvp(product, (x,), (x,))
    assert value.dtype == tangent.dtype == SINGLE and torch.equal(value, tangent)
    many = torch.func.vmap(product)(x.expand(3, 7, 36))
    assert many.dtype == SINGLE and is_near(many[2], value.double(), 21)
    assert torch.func.vjp(product, x)[1](value)[0].dtype == dtype


@pytest.mark.long
def test_gradients_of_gradients():
    dtype = torch.bfloat16
    packed, (x,) = leaves(weight("csr", dtype), tensors("ij,bj->bi", dtype))
    arriving = torch.randn(7, 42, requires_grad=True)
    y = lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE)
    (of_x,) = torch.autograd.grad(y, x, arriving, create_graph=True)
    found = torch.autograd.grad(of_x.float().sum(), (packed.values, arriving))
    assert [of_x.dtype, *(each.dtype for each in found)] == [dtype, dtype, SINGLE]
    assert is_near(found[1], packed.to_dense().double().sum(1).expand(7, 42), 22)


def finish(dtype) -> lacis.Epilogue:
    return lacis.Epilogue(bias=torch.randn(42).to(dtype), scale=0.3, residual=torch.randn(7, 42).to(dtype))


def test_an_epilogue_is_not_rounded_either():
    """In the kernel, and in torch's operators where it has gradients."""
    dtype = torch.bfloat16
    packed, (x,) = leaves(weight("csr", dtype), tensors("ij,bj->bi", dtype))
    after = finish(dtype)
    after.bias.requires_grad_()
    want = 0.3 * (x.double() @ packed.to_dense().double().T) + after.bias.double() + after.residual.double()
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            got = lacis.einsum("ij,bj->bi", packed, x, epilogue=after, out_dtype=SINGLE)
        assert got.dtype == SINGLE and is_near(got, want, 21)
    got.sum().backward()
    assert after.bias.grad.dtype == x.grad.dtype == dtype
