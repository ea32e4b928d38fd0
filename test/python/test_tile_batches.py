# SPDX-License-Identifier: Apache-2.0
"""Letters of a batch, and vectors along tokens, on tiles: in plain loops against float64, and assembled for GPUs."""

import dataclasses

import pytest
import torch
from strategies import mostly_long
from test_plain_tiles import CASES, GPUS, SAMPLED, check, tiled, weight

import lacis
from lacis.capture import Epilogue, capture_einsum
from lacis.capture.gradient import gradient_specs
from lacis.emit import emit
from lacis.runtime import ptxas
from lacis.runtime.batch_letters import under_batch_letters
from lacis.runtime.kernels import compile_kernel

TURNS = [(case, target) for case in CASES if case != "8" for target in GPUS]
PRODUCTS = ("ij,hjb->hib", "ij,hbj->hbi", "ij,hjb->hbi", "ij,hbj->hib", "ij,ghjb->ghib", "ij,ghbj->ghbi")
SUMS = ("ij,hbi,hbj->ij", "ij,hib,hjb->ij", "ij,hib,hbj->ij", "ij,ghib,ghjb->ij")
SCORES = ("ij,hid,hjd->hij", "ij,hdi,hdj->hij", "ij,ghid,ghdj->ghij")


def drawn(expression, packed, **sizes):
    """Random dense operands of these sizes, and of those of the packed one."""
    _, *terms = expression.partition("->")[0].split(",")
    sizes |= dict(zip("ij", packed.shape))
    return [torch.randn([sizes[letter] for letter in term]).to(packed.dtype) for term in terms]


def all_of(expressions, turns=TURNS):
    return [(expression, *turn) for expression in expressions for turn in turns]


@pytest.mark.parametrize(
    "expression, case, target", mostly_long(all_of(PRODUCTS), ("ij,hjb->hib", "16", "cuda:sm_90a"))
)
def test_a_weight_shared_by_a_batch(expression, case, target):
    """Sizes that no tile divides, one matrix, and none."""
    packed = weight(case)
    kernel = tiled(expression, [packed, *drawn(expression, packed, g=2, h=2, b=8)], target)
    for matrices, tokens in ((3, 264), (2, 40), (1, 8), (0, 16), (2, 0)):
        (x,) = drawn(expression, packed, g=2, h=matrices, b=tokens)
        check(kernel(packed, x), torch.einsum(expression, packed.to_dense().double(), x.double()))


@pytest.mark.long
@pytest.mark.parametrize("expression", PRODUCTS[:2])
def test_a_weight_without_entries(expression):
    packed = lacis.pack(torch.zeros(128, 192).bfloat16(), lacis.Bsr(64, 64))
    (x,) = drawn(expression, packed, h=3, b=40)
    assert not tiled(expression, [packed, x], GPUS[0])(packed, x).any()


@pytest.mark.long
@pytest.mark.parametrize(
    "expression, case, target", mostly_long(all_of(SUMS, SAMPLED), ("ij,hib,hjb->ij", "32", "cuda:sm_90a"))
)
def test_a_sampled_product_summed_over_a_batch(expression, case, target):
    packed = weight(case, entries=0.3)
    kernel = tiled(expression, [packed.pattern, *drawn(expression, packed, g=2, h=2, b=8)], target)
    terms = expression.partition("->")[0][3:] + "->ij"
    for matrices, depth in ((3, 136), (40, 72), (1, 8), (0, 16)):
        factors = drawn(expression, packed, g=2, h=matrices, b=depth)
        want = packed.pattern.gather(torch.einsum(terms, *(factor.double() for factor in factors)))
        got = kernel(packed.pattern, *factors).values
        check(got, want)
        assert not got[want == 0].any()


@pytest.mark.long
@pytest.mark.parametrize(
    "expression, case, target", mostly_long(all_of(SCORES, SAMPLED), ("ij,hid,hjd->hij", "64", "cuda:sm_90a"))
)
def test_a_sampled_product_for_each_head(expression, case, target):
    """Values in copies that share a pattern: padding of partly filled blocks stays 0 in each of them."""
    packed = weight(case, entries=0.3)
    letters = expression.partition("->")[2][:-2]
    operands = [packed.pattern, *drawn(expression, packed, g=2, h=2, d=8)]
    said, given = under_batch_letters(expression, operands)
    kernel = tiled(said, list(given), target)
    terms = f"{expression.partition('->')[0][3:]}->{letters}ij"
    for heads, depth in ((3, 72), (1, 136), (0, 64)):
        factors = drawn(expression, packed, g=2, h=heads, d=depth)
        pattern = packed.pattern.batched([{"g": 2, "h": heads}[letter] for letter in letters], letters)
        got = kernel(pattern, *factors).values
        want = pattern.gather(torch.einsum(terms, *(factor.double() for factor in factors)))
        check(got, want)
        assert not got[want == 0].any()


VECTORS = [(*turn, expression) for turn in TURNS for expression in ("ij,bj->bi", "ij,jb->ib", "ij,hjb->hib")]


