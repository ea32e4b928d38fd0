# SPDX-License-Identifier: Apache-2.0
"""Models of Hugging Face on tensor cores, and calls under autocast and with checkpoints."""

import copy

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import lacis

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="needs sm_90a"
)
SIZES = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50}
EVERY = lacis.Given(torch.ones(1, 4, 4, dtype=torch.bool))
MODELS = {
    "Bert": (SIZES | {"intermediate_size": 64}, r"encoder\.layer\.\d+\.attention\.self", EVERY),
    "Llama": (SIZES | {"intermediate_size": 64, "num_key_value_heads": 2}, r"layers\.\d+\.self_attn", lacis.Causal()),
    "GPT2": (SIZES | {"bos_token_id": 1, "eos_token_id": 2}, r"h\.\d+\.attn", lacis.Causal()),
}


def seen(run):
    """What it answers, and how many kernels of attention it started."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        answer = run()
    return answer, sum(each.count for each in found.key_averages() if each.key.startswith("_attention"))


@pytest.mark.parametrize("name", MODELS)
def test_models_of_hugging_face_at_density_1(name):
    """The hidden state and its gradients, as near as two ways to round are."""
    transformers = pytest.importorskip("transformers")
    sizes, path, rule = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes)).cuda().bfloat16()
    model.eval()  # dropout draws other bits
    other, ids = copy.deepcopy(model), torch.randint(0, 50, (2, 256), device="cuda")
    s = lacis.create_schedule(model)
    s.match(path).sparsify(rule).block(64, 64).set_format(lacis.Bsr)
    s.build()
    found, count = seen(lambda: model(ids, use_cache=False).last_hidden_state)
    want = other(ids, use_cache=False).last_hidden_state
    assert count == 2
    assert (found - want).norm() <= 2**-5 * want.norm()
    slope = torch.randn_like(want)
    ours, theirs = (
        torch.autograd.grad(y, m.parameters(), slope, allow_unused=True) for y, m in ((found, model), (want, other))
    )
    most = max(each.norm() for each in theirs if each is not None)  # biases of keys have none, but for rounding
    for one, each in zip(ours, theirs):
        assert each is None or (one - each).norm() <= 2**-4 * each.norm() + 2**-8 * most


def test_generation_with_a_cache_of_keys():
    """Each token of greedy decoding is, but for rounding, the likeliest of the model without a cache."""
    transformers = pytest.importorskip("transformers")
    sizes, _, rule = MODELS["Llama"]
    config = transformers.LlamaConfig(**sizes, initializer_range=0.2)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).cuda().bfloat16().eval()
    other, ids = copy.deepcopy(model), torch.randint(0, 50, (2, 150), device="cuda")  # 150 is no multiple of a tile
    s = lacis.create_schedule(model)
    s.match(r"model\.layers\.\d+\.self_attn").sparsify(rule).block(64, 64).set_format(lacis.Bsr)
    s.build()
    how = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 24, "do_sample": False, "pad_token_id": 0}
    found, count = seen(lambda: model.generate(ids, **how))
    assert count >= 2
    with torch.no_grad():
        logits = other(found, use_cache=False).logits[:, 149:-1].float()
    chosen = logits.gather(-1, found[:, 150:, None])[..., 0]
    assert (logits.amax(-1) - chosen <= 0.1 * logits.std(-1)).all()


@pytest.mark.parametrize("depth", [64, 128])
def test_autocast_and_checkpoints(depth):
    """Both are the call on half types, bit by bit; gradients have the type of what they are of."""
    torch.manual_seed(0)
    given = [torch.randn(2, 4, 256, depth, device="cuda") for _ in range(3)]
    rule, slope = lacis.BigBird(block=64), torch.randn(2, 4, 256, depth, device="cuda").bfloat16()
    halves = [x.bfloat16().requires_grad_() for x in given]
    want = lacis.attention(*halves, rule)
    expected = torch.autograd.grad(want, halves, slope)
    for through in (False, True):
        leaves = [x.clone().requires_grad_() for x in given]
        attend = lambda *operands: lacis.attention(*operands, rule)
        with torch.autocast("cuda", torch.bfloat16):
            found = checkpoint(attend, *leaves, use_reentrant=False) if through else attend(*leaves)
        made = torch.autograd.grad(found, leaves, slope)
        assert torch.equal(found, want) and all(each.dtype == torch.float32 for each in made)
        assert all(torch.equal(one, other.float()) for one, other in zip(made, expected))
