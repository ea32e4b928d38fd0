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
    assert text.count("linalg.generic") == 2 and "arith.addf %value, %add" in text


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
    assert "#w = #lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)> when fits, rest" in emit(linear(format=format))


EXPRESSIONS = ["nk,bk->bn", "ij,j->i", "ij,jk->ik", "ki,kj->ij", "ij,j->", "ij->ij", "ij->j"]


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


REFUSED = {
    "no arrow": ("ij,j", "is no expression"),
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


def test_steps_travel_in_the_text():
    spec = dataclasses.replace(linear(), steps=(lacis.steps.Split("i", 32), lacis.steps.Parallel("i0")))
    assert 'lacis.steps = [#lacis.split<loop = "i", factor = 32>, #lacis.parallel<loop = "i0">]' in emit(spec)
