# SPDX-License-Identifier: Apache-2.0
"""`out_dtype=torch.float32`: half operands give the sum unrounded, and gradients in their own dtype, against float64."""

import pytest
import torch
from strategies import mostly_long
from torch._subclasses.fake_tensor import FakeTensorMode

import lacis
from lacis import _core
from lacis.runtime import library

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
HERE = [(EXPRESSIONS[0], "csr", HALVES[0]), (EXPRESSIONS[2], "bsr", HALVES[1])]


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


def bits_of(dtype) -> int:
    return {torch.bfloat16: 8, torch.float16: 11, torch.float32: 22}[dtype]


def leaves(packed, given):
    """The same operands, which ask for gradients."""
    values = {name: v.detach().requires_grad_() for name, v in packed.values_by_part.items()}
    return lacis.PackedTensor(packed.pattern, values), [x.detach().requires_grad_() for x in given]


@pytest.mark.parametrize("expression, format, dtype", mostly_long(CASES, *HERE))
def test_sums_and_gradients(expression, format, dtype):
    torch.manual_seed(0)
    packed, given = leaves(weight(format, dtype), tensors(expression, dtype))
    got = lacis.einsum(expression, packed, *given, out_dtype=SINGLE)
    wide = [o.detach().double().requires_grad_() for o in (packed.to_dense(), *given)]
    want = torch.einsum(expression, *wide)
    assert got.dtype == SINGLE and is_near(dense(got), want, 22)
    assert not torch.equal(dense(got).to(dtype).float(), dense(got))
    eager = lacis.einsum(expression, packed, *given, out_dtype=SINGLE, target="eager")
    assert eager.dtype == SINGLE and is_near(dense(eager), want, 22)
    arriving = torch.randn(want.shape) * 2.0**-26  # less than any float16
    dense(got).backward(arriving)
    want.backward(arriving.double())
    for one, other in zip(given, wide[1:]):
        assert one.grad.dtype == dtype
        torch.testing.assert_close(one.grad, other.grad.to(dtype), rtol=2.0 ** -bits_of(dtype), atol=2.0**-24)
    for name, values in packed.values_by_part.items():
        part = packed.pattern.of_part(name) if name else packed.pattern
        assert values.grad.dtype == dtype
        expected = part.gather(wide[0].grad).to(dtype)
        torch.testing.assert_close(values.grad, expected, rtol=2.0 ** -bits_of(dtype), atol=2.0**-24)


def test_any_size_by_one_kernel():
    """No tokens, one, and those in inference that were seen before; nothing stored."""
    packed, dtype = weight("csr", torch.bfloat16), torch.bfloat16
    kernel = lacis.compile("ij,bj->bi", packed, *tensors("ij,bj->bi", dtype), out_dtype=SINGLE)
    empty = lacis.pack(torch.zeros(42, 36, dtype=dtype), lacis.Csr)
    assert kernel.steps == lacis.compile("ij,bj->bi", packed, *tensors("ij,bj->bi", dtype)).steps
    for tokens in (0, 1, 7, 7):
        x = torch.randn(tokens, 36).to(dtype)
        for each in (packed, empty):
            with torch.no_grad():
                got = kernel(each, x)
            want = x.double() @ each.to_dense().double().T
            assert got.dtype == SINGLE and is_near(got, want, 22)
            assert torch.equal(lacis.einsum("ij,bj->bi", each, x, out_dtype=SINGLE), got)


