# SPDX-License-Identifier: Apache-2.0
"""The cost model: near what docs/benchmarks.md measured, silent on the rest, and dense only where the user lets it."""

import pathlib
import re
import statistics

import pytest
import torch
from test_forward import build, reference

import lacis
from lacis.capture.cost import Work, predict, slabs

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
HOPPER = "cuda:sm_90a"
TILES = r"\| (\d+)², block (\d+), (\d+)% zeros \|(.+)\|"
LINEAR = r"\| linear (\d+)×(\d+), (\d+) tokens, 90% zeros \| ([\d.]+) \| [\d.]+ \| ([\d.]+)"


def check(pairs) -> None:
    """Predictions and measurements: each within a factor of 1.5, in the geometric mean within 15 %."""
    ratios = [predicted / float(measured) for predicted, measured in pairs]
    assert ratios and all(1 / 1.5 < ratio < 1.5 for ratio in ratios), ratios
    assert 1 / 1.15 < statistics.geometric_mean(ratios) < 1.15


def test_tensor_cores_are_predicted():
    section = PAGE.partition("## Block-sparse forward by the default schedule")[2].partition("\n## ")[0]
    names = next(line for line in section.splitlines() if line.startswith("| case")).split("|")[2:]
    pairs, densely = [], []
    for size, block, zeros, cells in re.findall(TILES, section):
        times = dict(zip(map(str.strip, names), cells.split("|")))
        own, dense = times["lacis (ms)"], times["torch dense (ms)"]
        n, block = int(size), int(block)
        work = Work(n, n, 8192, n * n * (100 - int(zeros)) // 100, (block, block), torch.bfloat16)
        pairs.append((predict(work, HOPPER, "tiles"), own))
        densely.append((predict(work, HOPPER, "dense"), dense))
    check(pairs)
    check(densely)


def test_linear_layers_in_csr_are_predicted():
    pairs, densely = [], []
    for n, k, tokens, own, dense in re.findall(LINEAR, PAGE):
        if int(tokens) < 128:  # of fewer the model knows no nest of its own
            continue
        work = Work(int(n), int(k), int(tokens), int(n) * int(k) // 10, (1, 1), torch.float32)
        pairs.append((predict(work, HOPPER, "loops"), own))
        densely.append((predict(work, HOPPER, "dense"), dense))
    check(pairs)
    check(densely)


def test_what_nobody_measured_has_no_prediction():
    work = Work(4096, 4096, 512, 4096 * 4096 // 4, (64, 64), torch.bfloat16)
    assert predict(work, HOPPER, "few") is predict(work, "cuda:sm_80", "tiles") is predict(work, "cpu", "loops") is None
    small = Work(4096, 4096, 512, 4096 * 4096 // 4, (8, 8), torch.bfloat16)
    assert predict(small, HOPPER, "tiles") is None and predict(small, HOPPER, "dense") > 0
    assert predict(Work(0, 5, 3, 0, (1, 1), torch.float32), "cpu", "loops") is None


@pytest.mark.parametrize("block", [16, 32])
def test_denser_patterns_hold_more_slabs_in_a_stage(block):
    kept = lambda share: slabs(Work(8192, 8192, 0, int(8192 * 8192 * share), (block, block), torch.bfloat16)) or 16
    assert kept(0.5) == 24 and kept(0.1) == 12
    assert kept(0.02) <= kept(0.1) <= kept(0.25) <= kept(0.5) <= kept(0.9)
    assert slabs(Work(8192, 8192, 0, 10**7, (64, 64), torch.bfloat16)) is None


def allowed(**options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 24))
    s = lacis.create_schedule(model, allow_dense=True, **options)
    s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    return s.build(torch.randn(9, 40)), s


def test_the_example_of_a_build_leaves_statistics_and_random_numbers_as_they_are():
    model = torch.nn.Sequential(torch.nn.Linear(40, 24), torch.nn.BatchNorm1d(24), torch.nn.Dropout(0.5))
    s = lacis.create_schedule(model, target="eager", allow_dense=True)
    s["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    state = torch.get_rng_state()
    s.build(torch.randn(9, 40, generator=torch.Generator().manual_seed(0)))
    assert model[1].num_batches_tracked == 0 and model[2].training and torch.equal(state, torch.get_rng_state())


def test_a_small_layer_runs_dense_where_the_user_lets_it():
    model, s = allowed()
    layer, x = model[0], torch.randn(3, 40)
    assert layer.runs_dense and not build()[0][0].runs_dense
    row = s.report(x).rows[0]
    assert (row.path, row.faster) == ("dense", "dense") and "dense" in str(s.report(x))
    assert row.predicted_ms == row.dense_predicted_ms > 0
    assert row.derived_bytes == 4 * 40 * 24 + layer.weight.derived_bytes
    for change in (lambda: None, lambda: layer.weight.values.mul_(2), lambda: layer.weight.set_packed(flipped(layer))):
        with torch.no_grad():
            change()
            torch.testing.assert_close(model(x), reference(model, x))
            assert model(x).data_ptr() != 0 and layer._dense.tensor is layer._dense_weight(), "made once"
    x.requires_grad_()
    model(x).square().sum().backward()
    assert layer._dense.tensor is None and layer.weight.values.grad.shape == layer.weight.values.shape
    assert set(model.state_dict()) == {"0.bias", *(f"0.weight.{name}" for name in ("values", "pos1", "crd1"))}
    assert torch.equal(torch.compile(model, backend="eager", fullgraph=True)(x), lacis_only(layer, x))
    s.restore()
    assert type(model[0]) is torch.nn.Linear


def flipped(layer):
    return lacis.pack(layer.weight.to_dense().flip(0), layer.weight.format)


def lacis_only(layer, x):
    layer.runs_dense = False
    return layer(x)


def test_the_choice_needs_a_prediction():
    assert not allowed(target="eager")[0][0].runs_dense
    model, s = build()
    report = s.report(torch.randn(8, 40))
    assert report.rows[0].path == "loops" and report.rows[0].predicted_ms > 0
    assert report.total.predicted_ms == report.rows[0].predicted_ms
    assert {"path", "predicted", "derived"} <= set(re.findall(r"\w+", str(report)))
    assert s.report().total.predicted_ms is None


def test_the_report_counts_derived_arrays():
    model, s = build("Csr")
    model.eval()
    before = s.report().rows[0].derived_bytes
    model.train()(torch.randn(4, 40, requires_grad=True)).sum().backward()
    after = s.report().rows[0]
    held = {name: t for name, t in model[0].weight.named_buffers() if name.startswith("derived")}
    assert after.derived_bytes == sum(t.numel() * t.element_size() for t in held.values()) > 0
    assert after.derived_bytes >= before and s.report().total.derived_bytes == after.derived_bytes
