# SPDX-License-Identifier: Apache-2.0
"""Patterns that change while a GPU trains: what a layer's calls are bound to stays."""

import lacis
import pytest
import torch
from test_updates_cuda import BLOCKS, build, step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", BLOCKS)
def test_the_step_behind_an_update_is_bound_as_any_other(name):
    """What a layer's calls are bound to stays through updates, by steps and by graphs, and has the numbers of what is
    bound anew after each."""
    found = []
    for anew in (False, True):
        model, s, optimizer = build(name, lacis.Regrow(0.9, range(2, 10**6, 2), grow="gradient"))
        updates, layer, kept = s.attach(optimizer), model[0], set()
        x = torch.randn(128, 512, device="cuda", generator=torch.Generator("cuda").manual_seed(0)).bfloat16()
        for n in range(12):
            step(model, optimizer, x)
            updates.step()
            if n > 1 and not anew:
                kept.add(id(layer._quick_steps._last.found()))
            if anew:
                layer.bind()
        assert anew or len(kept) == 1
        found.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
    for name, tensor in found[0].items():
        assert torch.equal(tensor, found[1][name]), name