def test_the_key_and_the_steps():
    """The dtype is in the text, so in the key; the steps are given back."""
    packed, (x,) = weight("csr", torch.bfloat16), tensors("ij,bj->bi", torch.bfloat16)
    kernel, rounds = (lacis.compile("ij,bj->bi", packed, x, out_dtype=dtype) for dtype in (SINGLE, None))
    same = lacis.compile("ij,bj->bi", packed, x, out_dtype=torch.bfloat16)
    assert kernel.key != rounds.key and same.key == rounds.key and "-> (tensor<?x?xf32> " in kernel.text
    again = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE, steps=kernel.steps)
    assert again.steps == kernel.steps and again.asm["loops"] == kernel.asm["loops"]
    (many,) = lacis.compile_many([("ij,bj->bi", packed, x)], out_dtype=SINGLE)
    assert many.key == kernel.key and many(packed, x).dtype == SINGLE
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
    after = lacis.Epilogue(bias=torch.randn(42))
    rounded = after.bias.to(dtype).double()
    want = x.detach().double() @ packed.to_dense().detach().double().T
    with torch.autocast("cpu", dtype=dtype):
        got = lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE, target=target)
        assert got.dtype == SINGLE and is_near(got, want, 22)
        got.sum().backward()
        with torch.no_grad():
            both = lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE, epilogue=after, target=target)
        assert both.dtype == SINGLE and is_near(both, want + rounded, 22)
    assert x.grad.dtype == packed.values.grad.dtype == SINGLE
    assert is_near(x.grad, packed.to_dense().detach().double().sum(0).expand(7, 36), 8)


def test_autocast_of_a_kernel():
    """One for float32 runs on what the region casts; one for halves as it is, its gradients in the region, too."""
    dtype = torch.bfloat16
    packed, (x,) = leaves(weight("csr", dtype), tensors("ij,bj->bi", dtype))
    want = x.detach().double() @ packed.to_dense().detach().double().T
    single = lacis.compile("ij,bj->bi", packed.to(SINGLE), x.float(), out_dtype=SINGLE)
    half = lacis.compile("ij,bj->bi", packed, x, out_dtype=SINGLE)
    with torch.autocast("cpu", dtype=dtype):
        for got in (single(packed.to(SINGLE), x.float()), half(packed, x)):
            assert got.dtype == SINGLE and is_near(got, want, 22)
            got.backward(torch.full_like(got, 1 + 2.0**-12))  # no bfloat16
            assert is_near(x.grad, (1 + 2.0**-12) * packed.to_dense().detach().double().sum(0).expand(7, 36), 8)
            x.grad = None


def test_transforms():
    """Tangents and batches have the dtypes of what they are of; gradients of gradients, too."""
    dtype = torch.bfloat16
    packed, (x,) = weight("csr", dtype), tensors("ij,bj->bi", dtype)
    product = lambda x: lacis.einsum("ij,bj->bi", packed, x, out_dtype=SINGLE)
    value, tangent = torch.func.jvp(product, (x,), (x,))
    assert value.dtype == tangent.dtype == SINGLE and torch.equal(value, tangent)
    many = torch.func.vmap(product)(x.expand(3, 7, 36))
    assert many.dtype == SINGLE and is_near(many[2], value.double(), 21)
    assert torch.func.vjp(product, x)[1](value)[0].dtype == dtype
    other, (x,) = leaves(packed, [x])
    arriving = value.clone().requires_grad_()
    y = lacis.einsum("ij,bj->bi", other, x, out_dtype=SINGLE)
    (of_x,) = torch.autograd.grad(y, x, arriving, create_graph=True)
    found = torch.autograd.grad(of_x.float().sum(), (other.values, arriving))
    assert [of_x.dtype, *(each.dtype for each in found)] == [dtype, dtype, SINGLE]
    assert is_near(found[1], packed.to_dense().double().sum(1).expand(7, 42), 22)


def test_an_epilogue_is_not_rounded_either():
    """In the kernel, and in torch's operators where it has gradients."""
    dtype = torch.bfloat16
    packed, (x,) = leaves(weight("csr", dtype), tensors("ij,bj->bi", dtype))
    bias, residual = torch.randn(42).to(dtype).requires_grad_(), torch.randn(7, 42).to(dtype)
    after = lacis.Epilogue(bias=bias, scale=0.3, residual=residual)
    want = 0.3 * (x.double() @ packed.to_dense().double().T) + bias.double() + residual.double()
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            got = lacis.einsum("ij,bj->bi", packed, x, epilogue=after, out_dtype=SINGLE)
        assert got.dtype == SINGLE and is_near(got, want, 21)
    got.sum().backward()
    assert bias.grad.dtype == x.grad.dtype == dtype
