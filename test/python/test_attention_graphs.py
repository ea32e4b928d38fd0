# SPDX-License-Identifier: Apache-2.0
"""Functions of scores, block masks and layouts in one graph of torch.compile: the numbers of eager calls."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from dense_attention import H, S, T, drawn, tensors
from test_attention_compiled import Plain
from test_attention_modules import HEADS, LENGTH, made, sample
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

import lacis
from lacis.attentions.lifted import lifted, rebuilt

PATTERN = lacis.Pattern.from_mask(drawn(S, T, seed=3), lacis.Csr)
SLOPES = torch.rand(H, requires_grad=True)
CAP = 3.0


def sloped(tensor, number):
    return lambda s, b, h, i, j: s + tensor[h] * (j - i) * 0.1 + number


def by_a_global(s, b, h, i, j):
    return CAP * torch.tanh(_half(s) / CAP) + SLOPES[h] + math.pi * i


def _half(s):
    return s / 2 + SLOPES[0]


def by_a_default(s, b, h, i, j, slopes=SLOPES):
    return s * slopes[h]


def abs(s):  # in place of Python's
    return s * SLOPES[1]


def shadowing(s, b, h, i, j):
    return abs(s)


@functools.wraps(F.relu)
def half(s):
    return F.relu(s) / 2 + SLOPES[0]


def wrapping(s, b, h, i, j):
    return half(s)


def asking(s, b, h, i, j):
    return s * 2 if torch.is_grad_enabled() else s


def by_others(s, b, h, i, j):
    return F.softplus(s)


class Settings:
    slopes, factor = torch.rand(H, requires_grad=True), 0.3


def by_a_class(s, b, h, i, j):
    return s - Settings.slopes[h] * Settings.factor * (i - j)


class Slopes(torch.nn.Module):
    """A function of scores as modules have it: a method."""

    def __init__(self):
        super().__init__()
        self.slopes, self.factor, self.pattern = torch.nn.Parameter(torch.rand(H)), 0.5, PATTERN

    def alibi(self, s, b, h, i, j):
        return s - self.slopes[h] * (i - j).float() * self.factor

    def forward(self, q, k, v):
        return lacis.attention(q, k, v, self.pattern, score=self.alibi, target="eager", return_lse=True)


def later(b, h, i, j):
    return SEQUENCES[i] == SEQUENCES[j]


SEQUENCES = torch.arange(max(S, T)) // 5
MODULE, LEAF = Slopes(), torch.rand(H, requires_grad=True)
CASES = {
    "captured": ({"score": sloped(LEAF, 2)}, [LEAF]),
    "globals": ({"score": by_a_global}, [SLOPES]),
    "default": ({"score": by_a_default}, [SLOPES]),
    "method": ({"score": MODULE.alibi}, [MODULE.slopes]),
    "class": ({"score": by_a_class}, [Settings.slopes]),
    "wrapped": ({"score": wrapping}, [SLOPES]),
    "of torch": ({"score": by_others}, []),
    "both": ({"score": sloped(LEAF, 0.5), "mask": later, "causal": True}, [LEAF]),
}


def run(function, options, leaves):
    given = [x.requires_grad_() for x in tensors(2)]
    output, lse = function(*given, **options)
    total = output.square().sum() + torch.where(lse.isinf(), 0, lse).sum()
    return output, lse, torch.autograd.grad(total, [*given, *leaves])


@pytest.mark.parametrize("target", ["eager", pytest.param("auto", marks=pytest.mark.long)])
@pytest.mark.parametrize("case", CASES)
def test_functions_are_part_of_the_graph(case, target):
    """What they read has its gradient."""
    torch._dynamo.reset()
    attend = lambda q, k, v, **named: lacis.attention(2 * q, k, v, PATTERN, target=target, return_lse=True, **named)
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    found, expected = (run(function, *CASES[case]) for function in (compiled, attend))
    torch.testing.assert_close(found, expected)


def test_what_they_read_is_read_anew():
    """Numbers, tensors and functions that change are those of the call."""
    torch._dynamo.reset()
    module = Slopes()
    compiled, given = torch.compile(module, fullgraph=True, backend="aot_eager"), tensors()

    def agrees():
        torch.testing.assert_close(compiled(*given), module(*given))

    agrees()
    for factor in (7.0, 9.25, 2, 3, 5, True):
        module.factor = factor
        agrees()
    with torch.no_grad():
        module.slopes += 1
    agrees()
    module.slopes = torch.nn.Parameter(torch.rand(H))
    agrees()
    module.alibi = by_a_default
    agrees()


def test_a_function_that_is_made_in_the_graph():
    torch._dynamo.reset()

    def attend(q, k, v):
        score = lambda s, b, h, i, j: 2 * torch.tanh(s / 2) + (i - j) * 0.1
        return lacis.attention(q, k, v, PATTERN, score=score, mask=lambda b, h, i, j: j <= i + 2, target="eager")

    given = tensors()
    torch.testing.assert_close(torch.compile(attend, fullgraph=True, backend="aot_eager")(*given), attend(*given))


class Listed:
    tables = [SLOPES]

    def score(self, s, b, h, i, j):
        return s + self.tables[0][h]


class Called:
    def __call__(self, s, b, h, i, j):
        return s * SLOPES[h]


def counted(s, b, h, i, j, *, calls=[0]):
    return s


@pytest.mark.parametrize("score", [Listed().score, counted, Called(), shadowing, asking])
def test_what_no_graph_has_runs_between_two(score):
    attend = lambda q, k, v: lacis.attention(2 * q, k, v, PATTERN, score=score, target="eager") + 1
    given = tensors()
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="lacis.attention is one node of a graph for a Pattern"):
        torch.compile(attend, fullgraph=True, backend="aot_eager")(*given)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(attend, backend="aot_eager")(*given), attend(*given))


def test_block_masks_layouts_and_lists():
    """A mask's function, and what it reads, as well; nobody makes its pattern again."""
    q, k, v = (torch.randn(2, H, 64, 8, requires_grad=True) for _ in range(3))
    reach = torch.tensor([13, 25])
    near = create_block_mask(lambda b, h, i, j: (j <= i) & (i - j < reach[b]), 2, None, 64, 64, "cpu", (8, 16))
    whole = create_block_mask(lambda b, h, i, j: j <= i, None, None, 64, 64, "cpu", (16, 16))
    lists = torch.tensor([[[[0, 2, -1], [1, -1, -1], [3, 0, 2], [2, 1, -1]]]], dtype=torch.int32)
    partial = BlockMask.from_kv_blocks(near.kv_num_blocks, near.kv_indices, BLOCK_SIZE=(8, 16))
    for pattern in (near, whole, partial, torch.rand(1, 8, 4) < 0.7, lists):
        torch._dynamo.reset()
        attend = lambda q, k, v: lacis.attention(q, k, v, pattern, score=by_others, target="eager")
        compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
        found, expected = compiled(q, k, v), attend(q, k, v)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), [q, k, v]) for each in (found, expected)))


