# SPDX-License-Identifier: Apache-2.0
"""One block of LLaMA-7B's shape and one of BERT-large's, every linear layer in blocks of 64, beside the dense block."""

from __future__ import annotations

import copy
import re

import lacis
import torch

from .measure import Case, measure

TITLE = "Transformer blocks, every linear layer in blocks of 64, 4096 tokens, bf16"
SPARSITIES = (0.75, 0.9)
# Kernels of a profile by what they are for: the first pattern that their name holds.
KINDS = {
    "attention": "flash|fmha|sdpa|attention",
    "linears": "^(linear|einsum)_|nvjet|gemm|gemv|cublas|xmma|splitk",
}


class Llama(torch.nn.Module):
    """A decoder block of LLaMA-7B's shape with random weights; x is [1, tokens, 4096]."""

    shape = (1, 4096, 4096)

    def __init__(self, **smaller):
        from transformers import LlamaConfig
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

        super().__init__()
        config = LlamaConfig(**{"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32} | smaller)
        config._attn_implementation = "sdpa"
        self.block, self.rotary = LlamaDecoderLayer(config, 0), LlamaRotaryEmbedding(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)[None]
        return first(self.block(x, position_embeddings=self.rotary(x, places)))


class Bert(torch.nn.Module):
    """An encoder block of BERT-large's shape with random weights, without dropout; x is [8, 512, 1024]."""

    shape = (8, 512, 1024)

    def __init__(self, **smaller):
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertLayer

        super().__init__()
        sizes = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16} | smaller
        config = BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        config._attn_implementation = "sdpa"
        self.block = BertLayer(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return first(self.block(x))


def first(result):
    return result if isinstance(result, torch.Tensor) else result[0]


def sparse_copy(dense: torch.nn.Module, sparsity: float, block: int = 64) -> torch.nn.Module:
    """The model with every linear weight in stored blocks, checked against the dense one with the same zeros."""
    model, masked = copy.deepcopy(dense), copy.deepcopy(dense)
    s = lacis.create_schedule(model)
    linears = [name for name, module in dense.named_modules() if isinstance(module, torch.nn.Linear)]
    for name in linears:
        sparse = s[f"{name}.weight"].block(block, block)
        sparse.sparsify(lacis.BlockMagnitude(sparsity)).set_format(lacis.Bsr)
    s.build()
    with torch.no_grad():
        for name in linears:
            masked.get_submodule(name).weight.copy_(s[f"{name}.weight"].packed.to_dense())
        x = like(model, (1, 256, dense.shape[-1]))
        found, want = model(x) - x, masked(x) - x  # the residual connection alone would look right
    error = ((found - want).norm() / want.norm()).item()
    assert error < 2e-2, f"{type(dense).__name__}, {sparsity:.0%} zeros: error {error}"
    return model


def like(model: torch.nn.Module, shape) -> torch.Tensor:
    """Random numbers of a model's dtype, where it lies."""
    return torch.randn(shape, device=next(model.parameters()).device).to(next(model.parameters()).dtype)


def prefill(model, x):
    def run():
        with torch.no_grad():
            return model(x)

    return run


def training(model, x):
    """Forward, gradients of the input and of all parameters, and a step of SGD, after which copies are made anew."""
    x, arriving = x.clone().requires_grad_(), torch.randn_like(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def run():
        optimizer.zero_grad(set_to_none=True)
        x.grad = None
        model(x).backward(arriving)
        optimizer.step()

    return run


def captured(run):
    """The same launches as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def shares(run) -> dict[str, float]:
    """The share of the kernels' time by kind; nothing where no kernel is seen."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    taken = dict.fromkeys([*KINDS, "rest"], 0.0)
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kinds = (kind for kind, names in KINDS.items() if re.search(names, event.name, re.IGNORECASE))
            taken[next(kinds, "rest")] += event.time_range.elapsed_us()
    total = sum(taken.values())
    return {kind: time / total for kind, time in taken.items()} if total else {}


def cases(make, sparsity: float) -> list[Case]:
    dense = make().to("cuda", torch.bfloat16)
    models = {"lacis": sparse_copy(dense, sparsity), "torch dense": dense}
    x, found = like(dense, make.shape), []
    for what, build in (("prefill", prefill), ("training step", training)):
        runs = {name: build(model, x) for name, model in models.items()}
        eager = measure(runs, "cuda", rounds=20)
        seen = {name: shares(run) for name, run in runs.items()}
        words = "; ".join(
            f"{name}: {', '.join(f'{kind} {share:.0%}' for kind, share in each.items())}" for name, each in seen.items()
        )
        title = f"{make.__name__}, {sparsity:.0%} zeros, {what}"
        found.append(Case(f"{title}, eager ({words})", eager))
        graphs = {name: captured(run) for name, run in runs.items()}
        found.append(Case(f"{title}, CUDA graph", measure(graphs, "cuda", rounds=20)))
    return found


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    return [case for make in (Llama, Bert) for sparsity in SPARSITIES for case in cases(make, sparsity)]
