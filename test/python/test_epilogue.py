# SPDX-License-Identifier: Apache-2.0
"""What follows the sum: scale, bias, activation, residual, by torch's formulas and accuracy."""

import math

import pytest
import strategies
import torch
from strategies import DTYPES, mostly_long, turns

import lacis
from lacis.activations import find_activation

W = torch.randn(11, 7, generator=torch.Generator().manual_seed(1)).relu()
X = torch.randn(5, 7, generator=torch.Generator().manual_seed(2))


FORMULAS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "leaky_relu(0.1)": lambda x: torch.where(x > 0, x, 0.1 * x),
}


TOLERANCES = {torch.float32: 1e-6, torch.float64: 1e-14, torch.float16: 1e-3}
COMPILED = {
    "relu": [torch.float64],
    "gelu": [torch.float32],
    "gelu_tanh": [torch.float64],
    "silu": [torch.float16],
    "leaky_relu(0.1)": [torch.float32],
}


def run(epilogue, w=W, x=X, expression="ij,bj->bi", target="cpu"):
    with torch.no_grad():
        return lacis.einsum(expression, lacis.pack(w, lacis.Csr), x, epilogue=epilogue, target=target)


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("activation", FORMULAS)
def test_activations_are_torchs(activation, target):
    """One entry a row hands every number to the activation as it is."""
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 88.0, -88.0, 1e30, -1e30]
    for dtype, tolerance in TOLERANCES.items():
        if target == "cpu" and not strategies.LONG and dtype not in COMPILED[activation]:
            continue
        x = torch.cat([torch.tensor(special, dtype=dtype), torch.linspace(-12, 12, 4001, dtype=dtype)])
        y = run(lacis.Epilogue(activation=activation), torch.eye(1, dtype=dtype), x[:, None], target=target)[:, 0]
        # torch's vectorised gelu makes NaN of infinity, its own formula does not.
        expected = torch.where(x.isinf(), FORMULAS[activation](x), find_activation(activation).eager(x))
        if dtype == torch.float16 and activation == "gelu":  # approximated, it has the limit there
            expected = torch.where(x == -math.inf, 0.0, expected)
        if target == "eager":
            y = torch.where(x.isinf(), expected, y)
        assert torch.equal(y.isnan(), expected.isnan())
        finite = expected.isfinite()
        assert torch.equal(y[~finite & ~y.isnan()], expected[~finite & ~y.isnan()])
        # Beside the number itself: torch's own formulas cancel where the activation is far smaller than its argument.
        size = torch.maximum(expected.abs(), x.abs().clamp(max=1))[finite].double()
        error = (y - expected).abs()[finite].double()
        assert bool((error <= tolerance * size).all()), float((error / size.clamp(min=1e-300)).max())


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("dtype", mostly_long(DTYPES, torch.float16))
def test_the_order_is_scale_bias_activation_residual(dtype, target):
    bias, residual, w, x = (t.to(dtype) for t in (torch.linspace(-3, 3, 11), torch.randn(5, 11), W, X))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    total = x.to(wide) @ w.to(wide).T
    scales = (0.25, torch.tensor(0.25, dtype=dtype), torch.linspace(0.1, 2, 11).to(dtype))
    for scale in scales if target == "eager" else turns(scales, dtype.itemsize + dtype.is_complex):
        expected = torch.nn.functional.gelu(total * scale + bias) + residual
        y = run(lacis.Epilogue(bias, "gelu", scale, residual), w, x, target=target)
        assert y.dtype == dtype
        torch.testing.assert_close(y, expected.to(dtype))


AXES = [
    ("ij,bj->bi", None, "i"),
    ("ij,jb->ib", None, "i"),
    ("ij,bj->bi", "b", "b"),
    ("ij,bj->bi", "ib", "ib"),
    ("ij,ic->jc", None, "j"),
]


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("expression, axis, meant", mostly_long(AXES))
def test_the_bias_lies_along_its_letters(expression, axis, meant, target):
    sizes = {"i": 11, "j": 7, "b": 5, "c": 4}
    x = torch.randn([sizes[letter] for letter in expression.split("->")[0].split(",")[1]])
    bias = torch.randn([sizes[letter] for letter in meant])
    output = expression.split("->")[1]
    spread = torch.einsum(f"{meant},{output}->{output}", bias, torch.ones([sizes[letter] for letter in output]))
    y = run(lacis.Epilogue(bias=bias, bias_axis=axis), W, x, expression, target)
    torch.testing.assert_close(y, torch.einsum(expression, W, x) + spread)


