# SPDX-License-Identifier: Apache-2.0
"""The forward pass in the modes that users run: grad, no_grad, inference, traced; and no gradient that is wrong."""

import lacis
import pytest
import torch

FORMATS = {
    "Csr": lambda h: h.set_format(lacis.Csr),
    "Csc": lambda h: h.set_format(lacis.Csc),
    "nest": lambda h: h.block(16, 16).set_format(lacis.Ell, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3]),
    "sum": lambda h: h.decompose(ell=lacis.Ell(width=4), rest=lacis.Coo),
}


def build(format="Csr", target="cpu", bias=True, shape=(40, 24), outer=torch.nn.Identity, training=True):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(shape[0], shape[1], bias=bias), outer()).train(training)
    s = lacis.create_schedule(model, target=target)
    FORMATS[format](s["0.weight"].sparsify(lacis.Magnitude(0.8)))
    return s.build(), s


def reference(model, x):
    return torch.nn.functional.linear(x, model[0].weight.to_dense(), model[0].bias)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_modes(format, mode):
    model, _ = build(format)
    with mode():
        x = torch.randn(3, 5, 40, requires_grad=mode is torch.enable_grad)
        torch.testing.assert_close(model(x), reference(model, x))


@pytest.mark.parametrize("format", FORMATS)
def test_shapes_of_the_input(format):
    model, _ = build(format)
    with torch.no_grad():
        wide = torch.randn(7, 80)
        for x in (torch.randn(40), torch.randn(0, 40), torch.randn(2, 0, 40), torch.randn(1, 40), torch.randn(33, 40),
                  wide[:, ::2], torch.randn(40, 9).T, torch.randn(4, 40, 3).transpose(1, 2)):  # fmt: skip
            torch.testing.assert_close(model(x), reference(model, x))
    with pytest.raises(RuntimeError, match="last axis must be 40"):
        model(torch.randn(3, 41))


@pytest.mark.parametrize("format", FORMATS)
def test_gradients_of_input_and_bias(format):
    model, _ = build(format)
    model[0].weight.requires_grad_(False)
    x = torch.randn(3, 5, 40, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    model(x).square().sum().backward()
    bias = model[0].bias.grad.clone()
    model[0].bias.grad = None
    reference(model, twin).square().sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)
    torch.testing.assert_close(bias, model[0].bias.grad)


def test_eager_trains_and_padding_stays_zero():
    model, _ = build("sum", target="eager")
    twin = torch.nn.functional.linear
    x = torch.randn(3, 40)
    dense = model[0].weight.to_dense().detach().requires_grad_()
    twin(x, dense, model[0].bias.detach()).square().sum().backward()
    model(x).square().sum().backward()
    packed = model[0].weight.packed()
    values = {name: part.values.grad for name, part in model[0].weight.named_children()}
    expected = packed.pattern.gather(dense.grad)
    for name, grad in values.items():
        torch.testing.assert_close(grad, expected[name])


@pytest.mark.parametrize("format", FORMATS)
def test_traced_as_one_graph(format):
    model, _ = build(format, outer=torch.nn.ReLU)
    traced = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    with torch.no_grad():
        for batch in (5, 9, 17):
            x = torch.randn(batch, 40)
            torch.testing.assert_close(traced(x), model(x))


def test_nan_reaches_outputs_of_kept_entries_only():
    for format in FORMATS:
        model, _ = build(format)
        mask = model[0].weight.packed().pattern.to_mask()
        for bad in (float("nan"), float("inf")):
            x = torch.ones(2, 40)
            x[0, 7] = bad
            with torch.no_grad():
                y = model(x)
            assert torch.equal(~y[0].isfinite(), mask[:, 7]) and y[1].isfinite().all()


def test_other_dtypes_of_the_input_are_refused():
    model, _ = build()
    with pytest.raises(lacis.DataError, match="the weight is torch.float32 .* an operand torch.float64"):
        model(torch.randn(2, 40, dtype=torch.float64))


def test_layers_share_kernels():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(24, 24) for _ in range(4)))
    s = lacis.create_schedule(model)
    s.match(r".*weight").sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csr)
    s.build()
    assert len({s[f"{n}.weight"].kernel.key for n in range(4)}) == 1


def test_looking_inside():
    _, s = build("nest")
    kernel = s["0.weight"].kernel
    assert kernel.stages[:2] == ("lacis", "loops") and {"buffers", "target", "llvm", "asm"} <= set(kernel.stages)
    assert kernel.asm["lacis"].count("linalg.generic") == 2
    assert set(s["0.weight"].kernels) == {"forward", "grad_input", "grad_values"}
    assert s["0.weight"].kernels["grad_input"].spec.output.name == "x"


def test_compiler_errors_name_the_parameter_and_the_line():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8))
    s = lacis.create_schedule(model, target="cpu")
    with pytest.raises(lacis.Error, match=r"test_forward.py:\d+: .*0.weight.*level kind '@runs' has no code yet"):
        s["0.weight"].set_format("(i, j) -> (i : dense, j : @runs)")
        s.build()
    assert type(model[0]) is torch.nn.Linear


@pytest.mark.parametrize("format", FORMATS)
def test_calls_in_inference_see_what_the_module_holds_now(format):
    model, _ = build(format)
    other, _ = build(format)
    layer, x = model[0], torch.randn(2, 3, 40)
    with torch.inference_mode():
        model(x)
        quick = layer._quick
        assert quick(x) is not None, "no other way was taken"
    with torch.no_grad():
        for part in layer.weight._parts():
            part.values.mul_(2)
        layer.bias = torch.nn.Parameter(torch.randn(24))
        torch.testing.assert_close(model(x), reference(model, x))
        layer.weight.set_packed(lacis.pack(layer.weight.to_dense().flip(0), layer.weight.format))
        torch.testing.assert_close(model(x), reference(model, x))
        layer.weight = other[0].weight
        assert quick(x) is None, "another weight is noticed"
        torch.testing.assert_close(model(x), reference(model, x))
        torch.nn.utils.parametrize.register_parametrization(layer, "bias", Triple())
        torch.testing.assert_close(model(x), reference(model, x))


class Triple(torch.nn.Module):
    def forward(self, bias):
        return 3 * bias


def test_refusals_in_inference_are_errors_of_lacis():
    model, _ = build()
    with torch.inference_mode():
        model(torch.randn(3, 40))
        with pytest.raises(lacis.DataError, match="cast or move it"):
            model(torch.randn(3, 40, dtype=torch.float64))
        model[0].weight.pos1 = model[0].weight.pos1[:-1]
        with pytest.raises(lacis.DataError, match=r"test_forward.py.*'pos1' must have shape \[25\], not \[24\]"):
            model(torch.randn(3, 40))
