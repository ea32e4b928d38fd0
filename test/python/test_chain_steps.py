# SPDX-License-Identifier: Apache-2.0
"""The steps `roll` and `keep`: statements of a chain are one loop, or have nests of their own."""

import re

import pytest
import torch
from test_chain import _s, attend, mask_of, operands, reference

import lacis
from lacis.runtime.kernels import compile_kernel


def test_one_loop_is_right():
    """Tiles that do not divide, masked entries inside of kept blocks, large scores; -inf that a loop meets first."""
    mask = mask_of()
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(8, 8))
    q, k, v = operands()
    kernel = attend.compile(q, k, v, pattern)
    assert kernel.steps[0] == lacis.steps.Roll("j0") and str(kernel.steps).startswith('roll("j0")')
    torch.testing.assert_close(kernel(q, k, v, pattern), reference(q, k, v, mask), rtol=0, atol=1e-12)
    torch.testing.assert_close(kernel(200 * q, k, v, pattern), reference(200 * q, k, v, mask), rtol=0, atol=1e-12)
    apart = attend.compile(q, k, v, pattern, steps=[lacis.steps.Keep("s")])
    assert "lacis.workspace" in apart.asm["loops"] and "} rolled" not in apart.asm["loops"]
    torch.testing.assert_close(apart(q, k, v, pattern), kernel(q, k, v, pattern), rtol=0, atol=1e-12)


def _no_sum(q, k, v, pattern):
    squares = torch.exp(_s(pattern, q, k))
    return lacis.einsum("hij,hij,hje->hie", squares, squares, v) * 2


def _sum_before(q, k, v, pattern):
    shares = torch.exp(_s(pattern, q, k))
    return lacis.einsum("hij,hje->hie", shares / lacis.einsum("hij,hje->hi", shares, v), v)


def _two_maxima(q, k, v, pattern):
    s = _s(pattern, q, k)
    return lacis.einsum("hij,hij,hje->hie", lacis.softmax(s, "j"), lacis.softmax(s + 1, "j"), v)


def _not_linear(q, k, v, pattern):
    shares = lacis.softmax(_s(pattern, q, k), "j")
    return lacis.einsum("hij,hij,hje->hie", shares, shares, v)


def _other_statement(q, k, v, pattern):
    return lacis.einsum("hij,hje->hie", torch.tanh(lacis.softmax(_s(pattern, q, k), "j")), v) * 2


def _other_axes(q, k, v, pattern):
    s = _s(pattern, q, k)
    return lacis.einsum("hij,hje->hie", s, v), lacis.einsum("hij,hid->hjd", s, q)


INSIDE = "i mod 8 : compressed<unique=false>, j mod 8 : singleton"
NESTED = f"(i, j) -> (i floordiv 8 : dense, j floordiv 8 : compressed, {INSIDE})"
NO_LOOP = {
    "roll: no loop named 'i'; the statements become loop 'j'": (attend._function, lacis.Csr),
    "two maxima, 'm' and 'm1', are no one state": (_two_maxima, lacis.Csr),
    "'a' is no sum from 0 on that is linear in 't'": (_no_sum, lacis.Csr),
    "'t1' is no statement of the loop": (_sum_before, lacis.Csr),
    "is no sum from 0 on that is linear in 'p'": (_not_linear, lacis.Csr),
    "'a' is no statement of the loop": (_other_statement, lacis.Csr),
    "is over other axes than": (_other_axes, lacis.Csr),
    "level 1 of the pattern has no positions of one row after another": (attend._function, lacis.Coo),
    "the levels below level 2 of the pattern are no dense tile": (attend._function, lacis.Format.parse(NESTED)),
    "loop 'j': the levels below level 2 of the pattern are no dense tile": (
        attend._function,
        lacis.Format.parse(NESTED.replace(INSIDE, "(i mod 8, j mod 8) : dense")),
    ),
    "the sum is over one axis of a pattern without bindings": (attend._function, lacis.Sell(4, 8)),
}


@pytest.mark.parametrize("message", NO_LOOP)
def test_what_is_no_loop(message):
    function, format = NO_LOOP[message]
    q, k, v = operands()
    loop = "i" if "named" in message else "j"
    with pytest.raises(lacis.CompileError, match=message) as raised:
        lacis.kernel(function).compile(
            q, k, v, lacis.Pattern.from_mask(mask_of(), format), steps=[lacis.steps.Roll(loop)]
        )
    assert "named" in message or f"roll: the statements are no one loop '{loop}': " in str(raised.value)


@pytest.mark.long
@pytest.mark.parametrize("format", [lacis.Csr, lacis.Bsr(8, 8)])
def test_sums_without_a_maximum_are_one_loop(format):
    """Two sums of two statements, of which the second reads the first; what pads a tile adds nothing."""

    @lacis.kernel
    def sums(q, k, v, pattern):
        s = _s(pattern, q, k)
        first = torch.exp(_s(pattern, q, k))
        return lacis.einsum("hij,hje->hie", s * 2, v), lacis.einsum("hij,hje->hie", first + 1, v)

    mask = mask_of()
    q, k, v = operands()
    q = q / 4  # exponentials of about one: what cancels in their sums is as exact as the tolerance asks
    kernel = sums.compile(q, k, v, lacis.Pattern.from_mask(mask, format))
    assert kernel.steps[0].mnemonic == "roll" and "lacis.kept" not in kernel.asm["loops"]
    s = torch.einsum("hid,hjd->hij", q, k)
    found = kernel(q, k, v, lacis.Pattern.from_mask(mask, format))
    wanted = torch.where(mask, 2 * s, 0) @ v, torch.where(mask, torch.exp(s) + 1, 0) @ v
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


