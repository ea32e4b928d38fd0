# SPDX-License-Identifier: Apache-2.0
"""The text that reaches the compiler: one contraction on encoded tensors, an epilogue, the user's line."""

import dataclasses

import lacis
import pytest
import torch
from lacis.capture import capture_einsum, divisible, kernel_spec, parse_statement
from lacis.emit import emit
from lacis.operators import OPERATORS


def linear(dtype=torch.float32, bias=False, location=None, format=lacis.Csr, shape=(30, 48)):
    packed = lacis.pack(torch.ones(shape, dtype=dtype), format)
    return kernel_spec(OPERATORS["linear"], packed, bias, location=location)


def test_linear_names_the_letters_of_the_api():
    spec = linear()
    assert spec.loops == ("b", "i", "j") and [o.name for o in spec.arguments] == ["w", "x"]
    text = emit(spec)
    assert 'lacis.loops = ["b", "i", "j"]' in text and "lacis.steps = []" in text
    assert "func.func @linear(%w: tensor<?x?xf32, #w>" in text


def test_divisibility_classes_come_from_the_weight():
    text = emit(linear(shape=(30, 96), bias=True))
    assert '%w: tensor<?x?xf32, #w> {lacis.name = "w", lacis.divisible = array<i64: 2, 32>}' in text
    assert '%x: tensor<?x?xf32> {lacis.name = "x", lacis.divisible = array<i64: 1, 32>}' in text
    assert '%bias: tensor<?xf32> {lacis.name = "bias", lacis.divisible = array<i64: 2>}' in text
    assert [divisible(n) for n in (0, 1, 2, 48, 4096)] == [1, 1, 2, 16, 128]


def test_half_types_accumulate_in_float32():
    for dtype, name in ((torch.float16, "f16"), (torch.bfloat16, "bf16")):
        text = emit(linear(dtype))
        assert text.count(f"arith.extf %in{0} : {name} to f32") == 1
        assert "arith.truncf %value : f32 to " + name in text
    assert "arith.extf" not in emit(linear(torch.float32))
    assert "%acc: f64" in emit(linear(torch.float64))


def test_bias_is_an_epilogue():
    assert emit(linear()).count("linalg.generic") == 1
    text = emit(linear(bias=True))
    assert text.count("linalg.generic") == 2 and "arith.addf %value, %in_bias" in text


def test_every_operation_has_the_line():
    text = emit(linear(torch.float16, True, ("train.py", 12)))
    body = text.split("attributes {")[1].splitlines()[1:]
    operations = [line for line in body if "=" in line and "linalg.generic" not in line]
    assert all(line.endswith('loc("train.py":12:0)') for line in operations)


def test_location_is_no_part_of_the_kernel():
    assert linear(location=("a.py", 1)) == linear(location=("b.py", 2))
    assert linear() != linear(torch.float64) and linear() != linear(bias=True)


def test_layers_of_one_class_share_a_kernel():
    assert linear(shape=(256, 384)) == linear(shape=(128, 640))
    assert linear(shape=(256, 384)) != linear(shape=(255, 384))


def test_wide_arrays_are_another_kernel():
    packed = lacis.pack(torch.ones(4, 4), lacis.Csr)
    wide = lacis.PackedTensor.from_storage(
        packed.format, packed.shape, {k: v.long() for k, v in packed.storage.items()}, packed.values
    )
    assert "compressed<pos=i64, crd=i64>" in emit(kernel_spec(OPERATORS["linear"], wide, False))


def test_a_sum_is_one_operand():
    format = lacis.Format.parse(
        "#lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)> when fits, "
        "rest = #lacis.format<(i, j) -> (i : dense, j : compressed)>>"
    )
    assert "#w = #lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)> when fits, rest" in emit(
        linear(format=format)
    )


