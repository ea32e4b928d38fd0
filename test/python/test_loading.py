# SPDX-License-Identifier: Apache-2.0
"""Weights that hold no numbers refuse to run until they are loaded, and what is loaded or assigned is checked."""

import copy
import pickle

import lacis
import pytest
import torch
from test_patterns_in_place import assert_right
from torch._subclasses.fake_tensor import FakeTensorMode
from training import SHAPE, build


@pytest.mark.parametrize("target", ["eager", "cpu"])
@pytest.mark.parametrize("format", ["csr", "sum"])
def test_an_emptied_model_refuses_to_run_until_it_is_loaded(format, target):
    model, _ = build(format, target=target)
    x = torch.randn(2, SHAPE[0])
    expected, state = model(x).detach(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for empty in (lambda: model.to("meta").to_empty(device="cpu"), lambda: model.to_empty(device="cpu")):
        empty()
        for _ in range(2):
            with pytest.raises(lacis.DataError, match=r"linear '0': '\w+' holds no numbers since to_empty\(\)"):
                model(x)
        with pytest.raises(lacis.DataError, match="holds no numbers since"):
            model[0].weight.packed()
        with pytest.raises(lacis.DataError, match="holds no numbers since"):
            pickle.loads(pickle.dumps(copy.deepcopy(model)))(x)
        model.load_state_dict(state)
        torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize("format", ["csr", "sum"])
def test_a_model_on_meta_is_loaded_by_assignment(format):
    model, _ = build(format)
    x = torch.randn(2, SHAPE[0])
    expected, state = model(x).detach(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.to("meta")
    with pytest.raises(lacis.DataError, match="linear '0': 'values' is on the meta device and holds no numbers"):
        model(x.to("meta"))
    with pytest.raises(RuntimeError, match="is on the meta device, where nothing is kept; load it with assign=True"):
        model.load_state_dict(state)
    wrong = lambda t: torch.full(t.shape[:1], 9999, dtype=torch.int16)
    bad = {name: wrong(t) if name.endswith("crd1") else t for name, t in state.items()}
    with pytest.raises(RuntimeError, match="coordinate 9999 is out of range"):
        model.load_state_dict(bad, assign=True)
    with pytest.raises(RuntimeError, match="is on the meta device and holds no numbers; load a state dict that does"):
        model.load_state_dict({name: tensor.to("meta") for name, tensor in state.items()}, assign=True)
    model.load_state_dict(state, assign=True)
    name = "0.weight.values" if format == "csr" else "0.weight.ell.values"
    assert model.state_dict()[name].data_ptr() == state[name].data_ptr()
    torch.testing.assert_close(model(x), expected)
    assert_right(model[0])


def test_arrays_of_a_tracer_are_its_own():
    model, _ = build("csr")
    with FakeTensorMode() as mode, torch.no_grad():
        fake = {name: mode.from_tensor(tensor) for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
        y = torch.func.functional_call(model, fake, mode.from_tensor(torch.ones(3, SHAPE[0])))
    assert y.shape == (3, SHAPE[2])
    assert_right(model[0])


def test_arrays_assigned_one_by_one_are_checked():
    """As transformers does, past `load_state_dict`."""
    model, _ = build("csr")
    x = torch.randn(2, SHAPE[0])
    expected, state = model(x).detach(), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.to("meta")
    for name, tensor in state.items():
        owner, _, attribute = name.rpartition(".")
        is_parameter = attribute in ("values", "bias")
        setattr(model.get_submodule(owner), attribute, torch.nn.Parameter(tensor) if is_parameter else tensor)
    torch.testing.assert_close(model(x), expected)
    model[0].weight.values = torch.nn.Parameter(torch.randn(5))
    model[0].weight.pos1 = torch.arange(25, dtype=torch.int32)
    with pytest.raises(lacis.DataError, match="linear '0': 'crd1' at .*: behind the last of 'pos1' it must be -1, not"):
        model(x)


def test_wide_arrays_load_into_a_narrow_format():
    def model(text):
        s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(200, 9)), target="eager")
        s["0.weight"].sparsify(lacis.Random(0.8, 0)).set_format(lacis.Format.parse(text))
        return s.build()

    wide, narrow = (model(f"(i, j) -> (i : dense, j : compressed{crd})") for crd in ("<crd=i32>", "<crd=i16>"))
    state = wide.state_dict()
    narrow.load_state_dict(state)
    assert narrow[0].weight.array("crd1").dtype == torch.int16 and narrow[0].weight.to_dense().equal(
        wide[0].weight.to_dense()
    )
    for wrong in (2**16 + 1, -(2**16) + 1):  # both are 1 in 16 bits
        broken = {**state, "0.weight.crd1": state["0.weight.crd1"].index_fill(0, torch.tensor([0]), wrong)}
        with pytest.raises(RuntimeError, match="'crd1' does not fit into torch.int16"):
            narrow.load_state_dict(broken)
    assert narrow[0].weight.to_dense().equal(wide[0].weight.to_dense())
