# SPDX-License-Identifier: Apache-2.0
"""Files of Hugging Face models with packed layers: loaded without a dense copy, and checked array by array."""

import json
import subprocess
import sys

import pytest
import torch

import lacis

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")
hf = pytest.importorskip("lacis.hf")

from hf_models import FORMATS, LAYER, MODELS, SMALL, answers, built  # noqa: E402


@pytest.mark.parametrize("model, format", [("opt", "csr"), ("roberta", "csr"), *(("llama", each) for each in FORMATS)])
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


CONVOLUTIONS = {
    "matrix": lambda handle: handle.sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr),
    "blocks": lambda handle: (
        handle.block(5, 7).sparsify(lacis.BlockMagnitude(0.5)).set_format(lacis.Bsr)
    ),  # with padding
    "taps": lambda handle: handle.sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csf(4)),
}


@pytest.mark.parametrize("format", CONVOLUTIONS)
def test_convolutions_are_the_same_after_their_file(tmp_path, format):
    sizes = {name: size for name, size in SMALL.items() if name != "vocab_size"}
    torch.manual_seed(0)
    model = transformers.ViTModel(transformers.ViTConfig(image_size=8, patch_size=4, **sizes)).eval()
    s = lacis.create_schedule(model, target="eager")
    CONVOLUTIONS[format](s["embeddings.patch_embeddings.projection.weight"])
    image = torch.randn(2, 3, 8, 8)
    expected = s.build()(image).last_hidden_state
    hf.save_pretrained(model, tmp_path)
    again = transformers.ViTModel.from_pretrained(tmp_path)
    assert torch.equal(again(image).last_hidden_state, expected)
    assert again.embeddings.patch_embeddings.projection.weight.shape == (32, 3, 4, 4)


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


def test_matrices_that_are_no_layers_weight_are_refused(tmp_path):
    sizes = dict(hidden_size=16, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, vocab_size=30)
    config = transformers.MixtralConfig(**sizes, num_key_value_heads=1, num_local_experts=4)
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(tmp_path)
    s = lacis.create_schedule(model, target="eager")
    for handle in (s["model.layers.0.mlp.gate.weight"], s["model.layers.0.self_attn.q_proj.weight"]):
        handle.sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    message = "'model.layers.0.mlp.gate.weight' is packed, and is no layer's weight but a matrix"
    with pytest.raises(lacis.DataError, match=message):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=hf.LacisConfig.of(s))
    with pytest.raises(lacis.DataError, match=message):
        hf.save_pretrained(s.build(), tmp_path / "packed")


def dense_model(folder):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(MODELS["llama"]()).eval()
    model.save_pretrained(folder)
    return model


def scheduled(format="csr", sparsifier=None):
    with torch.device("meta"):
        skeleton = transformers.AutoModelForCausalLM.from_config(MODELS["llama"]())
    s = lacis.create_schedule(skeleton, target="eager")
    FORMATS[format](s.match(r"model.*proj\.weight"))
    return s


@pytest.mark.parametrize("format", FORMATS)
def test_a_dense_checkpoint_is_packed_while_it_is_loaded(tmp_path, format):
    dense = dense_model(tmp_path)
    made = transformers.AutoModelForCausalLM.from_pretrained
    model = made(tmp_path, quantization_config=hf.LacisConfig.of(scheduled(format)))
    s = lacis.create_schedule(dense, target="eager")
    FORMATS[format](s.match(r"model.*proj\.weight"))
    assert torch.equal(answers(model), answers(s.build()))
    model.save_pretrained(tmp_path / "packed")
    assert torch.equal(answers(made(tmp_path / "packed")), answers(model))
    half = made(tmp_path, dtype=torch.bfloat16, quantization_config=hf.LacisConfig.of(scheduled(format)))
    assert half.model.layers[0].mlp.up_proj.weight.dtype == torch.bfloat16
    json.dumps(hf.LacisConfig.of(scheduled(format)).to_dict())


def test_what_cannot_be_packed_while_it_is_loaded_is_refused(tmp_path):
    dense_model(tmp_path)
    load = lambda config: transformers.AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=config)
    with pytest.raises(lacis.DataError, match="quantization_config=lacis.hf.LacisConfig.of"):
        load(hf.LacisConfig())
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    with pytest.raises(lacis.DataError, match="the schedule says nothing"):
        hf.LacisConfig.of(s)
    rows = lacis.create_schedule(torch.nn.Sequential(torch.nn.Embedding(4, 2)))
    rows["0.weight"].grad.set_format(lacis.Format.parse("(i, j) -> (i : compressed, j : dense)"))
    with pytest.raises(lacis.DataError, match="'0.weight.grad' is a gradient; what a checkpoint holds are parameters"):
        hf.LacisConfig.of(rows)
    s["0.weight"].set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="'0.weight' is no parameter of the model any more"):
        load(hf.LacisConfig.of(s))
    s["0:out"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.DataError, match="'0:out' is an activation"):
        hf.LacisConfig.of(s)
    narrow = scheduled()
    narrow["lm_head.weight"].set_format(lacis.Ell(width=1))
    with pytest.raises(RuntimeError):  # transformers says which
        load(hf.LacisConfig.of(narrow))
    tensors = safetensors.load_file(tmp_path / "model.safetensors")
    del tensors[f"{LAYER}.weight"]
    safetensors.save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(lacis.DataError, match=f"the checkpoint has no '{LAYER}.weight'"):
        load(hf.LacisConfig.of(scheduled()))


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
