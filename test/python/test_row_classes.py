# SPDX-License-Identifier: Apache-2.0
"""Row classes: sums whose rules leave each row to one part, which has a nest of its own; against float64."""

import pytest
import torch
from strategies import mostly_long

import lacis
from lacis import steps
from lacis.formats import decompose, digit, nnz

LENGTHS = (0, 60, 1, 0, 40, 3, 2, 0, 61, 0, 7, 30, 1, 1, 1, 1, 9, 0, 0, 40, 25, 2, 5)
FORMATS = {
    "short and long": decompose(short=(lacis.Csr, nnz("i") < 8), long=lacis.Dcsr),
    "buckets": lacis.Hyb(1, 3),
    "located and listed": decompose(few=(lacis.Ell(2), nnz("i") < 3), some=(lacis.Csr, nnz("i") < 20), many=lacis.Coo),
    "strips": lacis.Hyb(2, 3),
    "uneven strips": decompose(
        few=(lacis.Dcsr, (digit("j") < 50) & (nnz("i") < 3)), left=(lacis.Csr, digit("j") < 50), rest=lacis.Coo
    ),
}
STRIPS = ("strips", "uneven strips")


def rows(lengths=LENGTHS, columns=64):
    """A random matrix with rows of these lengths, twice."""
    dense = torch.zeros(2 * len(lengths), columns)
    for row, length in enumerate(lengths * 2):
        dense[row, torch.randperm(columns)[:length]] = torch.randn(length)
    return dense


def agree(found, expression, w, x):
    want = torch.einsum(expression, w.double(), x.double())
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", mostly_long(FORMATS, "short and long", "buckets", "strips"))
@pytest.mark.parametrize("expression", mostly_long(["ij,jk->ik", "ij,j->i"], "ij,jk->ik"))
def test_numbers(name, expression):
    w = rows()
    packed = lacis.pack(w, FORMATS[name])
    kernel = lacis.compile(expression, packed, torch.randn(64, 1) if "k" in expression else torch.randn(64))
    own = next(step for step in kernel.steps if isinstance(step, steps.Own))
    why = (
        "the rules leave each row of a strip to one part" if name in STRIPS else "the rules leave each row to one part"
    )
    assert (own.form, own.why) == ("classes", why)
    apart = next(step for step in kernel.steps if isinstance(step, steps.Apart))
    groups = packed.format.row_groups(0)  # all but one of a group join that one
    assert len((apart.part, *apart.others)) == len(packed.format.parts) - len(groups)
    for features in (1, 4, 19, 33) if "k" in expression else (1,):
        x = torch.randn(64, features) if "k" in expression else torch.randn(64)
        agree(kernel(packed, x), expression, w, x)
    for lengths in ((0,) * 7, (64,) * 7, (1,) * 7):  # no entry, or one class alone
        only = rows(lengths)
        agree(kernel(lacis.pack(only, FORMATS[name]), x), expression, only, x)


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_forms_agree_and_the_printed_default_is_the_same_kernel(name):
    w, x = rows(), torch.randn(64, 19)
    packed = lacis.pack(w, FORMATS[name])
    for target in ("cpu", "cuda:sm_90a"):
        kernel = lacis.compile("ij,jk->ik", packed, x, target=target)
        again = lacis.compile("ij,jk->ik", packed, x, target=target, steps=list(kernel.steps))
        stage = "asm" if target == "cpu" else "ptx"
        assert kernel.asm[stage] == again.asm[stage]
    for form in ("classes", "companion"):
        agree(lacis.einsum("ij,jk->ik", packed, x, steps=[steps.Own("0", form)]), "ij,jk->ik", w, x)
        y = lacis.einsum("ij,bj->bi", packed, x.T, steps=[steps.Own("0", form)])
        agree(y, "ij,bj->bi", w, x.T)