@pytest.mark.long
@pytest.mark.parametrize("case, target, expression", mostly_long(VECTORS, ("32", "cuda:sm_90a", "ij,bj->bi")))
def test_vectors_along_the_tokens(case, target, expression):
    packed = weight(case)
    (x,) = drawn(expression, packed, h=3, b=72)
    bias, scale = torch.randn(2, 72).to(packed.dtype)
    after = Epilogue(bias=bias, scale=scale, activation="gelu", bias_axis="b")
    got = tiled(expression, [packed, x], target, epilogue=after)(packed, x)
    exact = lacis.pack(packed.to_dense().double(), lacis.Dense)
    wide = dataclasses.replace(after, bias=bias.double(), scale=scale.double())
    check(got, lacis.einsum(expression, exact, x.double(), epilogue=wide, target="eager"))


@pytest.mark.long
@pytest.mark.parametrize("case, target", [(case, target) for case in ("64", "128") for target in GPUS])
def test_a_residual_of_a_batch(case, target):
    packed = weight(case)
    x, residual = (torch.randn(3, size, 96).to(packed.dtype) for size in packed.shape[::-1])
    after, bias = Epilogue(residual=residual), torch.randn(packed.shape[0]).to(packed.dtype)
    got = tiled("ij,hjb->hib", [packed, x], target, epilogue=dataclasses.replace(after, bias=bias))(packed, x)
    want = torch.einsum("ij,hjb->hib", packed.to_dense().double(), x.double()) + bias.double()[:, None]
    check(got, want + residual.double())


@pytest.mark.long
def test_what_stays_on_cuda_cores_says_why():
    """One remark of the rule of tiles each."""
    w, on = lacis.pack(torch.ones(128, 128).bfloat16(), lacis.Bsr(64, 64)), {"target": "cuda:sm_90a"}
    x = torch.ones(2, 128, 128).bfloat16()
    said = lambda *given, **more: lacis.compile(*given, **more, **on).remarks
    order = "tensorize: letters of a batch come first in the dense operand and in the output, in one order"
    assert said("ij,jhb->hib", w, x.transpose(0, 1).contiguous()) == (order,)
    after = Epilogue(bias=x[0, 0], bias_axis="b")
    folded = "tensorize: what follows the sum reads more than vectors along 'i', numbers, and one residual"
    assert said("ij,hbj->hbi", w, x, epilogue=after) == (folded,)
    parts = lacis.formats.decompose(a=lacis.BlockedEll(64, 64, width=1), b=lacis.Coo)
    both = lacis.pack(torch.ones(128, 128).bfloat16(), parts)
    batch = "what a sum of formats multiplies has letters of a batch; fold them into one axis"
    assert any(batch in remark for remark in said("ij,hjb->hib", both, x))


def test_letters_of_a_batch_have_one_loop():
    packed = weight("64")
    pattern, factors = packed.pattern, drawn("ij,hib,hjb->ij", packed, h=2, b=64)
    found = tiled("ij,hib,hjb->ij", [pattern, *factors], GPUS[1]).steps
    apart = [step for step in found if not isinstance(step, lacis.steps.Fuse)]
    apart = [dataclasses.replace(s, loop="b0") if getattr(s, "loop", "") == "h_b0" else s for s in apart]
    said = "tiles: letters of a batch have one loop, of copies in a share, else with loop 'b0'; fuse them"
    with pytest.raises(lacis.CompileError, match=said):
        lacis.compile("ij,hib,hjb->ij", pattern, *factors, steps=apart, target="cuda:sm_75")


@pytest.mark.long
def test_sums_of_copies_are_not_cut():
    packed = weight("64")
    operands = [packed.pattern, *drawn("ij,hid,hjd->hij", packed, h=2, d=8)]
    said, given = under_batch_letters("ij,hid,hjd->hij", operands)
    texts = compile_kernel(emit(capture_einsum(said, list(given), None)[0]), GPUS[0]).info["steps"]
    steps = [lacis.steps.parse(text) for text in texts if "upto" not in text]
    steps = [dataclasses.replace(s, parts=8) if isinstance(s, lacis.steps.Balance) else s for s in steps]
    with pytest.raises(
        lacis.CompileError, match="tiles: sums of values in copies that share a pattern are not cut into 'parts'"
    ):
        lacis.compile(said, *given, steps=steps, target="cpu")


ASSEMBLED = [("64", GPUS[0]), ("128", GPUS[0]), ("16", GPUS[0]), ("32", GPUS[1]), ("64", GPUS[1])]


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
@pytest.mark.parametrize("case, target", ASSEMBLED)
@pytest.mark.parametrize("expression", (*PRODUCTS[:4], *SCORES[:2]))
def test_no_kernel_spills(expression, case, target):
    """The product, its gradients, and one with vectors along rows and tokens."""
    packed = weight(case)
    operands = [packed if expression in PRODUCTS else packed.pattern, *drawn(expression, packed, h=3, b=72, d=64)]
    expression, operands = under_batch_letters(expression, operands)
    spec = capture_einsum(expression, list(operands), None)[0]
    specs = {"forward": spec} | (gradient_specs(spec) if expression in PRODUCTS else {})
    if expression == "ij,hjb->hib":
        bias, scale = torch.zeros(2, 72, dtype=packed.dtype)
        after = Epilogue(bias=bias, scale=scale, bias_axis="b", activation="gelu")
        specs["vectors"] = capture_einsum(expression, list(operands), None, epilogue=after)[0]
    for name, spec in specs.items():
        found = compile_kernel(emit(spec), target, options={"ptxas": ptxas.find(), "check_ptxas": True})
        assert any("tensorize" in step for step in found.info["steps"]), name
