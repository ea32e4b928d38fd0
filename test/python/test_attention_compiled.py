# SPDX-License-Identifier: Apache-2.0
"""Attention in graphs of torch.compile, under checkpointing and autocast: the numbers of eager calls."""

import copy
import gc
import pickle

import pytest
import torch
from dense_attention import H, S, T, agree, dense, drawn, tensors
from test_attention_modules import HEADS, LENGTH, WIDTH, Model, SelfAttention, made, sample
from torch._dynamo.backends.common import aot_autograd
from torch.utils.checkpoint import checkpoint

import lacis
from lacis.attentions.lifted import lifted
from lacis.runtime import kernels

STARTS = torch.tensor([0, 4, S])
OPTIONS = {
    "plain": {},
    "masks": {"causal": True, "window": 4, "key_padding": torch.arange(T) < torch.tensor([[T], [6]])},
    "operands": {"scale": 0.3, "bias": torch.randn(H, S, T), "sink": torch.randn(H)},
    "dropout": {"dropout": 0.3},
    "sequences": {"cu_seqlens": STARTS, "cu_seqlens_k": torch.tensor([0, 4, T]), "causal": True, "window": (2, 1)},
    "nan": {"empty": "nan"},
}


def pattern(seed=3, format=lacis.Csr):
    return lacis.Pattern.from_mask(drawn(S, T, seed=seed), format)


def operands(options, dtype=torch.float32):
    """q, k, v, and the tensors of the options that have gradients."""
    given = [x[:1] if "cu_seqlens" in options else x for x in tensors(2, dtype=dtype)]
    named = {name: options[name].clone().requires_grad_() for name in ("bias", "sink") if name in options}
    return [x.requires_grad_() for x in given], named


def run(function, options, given, named):
    torch.manual_seed(0)
    output, lse = function(*given, **{**options, **named})
    total = output.nan_to_num().square().sum() + torch.where(lse.isinf(), 0, lse).sum()
    return output, lse, torch.autograd.grad(total, [*given, *named.values()])


@pytest.mark.parametrize("case", OPTIONS)
def test_a_graph_has_it_whole(case):
    """Forward and backward; half as many heads of keys."""
    options, kept = OPTIONS[case], pattern()
    given, named = operands(options)

    def attend(q, k, v, **options):
        return lacis.attention(2 * q, k, v, kept, target="eager", return_lse=True, **options)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    found, expected = (run(function, options, given, named) for function in (compiled, attend))
    torch.testing.assert_close(found[:2], expected[:2], equal_nan=True)
    torch.testing.assert_close(found[2], expected[2], equal_nan=True)


@pytest.mark.long
def test_kernels_run_in_graphs_of_inductor():
    kept = pattern(format=lacis.Bsr(4, 4))
    attend = lambda q, k, v: lacis.attention(q, k, v + 1, kept, causal=True, return_lse=True)
    given, _ = operands({})
    found = run(torch.compile(attend, fullgraph=True), {}, given, {})
    agree(found[:2], dense(*given[:2], given[2] + 1, drawn(S, T) & torch.ones(S, T).tril().bool()))
    torch.testing.assert_close(found[2], run(attend, {}, given, {})[2])


def test_another_pattern_is_another_graph():
    """In one place a graph for each; a copy of a pattern is another one."""
    torch._dynamo.reset()
    graphs = []

    def counted(module, inputs):
        graphs.append(module)
        return module

    attend = torch.compile(
        lambda q, k, v, kept: lacis.attention(q, k, v, kept, target="eager"), fullgraph=True, backend=counted
    )
    first, second = pattern(), pattern(seed=9)
    third = copy.deepcopy(second)
    assert len({each._token for each in (first, second, third, pickle.loads(pickle.dumps(first)))}) == 4
    given = tensors()
    for kept, seed, graph in [(first, 3, 1), (second, 9, 2), (first, 3, 2), (third, 9, 3), (second, 9, 3)]:
        agree([attend(*given, kept)], dense(*given, drawn(S, T, seed=seed))[:1])
        assert len(graphs) == graph


@pytest.mark.parametrize("masked", [False, True])
def test_a_scheduled_module_is_part_of_the_graph(masked):
    """Once for all calls; a bool mask of entries is an operand of the graph."""
    graphs, model, x = [], made(Plain), sample()
    mask = torch.rand(2, 1, LENGTH, LENGTH) < 0.7 if masked else None
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(lacis.Local(6)).block(8, 8).set_format(lacis.Bsr)
    s.build(x)
    counted = aot_autograd(fw_compiler=lambda module, inputs: graphs.append(module) or module)
    compiled = torch.compile(model, fullgraph=True, backend=counted)
    parameters = list(model.parameters())
    for _ in range(2):
        found, expected = compiled(x, mask), model(x, mask)
        torch.testing.assert_close(found, expected)
        made_of = [torch.autograd.grad(each.square().sum(), parameters) for each in (found, expected)]
        torch.testing.assert_close(*made_of)
    assert len(graphs) == 2  # forward and backward
    other = copy.deepcopy(model)
    torch.testing.assert_close(other(x, mask), model(x, mask))


class Plain(Model):
    """Without `unflatten`, of which a mode keeps dynamo away."""

    def __init__(self):
        super().__init__()
        self.attention = PlainAttention()