def test_an_epilogue_is_said_once_and_rows_of_no_part_have_it():
    w, x, bias = rows(), torch.randn(64, 9), torch.randn(2 * len(LENGTHS))
    packed = lacis.pack(w, FORMATS["buckets"])
    y = lacis.einsum("ij,jk->ik", packed, x, epilogue=lacis.Epilogue(bias=bias, activation="relu"))
    torch.testing.assert_close(y.double(), (w.double() @ x.double() + bias[:, None]).relu(), rtol=1e-4, atol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("name", STRIPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_strips_add_up_before_what_follows_the_sum(name, dtype):
    """Of a half type the sum of the strips is kept in float32: it is rounded once."""
    w, x, bias = rows().to(dtype), torch.randn(64, 9).to(dtype), torch.randn(2 * len(LENGTHS)).to(dtype)
    packed = lacis.pack(w, FORMATS[name])
    want = w.double() @ x.double()
    tolerance = {"rtol": 1e-2 if dtype == torch.bfloat16 else 1e-4, "atol": 1e-2 if dtype == torch.bfloat16 else 1e-4}
    torch.testing.assert_close(lacis.einsum("ij,jk->ik", packed, x).double(), want, **tolerance)
    y = lacis.einsum("ij,jk->ik", packed, x, epilogue=lacis.Epilogue(bias=bias, activation="relu"))
    torch.testing.assert_close(y.double(), (want + bias.double()[:, None]).relu(), **tolerance)


@pytest.mark.long
@pytest.mark.parametrize("name", STRIPS)
def test_strips_under_another_sum(name):
    """A strip begins with what adds nothing to a maximum, and so do rows without entries."""
    w, x = rows(), torch.randn(64)
    y = lacis.einsum("ij,j->i", lacis.pack(w, FORMATS[name]), x, semiring="max_plus")
    assert torch.equal(y, torch.where(w != 0, w + x, -torch.inf).amax(1))


def test_each_strip_is_a_launch_on_a_gpu():
    """And one that adds up the parts of its long rows, before the next strip begins."""
    packed, x = lacis.pack(rows(), FORMATS["strips"]), torch.randn(64, 32)
    kernel = lacis.compile("ij,jk->ik", packed, x, target="cuda:sm_90a")
    assert kernel.asm["ptx"].count(".entry") == 4 and "atom" not in kernel.asm["ptx"]
    for part in ("s0_long.i_s0_long.j", "i_s1_long.j"):
        assert steps.SplitNnz(part, 256) in kernel.steps


@pytest.mark.long
@pytest.mark.parametrize("name", STRIPS)
def test_gradients_of_strips(name):
    w, x = rows((0, 3, 9, 1), 12).double(), torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
    packed = lacis.pack(w, FORMATS[name])
    values = {part: value.detach().requires_grad_() for part, value in packed.values.items()}
    torch.autograd.gradcheck(lambda x: lacis.einsum("ij,jk->ik", packed, x), [x])
    y = lacis.einsum("ij,jk->ik", packed.with_values(values), x.detach())
    y.sum().backward()
    dense = lacis.PackedTensor(packed.pattern, {part: value.grad for part, value in values.items()}).to_dense()
    want = x.detach().sum(1).expand(w.shape) * (w != 0)
    torch.testing.assert_close(dense, want)


@pytest.mark.long
def test_gradients():
    w, x = rows((0, 3, 9, 1), 12).double(), torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
    packed = lacis.pack(w, FORMATS["short and long"])
    torch.autograd.gradcheck(lambda x: lacis.einsum("ij,jk->ik", packed, x), [x])


def test_the_classes_share_one_launch_on_a_gpu_and_parts_of_long_rows_have_another():
    packed, x = lacis.pack(rows(), FORMATS["short and long"]), torch.randn(64, 32)
    kernel = lacis.compile("ij,jk->ik", packed, x, target="cuda:sm_90a")
    assert steps.SplitNnz("long.i_long.j", 256) in kernel.steps
    assert kernel.asm["ptx"].count(".entry") == 2


def test_a_row_of_two_parts_is_refused():
    w = rows()
    w[:, 0], w[2], w[2, 0] = 0, 0, 1  # a short row whose only column no long one has
    packed = lacis.pack(w, FORMATS["short and long"])
    storage = {name: tensor.clone() for name, tensor in packed.storage.items()}
    storage |= {f"{part}.values": values for part, values in packed.values.items()}
    assert storage["long.crd0"][0] == 1
    storage["long.crd0"][0] = 2
    with pytest.raises(lacis.DataError, match="'long' and 'short' both have i = 2, which the rules leave to one part"):
        lacis.PackedTensor.from_storage(FORMATS["short and long"], packed.shape, storage)


def test_a_row_of_two_parts_of_a_strip_is_refused():
    w = torch.zeros(9, 64)
    w[7, [3, 40]] = w[5, 50:52] = torch.ones(2)
    packed = lacis.pack(w, FORMATS["strips"])
    storage = {name: tensor.clone() for name, tensor in packed.storage.items()}
    storage |= {f"{part}.values": values for part, values in packed.values.items()}
    lacis.PackedTensor.from_storage(packed.format, packed.shape, storage)  # row 7 lies in two strips
    storage["s1_b1.crd0"][0] = 7
    with pytest.raises(lacis.DataError, match="'s1_b1' and 's1_b0' both have i = 7"):
        lacis.PackedTensor.from_storage(packed.format, packed.shape, storage)


@pytest.mark.parametrize(
    "format, what",
    [
        (decompose(ell=lacis.Ell(4), rest=lacis.Csr), "a rule of it looks at more than i"),
        (lacis.Csr, "it is no sum of formats"),
        (decompose(few=(lacis.Bsr(4, 4), nnz("i") < 9), rest=lacis.Csr), "part 'few' has rows of blocks"),
    ],
)
def test_what_is_no_class_is_refused(format, what):
    packed = lacis.pack(rows(LENGTHS + (5,)), format)
    with pytest.raises(lacis.CompileError, match=f"own: operand '0' has no form 'classes': {what}"):
        lacis.compile("ij,j->i", packed, torch.randn(64), steps=[steps.Own("0", "classes")])


def test_a_row_has_one_axis():
    format = "(i, j, k) -> (i : dense, j : dense, k : compressed)"
    text = f"#lacis.sum<few = #lacis.format<{format}> when nnz(i) lt 3, rest = #lacis.format<{format}>>"
    packed = lacis.pack(rows().reshape(2, -1, 64), lacis.Format.parse(text))
    with pytest.raises(lacis.CompileError, match="'classes': the output has 2 of its axes, and a row one"):
        lacis.compile("ijk,k->ij", packed, torch.randn(64), steps=[steps.Own("0", "classes")])


@pytest.mark.parametrize(
    "name, parts, what",
    [
        ("buckets", ("b0", "none"), "apart: no part 'none' of a sum, see decompose"),
        ("buckets", ("b0", "long"), "apart: the others join the nest of part 'long'"),
        ("buckets", ("b0", "b0"), "apart: part 'b0' is apart already"),
    ],
)
def test_what_apart_refuses(name, parts, what):
    packed = lacis.pack(rows(), FORMATS[name])
    with pytest.raises(lacis.CompileError, match=what):
        lacis.compile("ij,j->i", packed, torch.randn(64), steps=[steps.Apart(*parts)])


def test_parts_that_may_share_rows_go_one_by_one():
    packed = lacis.pack(rows(), decompose(ell=lacis.Ell(4), rest=lacis.Csr))
    what = "apart: parts 'rest' and 'ell' may share rows; one part, the last of the sum, has a nest of its own"
    with pytest.raises(lacis.CompileError, match=what):
        lacis.compile("ij,j->i", packed, torch.randn(64), steps=[steps.Apart("rest", "ell")])