def test_no_graph_has_gradients_of_gradients():
    torch._dynamo.reset()
    attend = lambda q, k, v: lacis.attention(q, k, v, PATTERN, target="eager")
    given = [x.requires_grad_() for x in tensors()]
    found = torch.compile(attend, fullgraph=True, backend="eager")(*given)
    (first,) = torch.autograd.grad(found.square().sum(), given[:1], create_graph=True)
    with pytest.raises(lacis.DataError, match="a graph has no gradients of gradients; call it outside of torch.compi"):
        first.square().sum().backward()


def test_a_rule_that_the_graph_makes_ends_it():
    torch._dynamo.reset()
    attend = lambda q, k, v: lacis.attention(q, k, v, lacis.Causal(block=8), score=by_others, target="eager") * 2
    given = tensors()
    torch.testing.assert_close(torch.compile(attend, backend="aot_eager")(*given), attend(*given))


def test_a_scheduled_score_is_part_of_the_graph():
    torch._dynamo.reset()
    slopes, model, x = torch.rand(HEADS, requires_grad=True), made(Plain), sample()
    s = lacis.create_schedule(model, target="eager")
    s["attention"].sparsify(lacis.Local(6)).block(8, 8).set_format(lacis.Bsr)
    s["attention"].score(lambda score, b, h, i, j: score - slopes[h] * (i - j))
    s.build(x)
    leaves, compiled = [*model.parameters(), slopes], torch.compile(model, fullgraph=True, backend="aot_eager")
    for length in (LENGTH, LENGTH - 8):
        found, expected = compiled(x[:, :length]), model(x[:, :length])
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), leaves) for each in (found, expected)))


