# SPDX-License-Identifier: Apache-2.0
"""PEFT's LoRA on packed layers: trained beside a frozen or trained base, merged on its pattern."""

import copy
import warnings

import pytest
import torch

import lacis

peft = pytest.importorskip("peft")
hf = pytest.importorskip("lacis.hf")

FORMATS = {
    "csr": lambda handle: handle.sparsify(lacis.Magnitude(0.7)).set_format(lacis.Csr),
    "bsr": lambda handle: handle.block(24, 24).sparsify(lacis.Magnitude(0.9)).set_format(lacis.Bsr),  # with padding
    "sum": lambda handle: handle.sparsify(lacis.Magnitude(0.7)).decompose(ell=lacis.Ell(width=4), rest=lacis.Coo),
}


def models(format="csr", dtype=torch.float64, **options):
    """A packed model with adapters, and its dense twin."""
    torch.manual_seed(0)
    sparse = torch.nn.Sequential(torch.nn.Linear(32, 40), torch.nn.Tanh(), torch.nn.Linear(40, 8)).to(dtype)
    s = lacis.create_schedule(sparse, target="eager")
    FORMATS[format](s["0.weight"])
    s.build()
    dense = lacis.densify(copy.deepcopy(sparse))
    said = dict(r=4, target_modules=["0", "2"], init_lora_weights=False, **options)
    made = []
    for model in (sparse, dense):
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made.append(peft.get_peft_model(model, hf.lora(peft.LoraConfig(**said))))
    return made


@pytest.mark.parametrize("base", ["frozen", "trained"])
def test_it_trains_as_on_the_masked_dense_model(base):
    sparse, dense = models()
    layer, twin = sparse.base_model.model[0], dense.base_model.model[0]
    mask = layer.base_layer.weight.packed().pattern.to_mask()
    if base == "trained":
        layer.base_layer.weight.values.requires_grad_(True)
        twin.base_layer.weight.requires_grad_(True)
    optimizers = [torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], lr=1e-2) for m in (sparse, dense)]
    x = torch.randn(16, 32, dtype=torch.float64)
    for _ in range(20):
        for model, optimizer in zip((sparse, dense), optimizers):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            if model is dense and base == "trained":
                twin.base_layer.weight.grad *= mask
            optimizer.step()
    torch.testing.assert_close(sparse(x), dense(x))
    torch.testing.assert_close(layer.lora_A["default"].weight, twin.lora_A["default"].weight)
    torch.testing.assert_close(layer.base_layer.weight.to_dense(), twin.base_layer.weight)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("safe", [False, True])
def test_it_merges_on_the_pattern_and_off_again(format, safe):
    sparse, _ = models(format, lora_bias=True)
    layer = sparse.base_model.model[0]
    weight, bias = layer.base_layer.weight, layer.base_layer.bias.detach().clone()
    before, mask = weight.to_dense().detach(), weight.packed().pattern.to_mask()
    parts = [part.values for part in weight._parts()]
    delta = layer.lora_B["default"].weight @ layer.lora_A["default"].weight * layer.scaling["default"]
    sparse.merge_adapter(safe_merge=safe)
    torch.testing.assert_close(weight.to_dense(), before + delta * mask)
    torch.testing.assert_close(layer.get_delta_weight("default"), delta * mask)
    torch.testing.assert_close(layer.base_layer.bias, bias + layer.lora_B["default"].bias * layer.scaling["default"])
    assert all(part.values is held for part, held in zip(weight._parts(), parts))
    weight.validate()
    sparse.unmerge_adapter()
    torch.testing.assert_close(weight.to_dense(), before)
    torch.testing.assert_close(layer.base_layer.bias, bias)


def test_unloading_leaves_the_packed_layer():
    sparse, _ = models()
    made = sparse.merge_and_unload()
    assert isinstance(made[0], lacis.nn.SparseModule) and type(made[2]) is torch.nn.Linear


def test_half_types_merge_in_float32():
    sparse, _ = models(dtype=torch.bfloat16)
    layer = sparse.base_model.model[0]
    weight, a, b = layer.base_layer.weight, layer.lora_A["default"].weight, layer.lora_B["default"].weight
    delta = (b.double() @ a.double() * layer.scaling["default"]) * weight.packed().pattern.to_mask()
    expected = weight.to_dense().double() + delta
    sparse.merge_adapter()
    torch.testing.assert_close(weight.to_dense().double(), expected, rtol=2e-2, atol=1e-2)


def test_an_adapter_loads_into_another_packed_model(tmp_path):
    sparse, _ = models()
    sparse.save_pretrained(tmp_path)
    base = models()[0].unload()
    config = hf.lora(peft.LoraConfig.from_pretrained(tmp_path))
    again = peft.PeftModel.from_pretrained(base, tmp_path, config=config)
    x = torch.randn(3, 32, dtype=torch.float64)
    torch.testing.assert_close(again(x), sparse(x))


def test_what_needs_the_dense_weight_is_refused():
    with pytest.raises(lacis.DataError, match="DoraLinearVariant needs the dense weight"):
        models(use_dora=True)
    sparse, _ = models()
    layer = sparse.base_model.model[0]
    before = layer.base_layer.weight.values.detach().clone()
    with torch.no_grad():
        layer.lora_B["default"].weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="the adapter 'default' would make weights that are not finite"):
        layer.merge(safe_merge=True)
    assert torch.equal(layer.base_layer.weight.values, before)
    sparse, _ = models(lora_bias=True)
    layer = sparse.base_model.model[0]
    layer.base_layer.bias = None
    with pytest.raises(lacis.DataError, match="the adapter has a bias and the packed layer none"):
        layer.merge()
