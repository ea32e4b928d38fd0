# SPDX-License-Identifier: Apache-2.0
"""Files of packed models that were changed: each is refused when it is loaded, before a kernel sees it."""

import json
import shutil

import pytest
import torch

import lacis
from lacis.nn.arrays import as_array

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")
hf = pytest.importorskip("lacis.hf")

from hf_models import LAYER, built  # noqa: E402


def spoil_config(change):
    def spoil(folder):
        path = folder / "config.json"
        config = json.loads(path.read_text())
        change(config["quantization_config"])
        path.write_text(json.dumps(config))

    return spoil


def spoil_arrays(change):
    def spoil(folder):
        path = folder / "model.safetensors"
        tensors = safetensors.load_file(path)
        change(tensors)
        safetensors.save_file(tensors, path, metadata={"format": "pt"})

    return spoil


def fields(config):
    return config["layers"][LAYER]


def first(name, value):
    def change(tensors):
        as_array(tensors[f"{LAYER}.weight.{name}"])[0] = value

    return change


def swapped(tensors):
    crd = tensors[f"{LAYER}.weight.crd1"]
    crd[:] = crd.flip(0)


def of_type(name, dtype):
    return lambda tensors: tensors.update({f"{LAYER}.weight.{name}": tensors[f"{LAYER}.weight.{name}"].to(dtype)})


def cut(name):
    return lambda t: t.update({f"{LAYER}.weight.{name}": t[f"{LAYER}.weight.{name}"][:-1].clone()})


CONFIGS = {
    "version": lambda c: c.update(version=2),
    "target": lambda c: c.update(target="tpu"),
    "layers are a list": lambda c: c.update(layers=[1]),
    "no such path": lambda c: c["layers"].update({"model.nothing": fields(c)}),
    "another kind of module": lambda c: c["layers"].update({"model.norm": fields(c)}),
    "a layer is text": lambda c: c["layers"].update({LAYER: "csr"}),
    "a field is missing": lambda c: fields(c).pop("format"),
    "a field too many": lambda c: fields(c).update(more=1),
    "operator": lambda c: fields(c).update(operator="conv"),
    "format of no text": lambda c: fields(c).update(format="csr"),
    "format of another rank": lambda c: fields(c).update(format=str(lacis.Csf(3))),
    "another format": lambda c: fields(c).update(format=str(lacis.Coo())),
    "transposed shape": lambda c: fields(c)["shape"].reverse(),
    "negative size": lambda c: fields(c)["arrays"]["values"].__setitem__(1, [-1]),
    "size of no memory": lambda c: fields(c)["arrays"]["values"].__setitem__(1, [2**39] * 3),
    "size that is no number": lambda c: fields(c)["arrays"]["crd1"].__setitem__(1, ["many"]),
    "float indices": lambda c: fields(c)["arrays"]["crd1"].__setitem__(0, "float32"),
    "array of no name": lambda c: fields(c)["arrays"].update(crd7=["int32", [3]]),
    "array is missing": lambda c: fields(c)["arrays"].pop("crd1"),
    "other number of entries": lambda c: fields(c).update(entries=7),
    "steps of no verb": lambda c: fields(c).update(steps=[{"verb": "delete"}]),
    "steps that are text": lambda c: fields(c).update(steps=["unroll"]),
    "gradients of a list": lambda c: fields(c).update(gradients=[]),
    "trains": lambda c: fields(c).update(trains="yes"),
}
ARRAYS = {
    "column out of range": first("crd1", 10**4),
    "negative column": first("crd1", -5),
    "positions that fall": first("pos1", 10**6),
    "columns not sorted": swapped,
    "columns of float": of_type("crd1", torch.float32),
    "wide columns": of_type("crd1", torch.int64),
    "short columns": cut("crd1"),
    "short values": cut("values"),
    "no columns": lambda tensors: tensors.pop(f"{LAYER}.weight.crd1"),
    "no values": lambda tensors: tensors.pop(f"{LAYER}.weight.values"),
}
SPOILT = {**{k: spoil_config(v) for k, v in CONFIGS.items()}, **{k: spoil_arrays(v) for k, v in ARRAYS.items()}}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    hf.save_pretrained(built()[0], folder)
    return folder


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_file_is_refused(tmp_path, saved, spoil):
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    spoil(tmp_path)
    with pytest.raises((lacis.DataError, lacis.ScheduleError, RuntimeError)) as caught:
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(caught.value, lacis.Error) or "ignore_mismatched_sizes" in str(caught.value)
