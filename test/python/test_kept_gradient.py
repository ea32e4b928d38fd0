# SPDX-License-Identifier: Apache-2.0
"""A sparsifier of the gradient of packed values: what it drops is 0, whatever runs the backward pass."""

import copy
import pickle

import lacis
import pytest
import torch
from test_activations import X, make

CASES = {
    "csr": (lacis.Magnitude(0.5), lambda h: h.set_format(lacis.Csr), lacis.Magnitude(0.8)),
    "threshold": (lacis.Magnitude(0.5), lambda h: h.set_format(lacis.Coo), lacis.Threshold(0.5)),
    "groups": (lacis.Magnitude(0.5), lambda h: h.set_format(lacis.Ell), lacis.NM(1, 4)),
    "blocks": (
        lacis.BlockMagnitude(0.5, block=(4, 8)),
        lambda h: h.block(4, 8).set_format(lacis.Bsr),
        lacis.BlockMagnitude(0.75, block=(4, 8)),
    ),
    "entries in blocks": (lacis.Magnitude(0.9), lambda h: h.set_format(lacis.Bsr(4, 4)), lacis.Magnitude(0.95)),
}


def build(case, target="eager", dtype=torch.float64):
    chosen, format, of_gradient = CASES[case]
    s = lacis.create_schedule(make(dtype), target=target)
    format(s["0.weight"].sparsify(chosen))
    s["0.weight"].grad.sparsify(of_gradient)
    return s.build(), s


def gradients(model, x):
    model.zero_grad()
    model(x).square().sum().backward()
    return model[0].weight.values.grad


def expected(case, s, x):
    """Of the dense model under the weight's mask, the gradient under its own."""
    twin, mask = make(x.dtype), s["0.weight"].packed.pattern.to_mask()
    twin[0].weight.data *= mask
    twin(x).square().sum().backward()
    grad = twin[0].weight.grad * mask
    return s["0.weight"].packed.pattern.gather(grad * CASES[case][2](grad))


@pytest.mark.parametrize("case", CASES)
def test_what_is_dropped_gets_0(case):
    model, s = build(case)
    want = expected(case, s, X)
    for each in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        found = gradients(each, X)
        torch.testing.assert_close(found, want)
        assert 0 < found.count_nonzero() < found.numel()


def test_it_holds_on_kernels_and_in_a_compiled_graph():
    model, s = build("csr", target="cpu", dtype=torch.float32)
    x = X.float()
    want = expected("csr", s, x)
    torch.testing.assert_close(gradients(model, x), want, rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    model.zero_grad()
    compiled(x).square().sum().backward()
    torch.testing.assert_close(model[0].weight.values.grad, want, rtol=1e-4, atol=1e-5)


def test_it_goes_on_after_a_load():
    model, s = build("csr")
    again = build("csr")[0]
    again.load_state_dict(copy.deepcopy(model.state_dict()), assign=True)
    torch.testing.assert_close(gradients(again, X), expected("csr", s, X))


def test_values_that_are_not_its_own_are_refused():
    """Nobody would see their gradient."""
    model, _ = build("csr")
    given = {"0.weight.values": model[0].weight.values.detach().clone().requires_grad_()}
    with pytest.raises(lacis.DataError, match="these values are not the module's own; leave .*grad.sparsify out"):
        torch.func.functional_call(model, given, (X,))


REFUSED = {
    "policy": lambda s: s["0.weight"].grad.sparsify(lacis.Regrow(0.5, range(9))),
    "inputs": lambda s: s["0.weight"].grad.sparsify(lacis.Wanda(0.5)),
    "quantile": lambda s: s["0.weight"].grad.sparsify(lacis.Quantile(0.5)),
    "master": lambda s: s["0.weight"].grad.sparsify(lacis.Magnitude(0.5), master="ste"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_choose_by_itself_is_refused(case):
    with pytest.raises(lacis.ScheduleError, match="'0.weight.grad' is chosen anew in each backward pass"):
        REFUSED[case](lacis.create_schedule(make(), target="eager"))


@pytest.mark.parametrize("which", ["a sum", "a dense weight that stays"])
def test_what_has_no_values_of_its_own_is_refused(which):
    s = lacis.create_schedule(make(), target="eager")
    if which == "a sum":
        s["0.weight"].sparsify(lacis.Magnitude(0.5)).decompose(ell=lacis.Ell(width=2), rest=lacis.Coo)
    else:
        s["0.weight"].sparsify(lacis.Magnitude(0.5), master="ste").set_format(lacis.Csr)
    s["0.weight"].grad.sparsify(lacis.Magnitude(0.9))
    with pytest.raises(lacis.ScheduleError, match=f"the gradient of {which}.* has no code for a sparsifier"):
        s.build()
