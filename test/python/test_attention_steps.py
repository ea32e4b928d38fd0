# SPDX-License-Identifier: Apache-2.0
"""Steps of attention's kernels: as an argument, as verbs of a module, and what its kernels show."""

import re
import types

import pytest
import torch
from test_attention_modules import made, sample
from test_chain_results import attend_lse
from test_chain_tiles import operands as tile_operands
from test_chain_tiles import pattern_of

import lacis
from lacis.attentions.fused_kernels import Kernels
from lacis.attentions.kernels_of import AttentionKernels
from lacis.attentions.layouts import Layout
from lacis.attentions.patterns import choose
from lacis.nn.watched import watching
from lacis.schedule.steps import Keep, Pipeline, Roll, Skew, Split, Unroll

RULE, RULE64 = lacis.Causal(block=16), lacis.Causal(block=64)
TARGET = "cuda:sm_90a"


def operands(depth=16):
    torch.manual_seed(0)
    return [torch.randn(1, 2, 64, depth).requires_grad_() for _ in range(3)]


@pytest.mark.long
@pytest.mark.parametrize("step", [Roll("j0"), Keep("s"), Unroll("j0", 2), Split("i0", 2)])
def test_steps_change_how_the_kernel_runs(step):
    """The numbers stay; gradients have their own kernels."""
    given = operands()
    with watching() as seen:
        found = lacis.attention(*given, RULE, steps=[step])
    assert step in seen[0]["forward"].steps
    expected = lacis.attention(*given, RULE, target="eager")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (found, expected))):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


