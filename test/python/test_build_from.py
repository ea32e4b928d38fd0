# SPDX-License-Identifier: Apache-2.0
"""A model on the meta device is built from a packed checkpoint, weight by weight; the dense model is never there."""

import os
import subprocess
import sys

import lacis
import pytest
import torch

SUMS = {"ell": lacis.Ell(width=2), "rest": lacis.Coo}


class Model(torch.nn.Module):
    """A tied table, a convolution, a layer of blocks, a sum, a matrix that the forward multiplies with, a norm."""

    def __init__(self):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(12, 16), torch.nn.Linear(16, 12, bias=False)
        self.head.weight = self.table.weight
        self.blocks, self.sum = torch.nn.Linear(16, 8), torch.nn.Linear(8, 16)
        self.conv, self.norm = torch.nn.Conv1d(16, 16, 3, padding=1), torch.nn.BatchNorm1d(16)
        self.gate = torch.nn.Parameter(torch.randn(16, 16))

    def forward(self, i):
        x = self.sum(self.blocks(self.table(i)).relu())
        return self.head(self.norm(self.conv(x.mT)).mT @ self.gate.T)


def scheduled(model):
    s = lacis.create_schedule(model, target="eager")
    s["blocks.weight"].block(4, 4).sparsify(lacis.BlockMagnitude(0.5)).set_format(lacis.Bsr)
    s["sum.weight"].sparsify(lacis.Magnitude(0.5)).decompose(**SUMS)
    s.match(r"table.weight|conv.weight|gate").sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    return s


def on_meta():
    with torch.device("meta"):
        return Model()


@pytest.fixture
def built():
    model = Model()
    model.norm.running_mean.uniform_()
    return scheduled(model).build().eval()


def saved(model, how, folder):
    if how == "dict":
        return model.state_dict()
    path = folder / f"model.{how}"
    if how == "pt":
        torch.save(model.state_dict(), path)
        return path
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({name: t.clone() for name, t in model.state_dict().items()}, path)
    return str(path)


@pytest.mark.parametrize("how", ["dict", "pt", "safetensors"])
def test_it_answers_and_trains_as_the_model_that_was_saved(built, how, tmp_path):
    s = scheduled(on_meta())
    model = s.build_from(saved(built, how, tmp_path)).eval()
    i = torch.randint(12, (3, 5))
    assert torch.equal(model(i), built(i))
    assert model.head.weight is model.table.weight and not any(t.is_meta for t in model.state_dict().values())
    for each in (model, built):
        each(i).square().sum().backward()
    for (name, mine), theirs in zip(model.named_parameters(), built.parameters()):
        assert torch.equal(mine.grad, theirs.grad), name
    restored = s.restore()
    assert restored.head.weight is restored.table.weight
    torch.testing.assert_close(restored(i), built(i), rtol=1e-4, atol=1e-5)  # sums in another order


def test_updates_go_on_from_it():
    """What the checkpoint holds is the pattern of now, not that of the Ramp's beginning."""
    make = lambda: torch.nn.Sequential(torch.nn.Linear(16, 8))
    found = []
    for again in (False, True):
        if again:
            with torch.device("meta"):
                model = make()
        else:
            model = make()
        s = lacis.create_schedule(model, target="eager")
        ramp = lacis.Magnitude(lacis.Ramp(0.0, 0.75, range(0, 5, 2)))
        s["0.weight"].sparsify(ramp).set_format(lacis.Csr)
        model = s.build_from(found[0]) if again else s.build()
        if again:
            assert s["0.weight"].packed.nnz == 32
            continue
        updates = s.attach(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in range(5):
            updates.step()
        found.append({name: t.clone() for name, t in model.state_dict().items()})


def without(state, *names):
    return {name: t for name, t in state.items() if name not in names}


@pytest.mark.parametrize(
    "spoil, message",
    [
        (
            lambda s: {k: v for k, v in s.items() if not k.startswith("blocks.weight")},
            "'blocks.weight' is not in the ch",
        ),
        (lambda s: without(s, "blocks.weight.pos1"), "'blocks.weight': 'pos1' is missing"),
        (lambda s: without(s, "blocks.bias"), "'blocks.bias' is on the meta device, and not in the checkpoint"),
        (lambda s: without(s, "norm.running_var"), "'norm.running_var' is on the meta device"),
        (lambda s: s | {"other": torch.ones(1)}, "the model has no 'other', which the checkpoint has"),
        (lambda s: s | {"blocks.bias": torch.ones(3)}, r"'blocks.bias' is \[3\] in the checkpoint, not \[8\]"),
        (lambda s: s | {"gate.crd1": s["gate.crd1"] + 40}, "'gate': 'crd1'.* out of range"),
        (
            lambda s: s | {"norm.bias": s["norm.bias"].to("meta")},
            "'norm.bias' of the checkpoint is no tensor that holds",
        ),
        (
            lambda s: without(s, *(k for k in s if k.startswith("gate"))) | {"gate": torch.ones(16, 16)},
            "'gate' is dense",
        ),
        (lambda s: 3, "a state dict or the path of one is expected, not int"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_what_does_not_fit_changes_nothing(built, spoil, message):
    model = on_meta()
    s = scheduled(model)
    state = built.state_dict()
    with pytest.raises(lacis.DataError, match=message):
        s.build_from(spoil(dict(state)))
    assert all(t.is_meta for t in [*model.parameters(), *model.buffers()]) and type(model.blocks) is torch.nn.Linear
    s.build_from(state)


def test_what_a_checkpoint_says_nothing_of():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    s = lacis.create_schedule(model, target="eager")
    with pytest.raises(lacis.ScheduleError, match="build_from: nothing is scheduled"):
        s.build_from({})
    with pytest.raises(lacis.DataError, match="the meta device keeps no numbers"):
        scheduled(on_meta()).build_from({}, device="meta")
    s["1:out"].sparsify(lacis.Threshold(0.1)).set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="'1:out' is no parameter, of which alone a checkpoint"):
        s.build_from({})


MEASURED = """
import sys, torch, lacis
def scheduled(model):
    s = lacis.create_schedule(model, target="eager")
    s.match(".*weight").sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csr)
    return s
def make(layers, device):
    with torch.device(device):
        return torch.nn.Sequential(*(torch.nn.Linear(2048, 2048, bias=False) for _ in range(layers)))
if sys.argv[1] == "save":
    state = scheduled(make(1, "cpu")).build().state_dict()
    state = {f"{n}.{name[2:]}": t.clone() for n in range(12) for name, t in state.items()}
    import safetensors.torch
    safetensors.torch.save_file(state, sys.argv[2])
else:
    scheduled(make(1, "cpu")).build()  # what torch keeps for itself
    def kilobytes(what):
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))
    s = scheduled(make(12, "meta"))
    before = kilobytes("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    model = s.build_from(sys.argv[2])
    packed = sum(t.nbytes for t in model.state_dict().values())
    print((kilobytes("VmHWM") - before) * 1024, packed)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_peak_of_memory(tmp_path):
    """At most 1.3 times the packed bytes, and one dense layer."""
    pytest.importorskip("safetensors")
    # Large tensors go back to the system at once: else it is the C library that says how many holes there are.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "262144"}
    run = lambda what: (
        subprocess.run(
            [sys.executable, "-c", MEASURED, what, str(tmp_path / "m.safetensors")],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        ).stdout
    )
    run("save")
    peak, packed = map(int, run("load").split())
    assert peak <= 1.3 * packed + 2048 * 2048 * 4, (peak, packed)