def test_text_that_is_no_loop():
    """What no function of Python's can say."""
    q, k, v = operands()
    pattern = lacis.Pattern.from_mask(mask_of(), lacis.Csr)
    text = attend.compile(q, k, v, pattern, steps=[lacis.steps.Roll("j")]).text
    empty = re.compile(r"tensor.empty\((%\w+), (%\w+)\) : tensor<\?x\?x10xf64>")
    any_size = empty.sub(r"tensor.empty(\1, \2, \1) : tensor<?x?x?xf64>", text).replace("x10xf64", "x?xf64")
    for other, message in (
        (
            text.replace("math.exp ", "math.tanh "),
            "depends on the maximum through more than the exponential of a difference",
        ),
        (any_size, "the size of 'e' is not compiled in, and 'a' has it in a tile"),
    ):
        with pytest.raises(lacis.CompileError, match=message):
            compile_kernel(other, "cpu")


@pytest.mark.long
def test_kept_statements_have_nests():
    """What was chosen is told, saved and replayed; a statement that is read once is kept where a step says so."""
    q, k, v = operands()
    mask = mask_of()
    pattern = lacis.Pattern.from_mask(mask, lacis.Bsr(8, 8))
    kernel = attend.compile(q, k, v, pattern, steps=[lacis.steps.Keep("s")])
    kept = [step.tensor for step in kernel.steps if step.mnemonic == "keep"]
    assert kept == ["s", "t", "m", "p", "l"]
    assert kernel.asm["loops"].count(" kept<") == len(kept)
    again = attend.compile(q, k, v, pattern, steps=list(kernel.steps))
    assert again.asm["buffers"] == kernel.asm["buffers"]
    torch.testing.assert_close(kernel(q, k, v, pattern), reference(q, k, v, mask), rtol=0, atol=1e-12)


def test_a_remark_says_why_it_is_no_loop():
    q, k, v = operands()
    kernel = attend.compile(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Coo))
    why = "roll: the statements are no one loop: level 1 of the pattern has no positions of one row after another"
    assert kernel.remarks == (why,)


def test_roll_is_of_cpus_and_tiles():
    q, k, v = operands(torch.float32)
    pattern = lacis.Pattern.from_mask(mask_of(), lacis.Csr)
    with pytest.raises(
        lacis.ScheduleError,
        match="roll: 'cuda:sm_75' has no default schedule for such a loop, CPUs and GPUs from sm_80 on have",
    ):
        attend.compile(q, k, v, pattern, steps=[lacis.steps.Roll("j")], target="cuda:sm_75")


@pytest.mark.long
def test_slots_that_no_array_counts():
    q, k, v = operands()
    with pytest.raises(
        lacis.CompileError, match="no array of the pattern has an element for each slot, of which a workspace is kept"
    ):
        attend.compile(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Bitmap(8, 8)))


@pytest.mark.long
def test_tiles_of_one_level_are_right():
    q, k, v = operands()
    mask = mask_of()
    pattern = lacis.Pattern.from_mask(mask, lacis.Format.parse(NESTED.replace(INSIDE, "(i mod 8, j mod 8) : dense")))
    torch.testing.assert_close(attend(q, k, v, pattern), reference(q, k, v, mask), rtol=0, atol=1e-12)


WRONG = {
    "keep: no statement named 'x'; those with a result to keep are": ["x"],
    "keep: 'o' is a result of the kernel, which has a nest anyway": ["o"],
    "keep: the loop 'j' that roll makes keeps no 'm'; give one of the two steps": ["m", None],
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_kept(message):
    q, k, v = operands()
    given = [lacis.steps.Roll("j") if name is None else lacis.steps.Keep(name) for name in WRONG[message]]
    with pytest.raises(lacis.CompileError, match=message):
        attend.compile(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Csr), steps=given)
    with pytest.raises(lacis.CompileError, match=message):
        attend.compile(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Csr), steps=given[::-1])


def test_steps_of_chains_alone():
    q, k, v = operands()
    own = [lacis.steps.Own("pattern", "list")]
    message = "is the pattern of a chain, which has no such form; roll and keep say how it runs"
    with pytest.raises(lacis.CompileError, match=message):
        attend.compile(q, k, v, lacis.Pattern.from_mask(mask_of(), lacis.Csr), steps=own)
    w = lacis.pack(torch.eye(4, dtype=q.dtype), lacis.Csr)
    x = torch.ones(3, 4, dtype=q.dtype)
    for step, message in (
        (lacis.steps.Roll("j"), "roll: loop 'j' is made of no chain of statements; a function of lacis.kernel is one"),
        (lacis.steps.Keep("s"), "keep: 's' is no statement of a chain; a function of lacis.kernel is one"),
    ):
        with pytest.raises(lacis.CompileError, match=message):
            lacis.compile("ij,bj->bi", w, x, steps=[step])
        assert lacis.steps.parse(step.text()) == step
