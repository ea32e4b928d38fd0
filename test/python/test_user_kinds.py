# SPDX-License-Identifier: Apache-2.0
"""Level kinds and bindings of the user's: code from symbols, data from tensors, everything else as for other kinds."""

import copy
import io
import pickle
import re

import lacis
import pytest
import torch
from hypothesis import given, settings
from lacis.errors import DataError, FormatError
from lacis.formats import Format
from lacis.formats.own import KINDS
from lacis.formats.own.traced import trace
from lacis.packing import PackedTensor, pack
from strategies import mostly_long, sparse, tensors
from user_kinds import MyCsr, MyDelta, MyHash, MyMorton, MyRuns, MyWindow

TEXTS = {
    "runs": "(i, j) -> (i : dense, j : @my_runs)",
    "runs of columns": "(i, j) -> (j : dense, i : @my_runs)",
    "runs above": "(i, j) -> (i : @my_runs, j : compressed)",
    "runs in blocks": "(i, j) -> (i floordiv 4 : dense, j floordiv 3 : @my_runs, i mod 4 : dense, j mod 3 : dense)",
    "hashed": "(i, j) -> (i : dense, j : @my_hash)",
    "hashed above": "(i, j) -> (i : @my_hash, j : compressed)",
    "hashed twice": "(i, j) -> (i : @my_hash, j : @my_hash)",
    "compressed": "(i, j) -> (i : dense, j : @my_csr)",
    "delta": "(i, j) -> (i : dense, j : @my_delta)",
    "morton": "(i, j) let z = @my_morton(i, j) -> (z : compressed)",
}


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=8, deadline=None)
@given(tensor=tensors())
def test_what_is_packed_is_read_again(name, tensor):
    packed = pack(tensor, TEXTS[name]).validate()
    assert torch.equal(packed.to_dense(), tensor) and packed.nnz == int((tensor != 0).sum())
    assert Format.parse(str(packed.format)) == packed.format and TEXTS[name] in str(packed.format)
    again = PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)
    assert torch.equal(again.to_dense(), tensor) and torch.equal(again.T.validate().to_dense(), tensor.T)
    assert torch.equal(packed.to(lacis.Csr).validate().to_dense(), tensor)
    assert torch.equal(pack(tensor, lacis.Csc).to(packed.format).validate().to_dense(), tensor)


def reference(packed, w, target):
    """A product and both its gradients against float64 dense; NaN behind no entry reaches nothing."""
    x = torch.randn(3, w.shape[1], generator=torch.Generator().manual_seed(1), dtype=w.dtype).requires_grad_()
    values = packed.values.clone().requires_grad_()
    y = lacis.einsum("ij,bj->bi", packed.with_values(values), x, target=target)
    dense = w.double().requires_grad_()
    wanted = x.double() @ dense.T
    torch.testing.assert_close(y.double(), wanted, atol=1e-4, rtol=1e-4)
    y.square().sum().backward()
    dx, dw = torch.autograd.grad(wanted.square().sum(), (x, dense))
    torch.testing.assert_close(x.grad, dx.to(w.dtype), atol=1e-3, rtol=1e-3)
    found = packed.with_values(values.grad).validate().to_dense()
    torch.testing.assert_close(found.double(), dw * (w != 0), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", TEXTS)
def test_products_and_gradients_of_the_reference(name):
    for density in (0.0, 0.05, 0.4, 1.0):
        w = sparse(9, 35, density=density, dtype=torch.float64)
        reference(pack(w, TEXTS[name]), w, "eager")


@pytest.mark.parametrize("name", mostly_long(TEXTS, "hashed"))
def test_kernels(name):
    for shape, density in (((9, 35), 0.4), ((1, 71), 0.1), ((7, 33), 1.0), ((5, 3), 0.0)):
        w = sparse(*shape, density=density)
        reference(pack(w, TEXTS[name]), w, "cpu")


@pytest.mark.long
@pytest.mark.parametrize("name", TEXTS)
def test_kernels_for_a_gpu(name):
    kernel = lacis.compile("ij,bj->bi", pack(torch.eye(8, 40), TEXTS[name]), torch.ones(64, 40), target="cuda:sm_90a")
    assert ".visible .entry" in kernel.asm["ptx"]


@pytest.mark.long
@pytest.mark.parametrize("kind", [MyRuns, MyHash, MyCsr, MyDelta])
def test_the_halves_agree(kind):
    lacis.check_kind(kind)


@pytest.mark.long
def test_a_window_has_no_arrays():
    rows, columns = torch.arange(6)[:, None], torch.arange(9)[None]
    lacis.check_kind(MyWindow, masks=[(rows - columns).abs() <= 1, rows == columns, rows > 9 + columns])
    w = torch.where((rows - columns).abs() <= 1, rows + columns + 1.0, 0) * (rows != columns)
    packed = pack(w, "(i, j) -> (i : dense, j : @my_window)").validate()
    assert not packed.storage and packed.slots == 18 and packed.nnz == int((w != 0).sum())
    reference(packed, w, "cpu")  # slots within the window that no entry has stay 0
    with pytest.raises(DataError, match="outside of the window"):
        pack(torch.ones(3, 3), "(i, j) -> (i : dense, j : @my_window)")


def test_validation_says_which_array_was_left():
    packed = pack(sparse(9, 35, density=0.3), TEXTS["runs"])
    packed.storage["first1"][3] = 10**6
    with pytest.raises(DataError, match=r"'first1'|'begin1' has \d+ elements, and 'coordinate' reads number"):
        packed.validate()


@pytest.mark.long
def test_states_copies_and_files(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(24, 12), torch.nn.Linear(12, 4))
    wanted = copy.deepcopy(model)
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].sparsify(lacis.Magnitude(0.0)).set_format(Format.parse(TEXTS["runs"]))
    s.save(tmp_path / "s.json")
    s.build()
    x = torch.randn(3, 24)
    torch.testing.assert_close(model(x), wanted(x))
    assert {"0.weight.values", "0.weight.start1", "0.weight.pos1"} <= set(model.state_dict())
    other = copy.deepcopy(wanted)
    lacis.load_schedule(tmp_path / "s.json", other).build()
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(x), wanted(x))
    packed = pack(wanted[0].weight.detach(), TEXTS["hashed"])
    for again in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert again.format == packed.format and torch.equal(again.to_dense(), packed.to_dense())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    assert torch.load(file, weights_only=True)["0.weight.start1"].dtype == torch.int32


