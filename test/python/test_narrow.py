# SPDX-License-Identifier: Apache-2.0
"""Coordinates of 16 bits, which layers have by default: what they take in training, and how they travel."""

import copy
import io
import pickle

import lacis
import pytest
import torch
import torch.distributed.checkpoint as dcp
from lacis.formats.widths import weight_format
from strategies import mostly_long, sparse
from test_shared_arrays import WIDE, backward, trained

NARROW = lacis.Format.parse("(i, j) -> (i : dense<crd=i16>, j : compressed<crd=i16>)")


def stored(model) -> int:
    return sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))


@pytest.mark.long
def test_a_weight_is_trained_beside_rows_and_places_by_columns():
    """Ten bytes an entry: its value, its column, and in the order of columns its row and its place there."""
    model, dense = trained(format=lacis.Csr)
    weight, entries = model[0].weight, model[0].weight.packed().nnz
    assert weight.array("crd1").dtype == torch.int16 and weight.crd1.dtype == torch.uint8
    assert weight.format == NARROW and stored(model) == 10 * entries + 4 * (64 + 1 + 48 + 1 + 64)
    backward(model, dense)
    weight.validate()


def test_another_pattern_reaches_narrow_arrays():
    """As many entries in other places, then more, then so few that rows have none, and none at all."""
    model, dense = trained(format=NARROW)
    weight = model[0].weight
    other = [sparse(64, 48, density=density) != 0 for density in (0.4, 0.02, 0)]
    for mask in (weight.packed().pattern.to_mask().roll(1, 0), *other):
        weight.set_packed(lacis.pack(torch.randn(64, 48), NARROW, mask))
        dense[0].weight.data = weight.packed().to_dense()
        weight.validate()
        backward(model, dense)


def test_bytes_that_are_no_coordinates_are_refused():
    model, _ = trained(format=NARROW)
    model[0].weight.crd1[3] = 255  # both bytes: -1
    with pytest.raises(lacis.DataError, match=r"'crd1' at \[3\]: coordinate -1 is negative"):
        model(torch.ones(2, 48))


def eager(text="(i : dense<crd=i16>, j : compressed<crd=i16>)", seed=0):
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(48, 64)), target="eager")
    s["0.weight"].sparsify(lacis.Random(0.8, seed)).set_format(lacis.Format.parse(f"(i, j) -> {text}"))
    return s.build()


def through_dcp(model, folder):
    dcp.save(model.state_dict(), checkpoint_id=str(folder), no_dist=True)
    other = eager(seed=1)
    state = other.state_dict()
    dcp.load(state, checkpoint_id=str(folder), no_dist=True)
    other.load_state_dict(state)
    return other


def through_a_file(model, folder):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = eager(seed=1)
    other.load_state_dict(torch.load(file), assign=True)
    return other


def through_safetensors(model, folder):
    safetensors = pytest.importorskip("safetensors.torch")
    other = eager(seed=1)
    other.load_state_dict(safetensors.load(safetensors.save(model.state_dict())))
    return other


def from_int16(model, folder):
    """Files of others have the numbers themselves."""
    state = model.state_dict()
    other = eager(seed=1)
    other.load_state_dict({**state, "0.weight.crd1": model[0].weight.array("crd1")})
    return other


WAYS = {
    "dcp": through_dcp,
    "file": through_a_file,
    "safetensors": through_safetensors,
    "int16": from_int16,
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "cast": lambda model, folder: copy.deepcopy(model).to(torch.float64).to(torch.float32),
}


@pytest.mark.parametrize("way", WAYS)
def test_narrow_arrays_come_through(way, tmp_path):
    model = eager()
    other = WAYS[way](model, tmp_path)
    weight = other[0].weight
    assert weight.array("crd1").dtype == torch.int16 and weight.crd1.dtype == torch.uint8
    assert weight.to_dense().equal(model[0].weight.to_dense())
    weight.validate()


def test_narrow_and_wide_arrays_load_into_each_other():
    narrow, wide = eager(), eager("(i : dense<crd=i32>, j : compressed<crd=i32>)", seed=1)
    wide.load_state_dict(narrow.state_dict())
    assert wide[0].weight.crd1.dtype == torch.int32 and wide[0].weight.to_dense().equal(narrow[0].weight.to_dense())
    other = eager(seed=2)
    other.load_state_dict(wide.state_dict())
    assert other[0].weight.array("crd1").dtype == torch.int16
    assert other[0].weight.to_dense().equal(narrow[0].weight.to_dense())