@pytest.mark.parametrize("training", [False, True])
def test_the_layers_of_torch_are_one_graph(training):
    """`nn.MultiheadAttention`, whose text of torch asks for attention in it."""
    torch._dynamo.reset()
    model = made(torch.nn.TransformerEncoderLayer, d_model=16, nhead=HEADS, dim_feedforward=24, batch_first=True)
    model.train(training)
    x, padding = sample(), torch.arange(LENGTH) >= torch.tensor([[LENGTH], [LENGTH - 3]])
    options = {"src_key_padding_mask": torch.where(padding, -torch.inf, 0.0)}
    for module in model.modules():
        module.p = 0.0 if isinstance(module, torch.nn.Dropout) else getattr(module, "p", None)
    model.self_attn.dropout = 0.0
    s = lacis.create_schedule(model, target="eager")
    s["self_attn"].sparsify(lacis.Local(6)).block(8, 8).set_format(lacis.Bsr)
    s.build(x, **options)
    with pytest.raises(lacis.DataError, match="key_padding_mask: a tensor .2, 40. is needed, not .2, 39."):
        model.self_attn(x, x, x, key_padding_mask=padding[:, 1:], need_weights=False)
    compiled, leaves = torch.compile(model, fullgraph=True, backend="aot_eager"), list(model.parameters())
    found, expected = (each(x, **options) for each in (compiled, model))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), leaves) for each in (found, expected)))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Gemma2", "Llama"])
def test_models_of_hugging_face_with_scores(kind):
    """A cap that the model's configuration asks for, and a score of the schedule behind it; a step of a generation."""
    transformers = pytest.importorskip("transformers")
    torch._dynamo.reset()
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"intermediate_size": 24, "vocab_size": 50, "attn_implementation": "eager"}
    sizes |= {"head_dim": 8, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 2.0} if kind == "Gemma2" else {}
    config = getattr(transformers, f"{kind}Config")(**sizes)
    model = made(lambda: getattr(transformers, f"{kind}Model")(config))
    ids, slopes = torch.arange(80).reshape(2, 40) % 50, torch.rand(4)
    s = lacis.create_schedule(model, target="eager")
    attention = s.match(r"layers\.\d+\.self_attn").sparsify(lacis.Causal()).block(8, 8).set_format(lacis.Bsr)
    attention.score(lambda score, b, h, i, j: score - slopes[h] * (i - j))
    s.build(ids, use_cache=False)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    found, expected = (each(ids, use_cache=False).last_hidden_state for each in (compiled, model))
    torch.testing.assert_close(found, expected)


def test_a_token_of_another_process_is_refused():
    captured: list = []
    token = lifted(by_a_default, captured)
    assert captured == [SLOPES] and rebuilt(token, iter(captured))(1.0, 0, 0, 2, 3) == SLOPES[0]
    with pytest.raises(lacis.DataError, match="'function of old' of a compiled graph is of another process"):
        rebuilt("function of old", iter(()))