def test_a_file_names_a_kind_that_must_be_there(tmp_path, monkeypatch):
    model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    s = lacis.create_schedule(model, target="cpu")
    s["0.weight"].set_format(Format.parse(TEXTS["runs"]))
    s.save(tmp_path / "s.json")
    monkeypatch.delitem(KINDS, "@my_runs")
    with pytest.raises(lacis.Error, match="level kind '@my_runs' has no code yet: decorate its class with lacis.kind"):
        lacis.load_schedule(tmp_path / "s.json", model).build()


def test_verbs_of_axes():
    with lacis.iter(dim=2) as (I, J):
        assert J.kind(MyRuns).level().text(("i", "j")) == "j : @my_runs"
        assert MyMorton.of(I, J).compress().level().text(("i", "j", "z")) == "z : compressed"
        with pytest.raises(FormatError, match="is no class that lacis.kind decorated"):
            J.kind(lacis.Csr)


@pytest.mark.long
def test_the_text_is_part_of_the_key():
    kernel = lacis.compile("ij,bj->bi", pack(torch.eye(8, 40), TEXTS["runs"]), torch.ones(64, 40), target="cpu")
    assert "lacis.kind @my_runs" in kernel.text and "lacis.kind @my_runs" in kernel.asm["loops"]
    assert not re.search(r"lacis\.(kind|field|answer)", kernel.asm["buffers"])


ENDS = {
    "up to the size": (lambda n, size: n + 32 < size, lambda n: n + 32),
    "and another test": (lambda n, size: (n != 7) & (size > n), lambda n: n + 1),
    "up to a constant": (lambda n, size: n < 100, lambda n: 2 + n),
}
COUNTED = {
    "down": (lambda n, size: n > 0, lambda n: n - 1),
    "no step": (lambda n, size: n < size, lambda n: n + 0),
    "a step that is not known": (lambda n, size: n < size, lambda n: n + n),
    "equality": (lambda n, size: n != size, lambda n: n + 1),
    "one of two tests": (lambda n, size: (n < size) | (n != 7), lambda n: n + 1),
}


@pytest.mark.parametrize("name", [*ENDS, *COUNTED])
def test_rounds_are_counted_where_nothing_shows_that_they_end(name):
    condition, body = (ENDS | COUNTED)[name]
    method = lambda code, n: lacis.whilei(lambda n: condition(n, code.level_size()), body, n)
    lines, taken, _ = trace("it", 1, method)
    carried = next(line for line in lines if "scf.while" in line).count(" = ") - 1
    assert carried == 1 + (name in COUNTED)
    assert len(taken) == 1 and ("arith.constant 64" in " ".join(lines)) == (name in COUNTED)


def test_a_limit_that_an_array_says_is_none():
    """It may be any number: up to it there may be billions of rounds."""
    method = lambda code, n: lacis.whilei(lambda n: n < code.field("crd", 0), lambda n: n + 1, n)
    assert "arith.constant 64" in " ".join(trace("it", 1, method)[0])
