# SPDX-License-Identifier: Apache-2.0
"""Files of Hugging Face models with packed layers: loaded without a dense copy, and checked array by array."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest
import torch

import lacis

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")
hf = pytest.importorskip("lacis.hf")

SMALL = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=50)
MODELS = {
    "opt": lambda: transformers.OPTConfig(ffn_dim=64, word_embed_proj_dim=32, max_position_embeddings=40, **SMALL),
    "roberta": lambda: transformers.RobertaConfig(max_position_embeddings=40, **SMALL),
    "llama": lambda: transformers.LlamaConfig(num_key_value_heads=1, tie_word_embeddings=False, **SMALL),
}
FORMATS = {
    "csr": lambda group: group.sparsify(lacis.Magnitude(0.8)).set_format(lacis.Csr),
    "bsr": lambda group: group.block(24, 24).sparsify(lacis.BlockMagnitude(0.5)).set_format(lacis.Bsr),  # with padding
    "sum": lambda group: group.sparsify(lacis.Magnitude(0.8)).decompose(ell=lacis.Ell(width=4), rest=lacis.Coo),
}


def built(model="llama", format="csr"):
    torch.manual_seed(0)
    config = MODELS[model]()
    made = transformers.AutoModelForMaskedLM if model == "roberta" else transformers.AutoModelForCausalLM
    dense = made.from_config(config).eval()
    s = lacis.create_schedule(dense, target="eager")
    linears = "|".join(n for n, m in dense.named_modules() if type(m) is torch.nn.Linear and "head" not in n)
    FORMATS[format](s.match(rf"({linears})\.weight"))
    return s.build(), made


def answers(model):
    with torch.no_grad():
        return model(torch.arange(24).reshape(2, 12) % 50).logits


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_model_is_the_same_after_its_file(tmp_path, model, format):
    model, made = built(model, format)
    hf.save_pretrained(model, tmp_path)
    assert not hasattr(model, "hf_quantizer") and not hasattr(model.config, "quantization_config")
    again = made.from_pretrained(tmp_path)
    assert torch.equal(answers(again), answers(model)) and not again.training
    mine, theirs = again.state_dict(), model.state_dict()
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)
    stored = safetensors.load_file(tmp_path / "model.safetensors")
    assert sum(name.endswith("values") for name in stored) > 0
    packed = [m for m in again.modules() if isinstance(m, lacis.nn.SparseModule)]
    assert packed and all(m.weight.requires_grad for m in packed)


def test_a_loaded_model_trains_and_saves_itself(tmp_path):
    model, made = built()
    hf.save_pretrained(model, tmp_path / "a")
    model = made.from_pretrained(tmp_path / "a")
    weight = model.model.layers[0].mlp.up_proj.weight
    before = weight.values.clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.arange(12)[None], labels=torch.arange(12)[None]).loss.backward()
    optimizer.step()
    assert not torch.equal(before, weight.values)
    weight.set_packed(lacis.pack(torch.eye(*weight.shape), weight.format))  # another number of entries
    model.save_pretrained(tmp_path / "b")
    again = made.from_pretrained(tmp_path / "b")
    assert torch.equal(answers(again), answers(model))
    assert torch.equal(again.model.layers[0].mlp.up_proj.weight.to_dense(), torch.eye(*weight.shape))


def test_frozen_weights_steps_and_options_are_kept(tmp_path):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(MODELS["llama"]()).eval()
    layer = model.model.layers[0].mlp.down_proj
    layer.weight.requires_grad_(False)
    s = lacis.create_schedule(model, target="eager", deterministic=False, strict=True)
    name = "model.layers.0.mlp.down_proj.weight"
    s[name].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr).unroll("j", 4)
    s[name].grad.parallel("i")
    hf.save_pretrained(s.build(), tmp_path)
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    was, now = (m.model.layers[0].mlp.down_proj for m in (model, again))
    assert (now.steps, now.gradient_steps) == (was.steps, was.gradient_steps) and now.steps
    assert (now.target, now.deterministic, now.strict) == ("eager", False, True)
    assert not now.weight.values.requires_grad
    torch.testing.assert_close(answers(again), answers(model))


def test_another_dtype_casts_values_alone(tmp_path):
    model, made = built()
    hf.save_pretrained(model, tmp_path)
    again = made.from_pretrained(tmp_path, dtype=torch.bfloat16)
    weight = again.model.layers[0].mlp.up_proj.weight
    assert weight.dtype == torch.bfloat16 and weight.pos1.dtype == torch.int32
    torch.testing.assert_close(answers(again).float(), answers(model), rtol=0.1, atol=0.05)


def test_dequantize_gives_the_dense_model(tmp_path):
    model, made = built()
    hf.save_pretrained(model, tmp_path)
    dense = made.from_pretrained(tmp_path).dequantize()
    assert not any(isinstance(m, lacis.nn.SparseModule) for m in dense.modules())
    torch.testing.assert_close(answers(dense), answers(model))


LAYER = "model.layers.0.mlp.up_proj"


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
        tensors[f"{LAYER}.weight.{name}"][0] = value

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
    "column out of range": first("crd1", 10**6),
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


def test_what_no_file_keeps_is_refused(tmp_path):
    model = transformers.AutoModelForCausalLM.from_config(MODELS["llama"]())
    with pytest.raises(lacis.DataError, match="the model has no packed layers"):
        hf.save_pretrained(model, tmp_path)
    model.model.layers[0].mlp.gate_proj.weight = model.model.layers[0].mlp.up_proj.weight
    s = lacis.create_schedule(model, target="eager")
    s["model.layers.0.mlp.gate_proj.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.DataError, match="has the packed weight of"):
        hf.save_pretrained(s.build(), tmp_path)
    s.restore()
    model = transformers.AutoModelForCausalLM.from_config(MODELS["llama"]())
    s = lacis.create_schedule(model, target="eager")
    s[f"{LAYER}:out"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.DataError, match=f"'{LAYER}' packs an activation"):
        hf.save_pretrained(s.build(), tmp_path)
    with pytest.raises(NotImplementedError, match="a dense checkpoint is not packed while it is loaded"):
        transformers.AutoModelForCausalLM.from_config(MODELS["llama"]()).save_pretrained(tmp_path)
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=hf.LacisConfig())
    assert not list(pathlib.Path(tmp_path).glob("*.bin"))


PEAK = """
import sys, torch, transformers
import lacis.hf
def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
transformers.LlamaForCausalLM  # imported before it is measured
before = kilobytes("VmRSS")
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1])
print(kilobytes("VmHWM") - before, sum(t.nbytes for t in model.state_dict().values()) // 1024)
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_loading_makes_no_dense_copy(tmp_path):
    """Peak memory of a load is the packed bytes and what transformers itself needs, far below the dense bytes."""
    torch.manual_seed(0)
    sizes = dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=8, vocab_size=64)
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**sizes)).eval()
    dense = sum(p.numel() for p in model.parameters()) * 4 // 1024
    s = lacis.create_schedule(model, target="eager")
    s.match(r".*proj\.weight").block(32, 32).sparsify(lacis.BlockRandom(0.9)).set_format(lacis.Bsr)
    hf.save_pretrained(s.build(), tmp_path)
    del model, s
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path)], capture_output=True, text=True, check=True)
    peak, packed = map(int, done.stdout.split())
    largest = 8192 * 2048 * 4 // 1024
    assert packed < 0.15 * dense
    assert peak < 1.3 * packed + largest, (peak, packed, dense)
