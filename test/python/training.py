# SPDX-License-Identifier: Apache-2.0
"""A small model in every kind of format, and its twin whose dense weights are masked: what training tests share."""

from __future__ import annotations

import lacis
import torch

FORMATS = {
    "csr": lambda h: h.set_format(lacis.Csr),
    "csc": lambda h: h.set_format(lacis.Csc),
    "coo": lambda h: h.set_format(lacis.Coo),
    "ell": lambda h: h.set_format(lacis.Ell),
    "bsr": lambda h: h.block(4, 8).set_format(lacis.Bsr),
    "uneven": lambda h: h.block(7, 3).set_format(lacis.BlockedEll),
    "nest": lambda h: h.block(16, 16).set_format(lacis.Ell, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3]),
    "sum": lambda h: h.decompose(ell=lacis.Ell(width=4), rest=lacis.Coo),
}
SHAPE = (40, 24, 8)  # input, hidden, output


def build(format, target="cpu", dtype=torch.float32, device="cpu"):
    """A built model of two sparse layers in training mode, and its schedule."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(SHAPE[0], SHAPE[1]), torch.nn.Tanh(), torch.nn.Linear(SHAPE[1], SHAPE[2])]
    model = torch.nn.Sequential(*layers).to(device=device, dtype=dtype)
    s = lacis.create_schedule(model, target=target)
    for name in ("0.weight", "2.weight"):
        FORMATS[format](s[name].sparsify(lacis.Magnitude(0.8)))
    return s.build(), s


def masked(model, dtype=None):
    """The dense twin: weights as they are stored, with gradients at entries only."""
    twin = torch.nn.Sequential(torch.nn.Linear(*SHAPE[:2]), torch.nn.Tanh(), torch.nn.Linear(*SHAPE[1:]))
    twin = twin.to(device=model[0].weight.device, dtype=dtype or model[0].weight.dtype)
    with torch.no_grad():
        for mine, theirs in ((twin[0], model[0]), (twin[2], model[2])):
            mask = theirs.weight.packed().pattern.to_mask()
            mine.weight.copy_(theirs.weight.to_dense())
            mine.bias.copy_(theirs.bias)
            mine.weight.register_hook(lambda grad, mask=mask: grad * mask)
    return twin


def assert_gradients_match(model, twin):
    """Biases and values have the gradients of the masked dense twin, padding has none."""
    for n in (0, 2):
        torch.testing.assert_close(model[n].bias.grad, twin[n].bias.grad)
        expected = gathered(model[n], twin[n].weight.grad)
        for part, tensor in values(model[n]).items():
            torch.testing.assert_close(tensor.grad, expected[part])
            assert not tensor.grad[~entries(model[n])[part]].any()


def values(layer) -> dict[str, torch.nn.Parameter]:
    """The values of a layer's weight by part."""
    return {name: part.values for name, part in layer.weight._named_parts()}


def entries(layer) -> dict[str, torch.Tensor]:
    """bool, True at entries, by part; the rest is padding."""
    parts = layer.weight.packed().pattern.parts
    return {name: part.coordinates()[1].reshape(part.values_shape) for name, part in parts.items()}


def gathered(layer, dense) -> dict[str, torch.Tensor]:
    """A dense tensor at the slots of a layer's weight, 0 in padding, by part."""
    found = layer.weight.packed().pattern.gather(dense)
    return found if isinstance(found, dict) else {"": found}
