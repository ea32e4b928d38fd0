# SPDX-License-Identifier: Apache-2.0
"""Modules that call flex_attention: their masks and functions meet a rule, or are the pattern themselves."""

import threading

import pytest
import torch
import torch.nn.attention.flex_attention as flex
from strategies import mostly_long
from test_attention_modules import HEADS, LENGTH, WIDTH, kept, made, sample
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

import lacis
from lacis.nn.flex import FlexCall

causal = lambda b, h, i, j: j <= i
CAUSAL = create_block_mask(causal, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=16)
WAYS = {"by name": flex_attention, "compiled": torch.compile(flex_attention, backend="eager")}


class Attention(torch.nn.Module):
    """With half as many heads of keys; `own` is part of the score, as a parameter of it may be."""

    def __init__(self, way=flex_attention, **options):
        super().__init__()
        self.inputs, self.way, self.options = torch.nn.Linear(WIDTH, 3 * WIDTH), way, options
        self.own = torch.nn.Parameter(torch.rand(HEADS))

    def operands(self, x):
        q, k, v = self.inputs(x).unflatten(-1, (3, HEADS, -1)).movedim(-3, 0).transpose(2, 3)
        return q, k[:, ::2], v[:, ::2]

    def alibi(self, s, b, h, i, j):
        return s - self.own[h] * (i - j)

    def forward(self, x, **options):
        options = {"enable_gqa": True, "scale": 0.4, "score_mod": self.alibi, **self.options, **options}
        found = self.way(*self.operands(x), **options)
        output, *rest = found if isinstance(found, tuple) else (found,)
        return (output.transpose(1, 2).flatten(2), *rest) if rest else output.transpose(1, 2).flatten(2)


def expected(module, x, mask, change=lambda s: s):
    """Dense, in float64."""
    q, k, v = (each.double() for each in module.operands(x))
    k, v = (each.repeat_interleave(2, 1) for each in (k, v))
    i, j = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    scores = change(q @ k.mT * 0.4 - module.own.double()[:, None, None] * (i - j))
    scores = torch.where(mask, scores, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2), scores.logsumexp(-1)


class Model(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.attention = module

    def forward(self, *args, **options):
        return self.attention(*args, **options)


def scheduled(module, rule=None, block=None, score=None):
    s = lacis.create_schedule(Model(module), target="eager")
    handle = s["attention"] if rule is None else s["attention"].sparsify(rule)
    handle = handle if block is None else handle.block(*block)
    handle = handle if score is None else handle.score(score)
    handle.set_format(lacis.Bsr)
    return s


@pytest.mark.parametrize("way", mostly_long(WAYS, "by name"))
@pytest.mark.parametrize("rule", [None, lacis.Local(6)], ids=["its own mask", "a rule"])
def test_its_mask_and_score_are_kept(way, rule):
    module, x = made(Attention, way=WAYS[way]), sample()
    mask = causal(0, 0, torch.arange(LENGTH)[:, None], torch.arange(LENGTH))
    mask = mask if rule is None else mask & kept(rule, 64)
    s = scheduled(module, rule, None if rule is None else (8, 8))
    with torch.no_grad():
        s.build(x, block_mask=CAUSAL) if rule is None else s.build()
    with torch.set_grad_enabled(way == "by name"):  # compiled, torch refuses gradients on CPUs before anything
        found, wanted = module(x, block_mask=CAUSAL), expected(module, x, mask)[0]
    torch.testing.assert_close(found, wanted.float())
    if way == "compiled":
        return
    parameters = [module.own, module.inputs.weight]
    mine, theirs = (torch.autograd.grad(each.square().sum(), parameters) for each in (found, wanted))
    torch.testing.assert_close(mine, theirs)
    assert f"attends on {'its BlockMask' if rule is None else 'Local'}" in str(s.report(x, block_mask=CAUSAL))
    s.restore()
    assert type(module) is Attention


def test_logs_of_sums_and_the_schedule_s_own_score():
    module, x, rule = made(Attention, return_aux=AuxRequest(lse=True)), sample(), lacis.Causal()
    s = scheduled(module, rule, (8, 8), score=lambda s, b, h, i, j: s * 0.5)
    s.build()
    output, aux = module(x)
    wanted = expected(module, x, kept(rule), lambda scores: scores * 0.5)
    torch.testing.assert_close(output, wanted[0].float())
    torch.testing.assert_close(aux.lse, wanted[1].float())
    assert aux.max_scores is None


def test_blocks_count_where_they_have_no_function():
    """A BlockMask of lists alone, on its own and below a rule."""
    counts, lists = torch.tensor([[[1, 2, 1]]]), torch.tensor([[[[0, 0, 0], [0, 1, 0], [2, 0, 0]]]])
    blocks = flex.BlockMask.from_kv_blocks(counts.int(), lists.int(), BLOCK_SIZE=16, seq_lengths=(LENGTH, LENGTH))
    stored = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 0, 1]]).bool()
    stored = stored.repeat_interleave(16, 0).repeat_interleave(16, 1)[:LENGTH, :LENGTH]
    module, x = made(Attention), sample()
    for rule, mask in [(None, stored), (lacis.Local(6), stored & kept(lacis.Local(6), 64))]:
        s = scheduled(module, rule, (16, 16))
        s.build()
        torch.testing.assert_close(module(x, block_mask=blocks), expected(module, x, mask)[0].float())
        s.restore()


def test_other_threads_and_later_calls_are_torch_s():
    module, x = made(Attention), sample()
    with torch.no_grad():
        before = module(x, block_mask=CAUSAL)
    s = scheduled(module)
    s.build()
    flags = []
    module.way = lambda *given, **options: (look(), flex_attention(*given, **options))[1]

    def look():
        thread = threading.Thread(target=lambda: flags.append(bool(flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG)))
        thread.start()
        thread.join()

    torch.testing.assert_close(module(x, block_mask=CAUSAL), before)
    assert flags == [False] and not flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    s.restore()
    with torch.no_grad():
        assert torch.equal(module(x, block_mask=CAUSAL), before)
    with pytest.raises(NotImplementedError, match="does not support backward on CPU"):
        module(x, block_mask=CAUSAL)


def test_refusals():
    module, x = made(Attention), sample()
    s = scheduled(module)
    s.build()
    flash = {"kernel_options": {"BACKEND": "FLASH"}}
    options = {"OUTPUT_MAX": True, "BACKEND": "AUTO"}  # on CPUs torch refuses it before
    call = FlexCall.of(None, CAUSAL.as_tuple(), 1.0, options)
    assert "asked for largest scores (AuxRequest(max_scores=True))" in call.why_not
    for options, message in [
        ({}, "'attention': has no rule, and its flex_attention no block_mask; call sparsify"),
        ({"block_mask": CAUSAL, **flash}, "asked for the kernel of kernel_options={'BACKEND': 'FLASH'}"),
    ]:
        with pytest.raises(lacis.ScheduleError, match=message):
            module(x, **options)
    assert module(x, block_mask=CAUSAL, kernel_options={"BLOCK_M": 64}).shape == x.shape
    s.restore()
    s = scheduled(module, block=(8, 8))
    with pytest.raises(lacis.ScheduleError, match=r"BlockMask has blocks of \(16, 16\), the schedule of \(8, 8\)"):
        s.build(x, block_mask=CAUSAL)
    s = lacis.create_schedule(Model(module), target="eager")
    s["attention"].set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="no rule; call sparsify.*or take set_format\\(lacis.Bsr\\)"):
        s.build(x)