class PlainAttention(SelfAttention):
    def forward(self, x, mask=None):
        q, k, v = self.inputs(x).view(len(x), -1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return found.transpose(1, 2).reshape(x.shape)


@pytest.mark.long
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_model_of_hugging_face_is_one_graph(implementation):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS, "vocab_size": 50}
    more = {"num_key_value_heads": 2, "intermediate_size": 24, "attn_implementation": implementation}
    model = made(lambda: transformers.LlamaModel(transformers.LlamaConfig(**sizes, **more)))
    ids = torch.arange(80).reshape(2, 40) % 50
    s = lacis.create_schedule(model, target="eager")
    s.match(r"layers\.\d+\.self_attn").sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    s.build(ids, use_cache=False)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    found, expected = (each(ids, use_cache=False).last_hidden_state for each in (compiled, model))
    torch.testing.assert_close(found, expected)


def test_a_rule_that_is_kept():
    """A copy is another one, whose sides may differ."""
    rule, given = lacis.Causal(block=4), tensors()
    attend = lambda q, k, v, rule: lacis.attention(q, k, v, rule, target="eager")
    compiled, kept = torch.compile(attend, fullgraph=True, backend="eager"), torch.ones(S, T).tril().bool()
    agree([compiled(*given, rule)], dense(*given, kept)[:1])
    other = copy.copy(rule)
    other.block = 3
    assert other._token != rule._token and repr(other) == "Causal(block=3)"
    agree([compiled(*given, other)], dense(*given, kept)[:1])


def test_lengths_that_change_are_one_graph_and_one_kernel(monkeypatch):
    rule, graphs = lacis.Causal(block=16), []
    attend = lambda q, k, v: lacis.attention(q, k, v, rule) * 2

    def counting(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(attend, fullgraph=True, backend=counting, dynamic=True)
    for length in (65, 131, 33):  # a kernel knows which powers of two divide a length
        operands = [torch.randn(2, 4, length, 16) for _ in range(3)]
        expected = 2 * torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=True)
        torch.testing.assert_close(compiled(*operands), expected)
        monkeypatch.setattr(kernels, "_make", lambda request: pytest.fail(f"compiled again: {request.text[:200]}"))
    assert len(graphs) == 1


def test_a_pattern_that_is_gone_is_refused():
    kept, given = pattern(), tensors()
    token = kept._token
    tensors_of = *[None] * 3, [], *[None] * 3, []  # bias to sink, captured, seed to starts of keys, blocks
    plain = token, None, ["", "", ""], None, False, None, 0.0, "zero", "eager"
    call = lambda: torch.ops.lacis.attention(*given, *tensors_of, *plain)
    agree(call(), dense(*given, drawn(S, T)))
    del kept
    gc.collect()
    with pytest.raises(lacis.DataError, match=f"'{token}' of a compiled graph is gone; keep the pattern as long"):
        call()


def test_the_operators_keep_what_torch_asks_of_them():
    given, options = operands({"bias": torch.randn(H, S, T), "sink": torch.randn(H)})
    kept, captures = pattern(), torch.rand(H, requires_grad=True)
    captured: list = []
    tokens = [lifted(lambda s, b, h, i, j: s * captures[h], captured), "", ""]
    plain = (kept._token, None, tokens, 0.3, False, None, 0.0, "zero", "eager")
    named = [options["bias"], None, options["sink"]]
    torch.library.opcheck(torch.ops.lacis.attention.default, (*given, *named, captured, None, None, None, [], *plain))
    arrived = torch.randn(2, H, S, 3), torch.zeros(2, H, S)
    lent = [x.detach() for x in given] + named + [captures]
    needed = [True, False, True, True, False, True, True]
    with torch.no_grad():
        torch.library.opcheck(torch.ops.lacis.attention_gradients.default, (*arrived, lent, [None] * 3, *plain, needed))


def test_checkpoints_draw_the_same_dropout():
    kept = pattern()
    given, named = operands({})
    attend = lambda *given: lacis.attention(*given, kept, dropout=0.4, return_lse=True, target="eager")
    again = lambda *given: checkpoint(attend, *given, use_reentrant=False)
    found, expected = (run(function, {}, given, named) for function in (again, attend))
    torch.testing.assert_close(found, expected)


@pytest.mark.long
def test_checkpoints_of_one_kernel():
    kept = pattern(format=lacis.Bsr(4, 4))
    given, named = operands({})
    attend = lambda *given: lacis.attention(*given, kept, return_lse=True)
    again = lambda *given: checkpoint(attend, *given, use_reentrant=False)
    found, expected = (run(function, {}, given, named) for function in (again, attend))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("compiled", [False, True])
def test_autocast_with_gradients(compiled):
    """In the dtype of the region; gradients are those of the operands that it cast."""
    kept = pattern()
    given, _ = operands({})
    attend = lambda *given: lacis.attention(*given, kept, target="eager", return_lse=True)
    function = torch.compile(attend, fullgraph=True, backend="aot_eager") if compiled else attend
    with torch.autocast("cpu", torch.bfloat16):
        output, lse, gradients = run(function, {}, given, {})
    assert output.dtype == torch.bfloat16 and lse.dtype == torch.float32
    assert all(x.dtype == torch.float32 for x in gradients)
    halves = [x.detach().bfloat16().requires_grad_() for x in given]
    expected = run(attend, {}, halves, {})
    agree((output, lse, *gradients), (*expected[:2], *expected[2]), rtol=1e-2, atol=1e-2)