def test_nan_and_infinity_pass_as_in_torch():
    w, x = torch.eye(2), torch.tensor([[math.nan, 1.0], [math.inf, -1.0]])
    y = run(lacis.Epilogue(bias=torch.tensor([1.0, 0.0]), activation="relu"), w, x)
    assert y[0, 0].isnan() and y[0, 1] == 1 and y[1, 0] == math.inf and y[1, 1] == 0


@pytest.mark.long
def test_a_sum_of_parts_has_one_epilogue():
    format = lacis.Format.parse(
        "#lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<2>)> when fits, "
        "rest = #lacis.format<(i, j) -> (i : dense, j : compressed)>>"
    )
    bias = torch.randn(11)
    y = lacis.einsum("ij,bj->bi", lacis.pack(W, format), X, epilogue=lacis.Epilogue(bias=bias, activation="silu"))
    torch.testing.assert_close(y, torch.nn.functional.silu(X @ W.T + bias))


def test_a_kernel_takes_the_epilogue_of_the_call():
    w, first, second = lacis.pack(W, lacis.Csr), torch.randn(11), torch.randn(11)
    kernel = lacis.compile("ij,bj->bi", w, X, epilogue=lacis.Epilogue(bias=first))
    torch.testing.assert_close(kernel(w, X), X @ W.T + first)
    torch.testing.assert_close(kernel(w, X, epilogue=lacis.Epilogue(bias=second)), X @ W.T + second)
    with pytest.raises(lacis.ScheduleError, match="differ"):
        kernel(w, X, epilogue=lacis.Epilogue(bias=second, activation="relu"))


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("axes", mostly_long(["i", "ib"]))
def test_gradients(axes, target):
    """Each tensor of the epilogue has its gradient, beside that of the dense operand."""
    generator = torch.Generator().manual_seed(3)
    new = lambda *shape: torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()
    w = lacis.pack(W[:7, :5].double(), lacis.Csr)
    x, bias, scale, residual = new(3, 5), new(*(7, 3)[: len(axes)]), new(), new(3, 7)

    def function(x, bias, scale, residual):
        after = lacis.Epilogue(bias, "gelu", scale, residual, axes)
        return lacis.einsum("ij,bj->bi", w, x, epilogue=after, target=target)

    assert torch.autograd.gradcheck(function, (x, bias, scale, residual))
    with torch.no_grad():
        fused = function(x, bias, scale, residual)
    torch.testing.assert_close(function(x, bias, scale, residual), fused)


REFUSED = {
    "no such activation": (
        dict(activation="tanh"),
        r"epilogue: no activation 'tanh'; there are gelu, gelu_tanh, leaky_relu\(0.01\), relu, silu",
    ),
    "a number too many": (dict(activation="leaky_relu(1, 2)"), r"it is written 'leaky_relu\(0.01\)'"),
    "a number that is none": (dict(activation="leaky_relu(x)"), r"it is written 'leaky_relu\(0.01\)'"),
    "numbers where none are taken": (dict(activation="relu(0.1)"), r"activation 'relu\(0.1\)': it takes no numbers"),
    "half a call": (dict(activation="relu("), r"no activation 'relu\('"),
    "a function as activation": (dict(activation=torch.relu), "activation must be text, not builtin_function"),
    "a list": (dict(bias=[1.0]), "bias must be a tensor, not list"),
    "a word": (dict(scale="two"), "scale must be a number or a tensor"),
    "another length": (dict(bias=torch.ones(7)), r"bias must have shape \[11\], not \[7\]"),
    "another shape": (dict(residual=torch.ones(11, 5)), r"residual must have shape \[5, 11\]"),
    "another dtype": (dict(bias=torch.ones(11).double()), "bias is torch.float64"),
    "a letter that is summed": (
        dict(bias=torch.ones(7), bias_axis="j"),
        "bias_axis is 'j', the output has the letters 'bi'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    arguments, message = REFUSED[case]
    with pytest.raises(lacis.DataError, match=message):
        run(lacis.Epilogue(**arguments))


def test_only_einsums_with_a_packed_operand_have_one():
    with pytest.raises(lacis.DataError, match="need one packed operand"):
        lacis.einsum("ij,bj->bi", W, X, epilogue=lacis.Epilogue(scale=2))
    with pytest.raises(lacis.DataError, match="must be a lacis.Epilogue, not dict"):
        run({"scale": 2})