def test_libraries_get_wide_arrays():
    packed = lacis.pack(sparse(9, 40), NARROW)
    assert packed.to_torch().to_dense().equal(packed.to_dense())
    assert torch.from_numpy(packed.to_scipy().toarray()).equal(packed.to_dense())


class Encoder(torch.nn.Module):
    """A layer as BERT has it."""

    def __init__(self, width=96):
        super().__init__()
        self.query, self.key, self.value, self.output = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x):
        seen = torch.softmax(self.query(x) @ self.key(x).transpose(-1, -2), -1) @ self.value(x)
        x = self.first(x + self.output(seen))
        return self.second(x + self.down(torch.nn.functional.gelu(self.up(x))))


MODELS = {
    "linear": lambda: torch.nn.Sequential(*(torch.nn.Linear(96, 96) for _ in range(2))),
    "mlp": lambda: torch.nn.Sequential(torch.nn.Linear(96, 384), torch.nn.ReLU(), torch.nn.Linear(384, 96)),
    "bert": lambda: torch.nn.Sequential(Encoder(), Encoder()),
}


@pytest.mark.parametrize("name", mostly_long(MODELS, "linear"))
def test_a_model_in_training_takes_less_than_three_fifths(name):
    dense = MODELS[name]()
    s = lacis.create_schedule(copy.deepcopy(dense), target="cpu")
    s.match(r"(\d|.*\.(query|key|value|output|up|down))\.weight").sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr)
    model = s.build()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.randn(2, 16, 96, requires_grad=True)).square().mean().backward()
    optimizer.step()
    assert stored(model) <= 0.6 * stored(dense)


def test_what_a_format_says_of_widths_stays():
    assert weight_format(lacis.Csr(), (32768, 64)) == NARROW == weight_format(NARROW, (8, 8))
    assert weight_format(WIDE, (8, 8)) == WIDE != lacis.Csr()
    assert weight_format(lacis.Csr(), (32769, 40000)) == lacis.Csr() and "i32" in str(WIDE)
    assert "j : compressed<crd=i16>" in str(weight_format(lacis.Csr(), (32769, 64)))
    nest = "(i, j) -> (i floordiv 16 : dense, j : compressed<unique=false>, i mod 16 : singleton)"
    assert "i mod 16 : singleton<crd=i8>" in str(weight_format(lacis.Format.parse(nest), (64, 64)))
    for format in (lacis.Bsr(4, 4), lacis.Dia(), lacis.decompose(ell=lacis.Ell(width=2), rest=lacis.Coo)):
        assert weight_format(format, (64, 64)) == format
    layer = eager("(i : dense<crd=i32>, j : compressed<crd=i32>)")
    assert layer[0].weight.crd1.dtype == torch.int32 and layer[0].weight.format == WIDE


def test_tensors_have_32_bits_where_nothing_is_said():
    packed = lacis.pack(sparse(9, 40), lacis.Csr)
    assert packed.storage["crd1"].dtype == torch.int32 and packed.pattern.typed_text == str(lacis.Csr())
    wide = lacis.pack(packed.to_torch(), WIDE)
    assert wide.storage["crd1"].dtype == torch.int32 and wide.pattern.typed_text == str(lacis.Csr())
    assert wide.to_torch().to_dense().equal(packed.to_dense())


@pytest.mark.long
def test_a_weight_takes_patterns_of_any_width():
    weight, other = eager()[0].weight, sparse(64, 48, density=0.3)
    for format in (lacis.Csr, WIDE, NARROW):
        weight.set_packed(lacis.pack(other, format))
        assert weight.array("crd1").dtype == torch.int16 and weight.to_dense().equal(other)
        weight.validate()
    wide = eager("(i : dense<crd=i32>, j : compressed<crd=i32>)")[0].weight
    wide.set_packed(lacis.pack(other, NARROW))
    assert wide.crd1.dtype == torch.int32 and wide.to_dense().equal(other)
    with pytest.raises(lacis.DataError, match="the weight is"):
        weight.set_packed(lacis.pack(other, lacis.Coo))


@pytest.mark.parametrize("widths", mostly_long(["crd=i32", "crd=i16"], "crd=i16"))
def test_a_checkpoint_of_any_width_builds_a_model(widths):
    """Earlier versions wrote 32 bits."""
    written = eager(f"(i : dense<{widths}>, j : compressed<{widths}>)")
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(48, 64))
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(lacis.Random(0.8)).set_format(lacis.Csr)
    weight = s.build_from(written.state_dict(), device="cpu")[0].weight
    assert weight.array("crd1").dtype == torch.int16 and weight.to_dense().equal(written[0].weight.to_dense())