EXPRESSIONS = ["nk,bk->bn", "ij,j->i", "ij,jk->ik", "ki,kj->ij", "ij,j->", "ij->j", "ij,,j->i"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_any_expression_with_one_packed_operand(expression):
    terms, output = parse_statement(expression)
    operands = [torch.ones([4] * len(term)) for term in terms]
    spec, sizes = capture_einsum(expression, [lacis.pack(operands[0], lacis.Csr), *operands[1:]])
    text = emit(spec)
    assert text.count("linalg.generic") == 1 and spec.output.indices == output
    assert set(sizes) == set(spec.loops)


def test_three_axes_and_the_packed_operand_last():
    cube = lacis.pack(torch.ones(3, 4, 5), lacis.Csf)
    spec, _ = capture_einsum("jr,kr,ijk->ir", [torch.ones(4, 2), torch.ones(5, 2), cube])
    assert spec.packed == 2 and spec.loops == ("i", "r", "j", "k")
    assert "%product2 = arith.mulf %product1, %in2" in emit(spec)


def test_a_sampled_output_takes_its_pattern():
    pattern = lacis.pack(torch.ones(4, 5), lacis.Csr).pattern
    a, b = torch.ones(4, 3), torch.ones(5, 3)
    spec, _ = capture_einsum("ij,ik,jk->ji", [pattern, a, b])
    assert spec.sampled and spec.output.indices == ("i", "j")
    text = emit(spec)
    assert "%arg0: !lacis.pattern<?x?, #arg0>" in text
    assert "%init = lacis.zeros %arg0 : !lacis.pattern<?x?, #arg0> to tensor<?x?xf32, #arg0>" in text
    assert "ins(%arg1, %arg2 :" in text and "outs(%init : tensor<?x?xf32, #arg0>)" in text
    half, _ = capture_einsum("ij,ik,jk->ij", [pattern, a.half(), b.half()])
    assert "%target = lacis.zeros %arg0 : !lacis.pattern<?x?, #arg0> to tensor<?x?xf16, #arg0>" in emit(half)


def test_values_take_part_in_a_sampled_output():
    packed = lacis.pack(torch.ones(4, 5), lacis.Csr)
    text = emit(capture_einsum("ij,ij->ij", [torch.ones(4, 5), packed])[0])
    assert "lacis.zeros %arg1 : tensor<?x?xf32, #arg1> to tensor<?x?xf32, #arg1>" in text
    assert "ins(%arg0, %arg1 : tensor<?x?xf32>, tensor<?x?xf32, #arg1>)" in text


def test_semirings_name_their_operations():
    packed = lacis.pack(torch.ones(4, 5), lacis.Csr)
    text = emit(capture_einsum("ij,j->i", [packed, torch.ones(5)], semiring="max_plus")[0])
    assert "arith.constant 0xFF800000 : f32" in text and "arith.maximumf %acc" in text and "arith.addf %in0" in text
    bools = lacis.pack(torch.ones(4, 5, dtype=torch.bool), lacis.Csr)
    text = emit(capture_einsum("ij,j->i", [bools, torch.ones(5, dtype=torch.bool)], semiring="or_and")[0])
    assert "tensor<?xi8>" in text and "arith.andi" in text and "arith.ori" in text
    for semiring, message in (("min_plus", "there are plus_times, max_plus"), ("or_and", "takes bool operands")):
        with pytest.raises(lacis.DataError, match=message):
            capture_einsum("ij,j->i", [packed, torch.ones(5)], semiring=semiring)


def test_an_epilogue_is_one_more_generic():
    w, x = lacis.pack(torch.ones(4, 5), lacis.Csr), torch.ones(3, 5)
    after = lacis.Epilogue(torch.ones(4), "gelu", torch.tensor(2.0), torch.ones(3, 4))
    spec, _ = capture_einsum("ij,bj->bi", [w, x], epilogue=after)
    assert [(o.name, o.indices) for o in spec.epilogue] == [("scale", ()), ("bias", ("i",)), ("residual", ("b", "i"))]
    text = emit(spec)
    assert text.count("linalg.generic") == 2 and "math.erf" in text
    assert "ins(%sum, %scale, %bias, %residual :" in text
    plain, _ = capture_einsum("ij,bj->bi", [w, x], epilogue=lacis.Epilogue(scale=3))
    assert "arith.constant 3.0 : f32" in emit(plain)


REFUSED = {
    "no arrow": ("ij,j", "is no expression"),
    "numbers for letters": ([0, 1], "not list"),
    "an ellipsis": ("i...,j->i", r"'\.\.\.' in .* has no code"),
    "no letter": ("i1,j->i", "is no expression"),
    "a letter twice": ("ii,i->i", "diagonals"),
    "a letter of the output alone": ("ij,j->k", "in no operand"),
    "too few operands": ("ij,j,k->i", "names 3 operands"),
    "another rank": ("ijk,j->i", "operand 0 has 2 axes"),
    "sizes that differ": ("ij,i->j", "'i' is 4 long, but 5"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_expressions(case):
    expression, message = REFUSED[case]
    with pytest.raises(lacis.DataError, match=message):
        capture_einsum(expression, [lacis.pack(torch.ones(4, 5), lacis.Csr), torch.ones(5)])


def test_refused_operands():
    packed = lacis.pack(torch.ones(4, 5), lacis.Csr)
    with pytest.raises(lacis.DataError, match="operand 1 is torch.float64"):
        capture_einsum("ij,j->i", [packed, torch.ones(5, dtype=torch.float64)])
    with pytest.raises(lacis.DataError, match="torch.int64 has no kernels"):
        capture_einsum("ij,j->i", [lacis.pack(torch.ones(4, 5).long(), lacis.Csr), torch.ones(5).long()])
    with pytest.raises(lacis.DataError, match="at most one operand may be packed"):
        capture_einsum("ij,ij->i", [packed, packed])
    with pytest.raises(lacis.DataError, match="the output must have its letters 'ij'"):
        capture_einsum("ij,j->i", [packed.pattern, torch.ones(5)])
    with pytest.raises(lacis.DataError, match="a pattern alone has no values"):
        capture_einsum("ij->ij", [packed.pattern])


def test_steps_travel_in_the_text():
    spec = dataclasses.replace(linear(), steps=(lacis.steps.Split("i", 32), lacis.steps.Parallel("i0")))
    assert 'lacis.steps = [#lacis.split<loop = "i", factor = 32>, #lacis.parallel<loop = "i0">]' in emit(spec)