REFUSED = {
    "unroll: no loop named 'q'": ([Unroll("q", 2)], "auto"),
    "loops here are 'b', 'h', 'i0'": ([Unroll("q", 2)], "auto"),
    "pipeline: loop 'j0' writes in its rounds, or waits for others, so that no load may pass them": (
        [Pipeline("j0", 5)], "auto"),
    "roll: no loop named 'q'; the statements become loop 'j0'": ([Roll("q")], "auto"),
    "keep: no statement named 'zz'; those with a result to keep are 'l', 'm', 's', 't', 'p', 'a'": (
        [Keep("zz")], "auto"),
    'pipeline: attention runs statement by statement here, where no kernel takes pipeline("j0", 5); leave steps out, '
    "or take what one kernel takes: on a GPU half types, heads of up to 256 (for gradients 384 of keys and values "
    "together) and stored blocks of multiples of 64, or of 8, 16 or 32; not target='eager' (docs/attention.md)": (
        [Pipeline("j0", 5)], "eager"),
    "attention: 'steps' is a list of records that speak of loops, as steps=[lacis.steps.Pipeline('j0', 5)], or such a "
    "list for each kernel": (["roll"], "auto"),
    "attention: no kernel is called 'grad_value'; 'steps' are of forward, grad_query, grad_key_value": (
        {"grad_value": []}, "auto"),
    "unroll: attention runs statement by statement here": ({"grad_query": [Unroll("j0", 2)]}, "eager"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_refusals_name_the_step_the_loop_and_the_way_out(words):
    steps, target = REFUSED[words]
    with pytest.raises(lacis.Error, match=re.escape(words)):
        lacis.attention(*operands(), RULE, steps=steps, target=target)


def scheduled(**options):
    s = lacis.create_schedule(made(), **options)
    s["attention"].sparsify(lacis.Causal).block(8, 8).set_format(lacis.Bsr)
    return s


@pytest.mark.long
def test_a_module_takes_verbs_of_loops_and_shows_its_kernels():
    """By role, with steps and text; those of gradients are compiled when first looked at."""
    s = scheduled()
    s["attention"].keep("s")
    with pytest.raises(lacis.ScheduleError, match="call build"):
        s["attention"].kernels
    s.build()
    with pytest.raises(
        lacis.ScheduleError, match="'attention': has no kernels before its first call; run the model once"
    ):
        s["attention"].kernels
    x = sample()
    found = s.model(x)
    kernels = s["attention"].kernels
    assert list(kernels) == ["forward", "grad_query", "grad_key_value"] and isinstance(kernels, AttentionKernels)
    assert Keep("s") in kernels["forward"].steps and "func.func @_attention" in kernels["forward"].text
    for role, name in (("grad_query", "_rows"), ("grad_key_value", "_columns")):
        assert Roll("j0" if role == "grad_query" else "i0") in kernels[role].steps
        assert f"func.func @{name}" in kernels[role].text
    with pytest.raises(lacis.ScheduleError, match="'head' has no verbs, so its attention is torch's own"):
        s["head"].kernels
    plain = scheduled(target="eager")
    torch.testing.assert_close(found, plain.build()(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(lacis.ScheduleError, match="'attention': its attention ran statement by statement"):
        plain["attention"].kernels


@pytest.mark.long
def test_steps_on_tiles_are_kept_or_refused_in_words():
    """Compiled for a GPU that is not here: the default's ring has fewer places."""
    given = [*tile_operands(128, 128, 64, 64), pattern_of()]
    kernel = attend_lse.compile(*given, steps=[Pipeline("j0", 5)], target=TARGET)
    assert [step for step in kernel.steps if step.mnemonic == "pipeline"] == [Pipeline("j0", 5)]
    assert "lacis.mma" in kernel.asm["tiles"]
    refused = {
        Pipeline("j0", 40): "tiles: rings of 663552 bytes and 0 bytes for stores are more than the 231144 bytes",
        Unroll("j0", 2): "loop 'j0' runs on tiles, and cannot with this step; leave it out, or take "
        "'keep' of a statement for a nest of each",
    }
    for step, words in refused.items():
        with pytest.raises(lacis.CompileError, match=re.escape(words)):
            attend_lse.compile(*given, steps=[step], target=TARGET)


@pytest.mark.long
def test_rounds_overlap_where_the_schedule_says_so():
    """The default takes the step, which prints and replays; without it each round completes its own sums."""
    given = [*tile_operands(128, 256, 64, 64), pattern_of(columns=256)]
    kernel = attend_lse.compile(*given, target=TARGET)
    serial = attend_lse.compile(*given, steps=[Skew("j0", 0)], target=TARGET)
    assert kernel.steps[-1] == Skew("j0") and serial.steps[-1] == Skew("j0", 0)
    assert 'skew("j0")' in str(kernel.steps) and 'skew("j0", 0)' in str(serial.steps)
    first = '"j0"<phase "first">'
    assert first in kernel.asm["tiles"] and first not in serial.asm["tiles"]
    for each in (kernel, serial):
        assert attend_lse.compile(*given, steps=each.steps, target=TARGET).asm["ptx"] == each.asm["ptx"]
    found = [attend_lse.compile(*given, steps=each.steps, target="cpu")(*given) for each in (kernel, serial)]
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


@pytest.mark.long
@pytest.mark.parametrize(
    "role, target, words",
    [
        ("forward", "cpu", "skew: the statements of loop 'j0' are of no tiles; 'tensorize' comes first"),
        ("rows", TARGET, "skew: no sum of loop 'j0' can wait for the next round"),
    ],
)
def test_rounds_of_which_nothing_can_wait_are_refused(role, target, words):
    """The gradient of queries multiplies keys twice in a round."""
    kernels, given, pattern = (
        Kernels("h", "h", 0.25, ("read", 0), ()),
        tile_operands(128, 128, 64, 64),
        pattern_of().batched((2,), "h"),
    )
    numbers = [torch.zeros(2, 128), torch.zeros(2, 128, 64).bfloat16(), torch.zeros(2, 128)]
    chain = kernels.attention if role == "forward" else kernels.gradient(role, (True, ()))
    given = [*given, *(numbers if role != "forward" else []), pattern]
    with pytest.raises(lacis.CompileError, match=re.escape(words)):
        chain.compile(*given, steps=[Skew("j0")], target=target)


# By the operand whose gradient has the kernel: its role, and the loop over the stored blocks of a row or a column.
GRADIENTS = {"query": ("grad_query", "j0"), "key": ("grad_key_value", "i0")}


@pytest.mark.long
@pytest.mark.parametrize("operand", GRADIENTS)
def test_kernels_of_gradients_take_steps_of_their_own(operand):
    """The numbers stay; the kernel of that role alone has the step."""
    role, loop = GRADIENTS[operand]
    given = operands()
    with watching() as seen:
        found = lacis.attention(*given, RULE, steps={role: [Unroll(loop, 2)]})
    assert [each for each in seen[0] if Unroll(loop, 2) in seen[0][each].steps] == [role]
    expected = lacis.attention(*(x.double() for x in given), RULE, target="eager")
    for one, other in zip(*(torch.autograd.grad(x.square().sum(), given) for x in (found, expected))):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    wrong = lacis.attention(*given, RULE, steps={role: [Unroll("q", 2)]}).sum()
    with pytest.raises(lacis.CompileError, match="unroll: no loop named 'q'"):
        wrong.backward()


@pytest.mark.long
@pytest.mark.parametrize("operand", GRADIENTS)
def test_kernels_of_gradients_take_steps_on_tiles(operand):
    """Compiled for a GPU that is not here: the default's ring has other places."""
    role, loop = GRADIENTS[operand]
    layout = Layout(choose(RULE64, *(torch.empty(1, 2, 128, 64),) * 2), *(torch.empty(1, 2, 128, 64),) * 2)
    given = [torch.empty(1, 2, 128, 64, dtype=torch.bfloat16) for _ in range(3)]
    kernels = Kernels("bh", "bh", 0.125, ("read", 0), (), turns=False)
    steps = {role: (Pipeline(loop, 3),)}
    kernel = AttentionKernels(types.SimpleNamespace(target=TARGET), kernels, layout, given, steps)[role]
    assert [step for step in kernel.steps if step.mnemonic == "pipeline"] == [Pipeline(loop, 3)]
    assert "lacis.mma" in kernel.asm["tiles"]


def test_the_operands_of_a_module_have_handles_for_the_kernels_of_their_gradients(tmp_path):
    """What is recorded prints, saves and replays."""
    s = scheduled()
    assert repr(s["attention:query"].grad.unroll("j0", 2)) == 's["attention:query"].grad.unroll("j0", 2)'
    s["attention:key"].grad.keep("s")
    assert 'attention:query.grad.unroll("j0", 2)' in str(s) and 'attention:key.grad.keep("s")' in str(s)
    s.save(tmp_path / "schedule.json")
    again = lacis.load_schedule(tmp_path / "schedule.json", made())
    assert again["attention:query"].grad.steps == (Unroll("j0", 2),)
    assert again.modules[0].kernel_steps == {"grad_query": (Unroll("j0", 2),), "grad_key_value": (Keep("s"),)}
    refused = {
        "'attention:value': one kernel makes the gradients of keys and values; it is 'attention:key'": (
            lambda: s["attention:value"]
        ),
        "unroll: 'attention:query' is an operand of attention, which takes no verbs": (
            lambda: s["attention:query"].unroll("j0")
        ),
        "block: 'attention:query.grad' has the entries of its module's pattern, and takes verbs of loops": (
            lambda: s["attention:query"].grad.block(8, 8)
        ),
    }
    for words, record in refused.items():
        with pytest.raises(lacis.ScheduleError, match=re.escape(words)):
            record()


@pytest.mark.long
def test_a_module_shows_the_kernels_of_its_gradients_with_their_steps():
    s = scheduled()
    s["attention:query"].grad.unroll("j0", 2)
    s["attention:key"].grad.keep("s")
    model, plain = s.build(), scheduled(target="eager").build()
    x, y = sample().requires_grad_(), sample().requires_grad_()
    model(x).square().sum().backward()
    plain(y).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-3, atol=1e-4)
    assert Unroll("j0", 2) in s["attention:query"].grad.kernel.steps
    assert (
        Keep("s") in s["attention:key"].grad.kernel.steps and Keep("s") not in s["attention"].kernels["forward"].steps
    )
