# SPDX-License-Identifier: Apache-2.0
"""Activations and gradients of which the values say how many entries there are, and thresholds that are found."""

import lacis
import pytest
import torch
from test_activations import Odd, X, build, compare, make

GROWS = {
    "longest row": (lacis.Magnitude(0.5), lacis.Ell),
    "rows": (lacis.Magnitude(0.5), lacis.Dcsr),
    "nothing": (None, lacis.Csr),
    "blocks": (lacis.Magnitude(0.9), lacis.Bsr(4, 4)),
    **{f"above {t}": (lacis.Threshold(t), lacis.Csr) for t in (-1.0, 0.2, 0.8, torch.inf)},
}


@pytest.mark.parametrize("edge", ["1:out", "0:out.grad"])
@pytest.mark.parametrize("case", GROWS)
def test_how_much_is_stored_may_follow_from_the_values(case, edge):
    """All, some, nothing: in each call anew."""
    sparsifier, format = GROWS[case]
    model, twin = build((edge, sparsifier, format))[0], make()
    for scale in (1, 3, 0.1):
        compare(model, twin, X * scale, {edge: sparsifier})


def test_a_threshold_on_kernels():
    """One kernel for any number of entries; what is no number is kept."""
    model, s = build(("1:out", lacis.Threshold(0.5), lacis.Csr), target="cpu")
    for scale in (1, 5, 0):
        compare(model, make(), X * scale, {"1:out": lacis.Threshold(0.5)})
    spoilt = X.clone()
    spoilt[0, 0] = torch.nan
    with torch.no_grad():
        assert model(spoilt)[0, 0].isnan().all() and not model(spoilt)[1].isnan().any()


def test_a_quantile_of_what_passes():
    """The share of all values of the batches, on the dense model; edges and weights in one call."""
    s = lacis.create_schedule(make(), target="eager")
    edges = {"1:out": 0.75, "0:out": 0.25, "0:in0": 0.0}
    for edge, share in edges.items():
        s[edge].sparsify(lacis.Quantile(share)).set_format(lacis.Csr)
    s["2.weight"].sparsify(lacis.Wanda(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="Quantile has not seen what passes; call s.calibrate"):
        s.build()
    batches = [torch.randn(5, *X.shape[1:], dtype=X.dtype) for _ in range(3)]
    s.calibrate(each for each in batches)
    twin = make()
    for edge, share in edges.items():
        n = int(edge[0])
        passed = [twin[: n + edge.endswith("out")](x) for x in batches]
        found = s[edge].steps[0].sparsifier
        kept = torch.cat([found(x) for x in passed]).double().mean()
        assert found.share == share and abs(float(kept) - (1 - share)) < 1e-3
    assert type(s["2.weight"].site.solved) is tuple


def test_a_quantile_says_what_it_needs():
    with pytest.raises(lacis.ScheduleError, match="keeps what is above a threshold; call s.calibrate"):
        lacis.Quantile(0.5)(torch.ones(2, 2))
    with pytest.raises(lacis.DataError, match="Quantile: a share from 0 to 1 is expected"):
        lacis.Quantile(lacis.Ramp(0.0, 0.5, range(9)))
    s = lacis.create_schedule(make(), target="eager")
    s["1:out"].grad.sparsify(lacis.Quantile(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="calibrate: no gradient passes '1:out.grad'"):
        s.calibrate([X])
    s = lacis.create_schedule(torch.nn.Sequential(Odd(), torch.nn.ReLU()), target="eager")
    s["0:out"].sparsify(lacis.Quantile(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="calibrate: a tuple passes '0:out', which is no tensor"):
        s.calibrate([X])
    s = lacis.create_schedule(make(), target="eager")
    s["0:in0"].sparsify(lacis.Quantile(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.DataError, match="nothing passed '0:in0'"):
        s.calibrate([])
    with pytest.raises(lacis.ScheduleError, match="or sees what passes, as Quantile does"):
        lacis.create_schedule(make()).calibrate([X])


class Twice(lacis.Sparsifier):
    """One after the other, the second among what the first one kept."""

    def __init__(self, first, second):
        self.first, self.second = first, second

    def mask(self, tensor):
        kept = self.first(tensor)
        return kept & self.second(torch.where(kept, tensor, 0))


@pytest.mark.parametrize("edge", ["1:out", "0:out.grad"])
def test_a_second_sparsifier_chooses_among_what_is_kept(edge):
    """As STen's external sparsifier does after the inline one; products read the last format."""
    inline, external = lacis.Threshold(0.3), lacis.Magnitude(0.9)
    s = lacis.create_schedule(make(), target="eager")
    handle = s["0:out"].grad if edge.endswith("grad") else s[edge]
    handle.sparsify(inline).set_format(lacis.Csr).sparsify(external).set_format(lacis.Csc)
    assert str(handle.format) == str(lacis.Csc().for_rank(2))
    with pytest.raises(lacis.ScheduleError, match="set_format"):
        handle.set_format(lacis.Coo)
    model = s.build()
    for scale in (1, 0.2):
        compare(model, make(), X * scale, {edge: Twice(inline, external)})


def test_a_second_sparsifier_needs_a_format_before_it():
    s = lacis.create_schedule(make(), target="eager")
    s["1:out"].sparsify(lacis.Threshold(0.3))
    with pytest.raises(lacis.ScheduleError, match="the entries are chosen already"):
        s["1:out"].sparsify(lacis.Magnitude(0.5))
    s["1:out"].set_format(lacis.Csr).sparsify(lacis.Magnitude(0.5))
    with pytest.raises(lacis.ScheduleError, match="'1:out' has no format"):
        s.build()
