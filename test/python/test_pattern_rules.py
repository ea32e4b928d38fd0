# SPDX-License-Identifier: Apache-2.0
"""Rules of attention: what each answers over blocks, and that attention sees the entries that it names."""

import random

import pytest
import torch
from dense_attention import agree, dense, drawn, grid, tensors

import lacis
from lacis.attentions.patterns import choose


def fixed(count, local=4, wide=1, uni=False, horizontal=False, patterns=1, head=0):
    """DeepSpeed's FixedSparsityConfig, block by block."""
    layout = torch.zeros(count, count, dtype=torch.bool)
    for i in range(0, count, local):
        end = min(i + local, count)
        for row in range(i, end):
            for column in range(i, row + 1 if uni else end):
                layout[row, column] = True
    first = local - (1 + head % patterns) * wide
    end = count - count % local
    places = list(range(first, end, local))
    if end < count:
        places.append(min(end + first, count - wide))
    for i in places:
        layout[i if uni else 0 :, i : i + wide] = True
        if horizontal:
            layout[i : i + wide, :] = True
    return layout


def variable(count, windows=(4,), places=(0,), ends=None, uni=False, horizontal=False, number=0, seed=0):
    """DeepSpeed's VariableSparsityConfig."""
    layout, drawn = torch.zeros(count, count, dtype=torch.bool), random.Random(seed)
    for row in range(count):
        layout[row, drawn.sample(range(count), number)] = True
    start = end = 0
    for size in windows:
        end = min(end + size, count)
        for row in range(start, end):
            for column in range(start, row + 1 if uni else end):
                layout[row, column] = True
        start += size
    for i in range(start, count, size):
        end = min(i + size, count)
        for row in range(i, end):
            for column in range(i, row + 1 if uni else end):
                layout[row, column] = True
    for n, place in enumerate(places):
        if place < count:
            last = place + 1 if ends is None else min(ends[n], count)
            if horizontal:
                layout[place:last, :] = True
            layout[place if uni else 0 :, place:last] = True
    return layout


def big_bird(count, number=1, window=3, wide=1, uni=False, seed=0):
    """DeepSpeed's BigBirdSparsityConfig."""
    layout, drawn = torch.zeros(count, count, dtype=torch.bool), random.Random(seed)
    for row in range(count):
        among = range(row + 1) if uni else range(count)
        layout[row, drawn.sample(among, min(number, len(among)))] = True
        layout[row, max(0, row - window // 2) : min(row + window // 2 + 1, count)] = True
    layout[0:wide, :] = True
    layout[:, 0:wide] = True
    return layout.tril() if uni else layout


def longformer(count, window=3, places=(0,), ends=None, uni=False):
    """DeepSpeed's BSLongformerSparsityConfig."""
    layout = torch.zeros(count, count, dtype=torch.bool)
    for row in range(count):
        layout[row, max(0, row - window // 2) : min(row + window // 2 + 1, count)] = True
    for n, place in enumerate(places):
        if place < count:
            last = place + 1 if ends is None else min(ends[n], count)
            layout[place:last, :] = True
            layout[:, place:last] = True
    return layout.tril() if uni else layout


UNI = {"attention": "unidirectional"}
CASES = [
    (lacis.Fixed(), fixed, {}),
    (lacis.Fixed(num_global_blocks=2, horizontal_global_attention=True), fixed, {"wide": 2, "horizontal": True}),
    (lacis.Fixed(num_local_blocks=3, **UNI), fixed, {"local": 3, "uni": True}),
    (lacis.Variable(), variable, {}),
    (
        lacis.Variable(local_window_blocks=[1, 3, 2], global_block_indices=[2, 40], num_random_blocks=2, seed=4),
        *(variable, {"windows": (1, 3, 2), "places": (2, 40), "number": 2, "seed": 4}),
    ),
    (
        lacis.Variable(
            global_block_indices=[1],
            global_block_end_indices=[3],
            num_random_blocks=1,
            horizontal_global_attention=True,
        ),
        *(variable, {"places": (1,), "ends": (3,), "number": 1, "horizontal": True}),
    ),
    (lacis.Variable(local_window_blocks=[2, 3], **UNI), variable, {"windows": (2, 3), "uni": True}),
    (lacis.BigBird(), big_bird, {}),
    (lacis.BigBird(num_random_blocks=2, num_sliding_window_blocks=5, num_global_blocks=2, seed=3), big_bird,
     {"number": 2, "window": 5, "wide": 2, "seed": 3}),
    (lacis.BigBird(num_random_blocks=2, **UNI), big_bird, {"number": 2, "uni": True}),
    (lacis.Longformer(), longformer, {}),
    (lacis.Longformer(num_sliding_window_blocks=5, global_block_indices=[1, 5], global_block_end_indices=[2, 7]),
     longformer, {"window": 5, "places": (1, 5), "ends": (2, 7)}),
    (lacis.Longformer(**UNI), longformer, {"uni": True}),
]  # fmt: skip


@pytest.mark.parametrize("rule, reference, keywords", CASES, ids=lambda each: type(each).__name__)
def test_layouts_of_deepspeed(rule, reference, keywords):
    """At lengths of 176, 512 and 2048 in blocks of 16."""
    for length in (176, 512, 2048):
        layout = rule.layout(4, length, length, 16)
        assert layout.dtype == torch.bool and layout.shape[0] == 1
        assert torch.equal(layout[0], reference(length // 16, **keywords)), length
    square = rule.layout(4, 176, 176, 16)
    assert torch.equal(rule.layout(4, 90, 176, 16), square[:, :6])
    assert torch.equal(rule.layout(4, 176, 90, 16), square[:, :, :6])


def test_layouts_that_heads_have_of_their_own():
    rule = lacis.Fixed(num_different_global_patterns=3, different_layout_per_head=True)
    layout = rule.layout(4, 176, 176, 16)
    assert torch.equal(layout, torch.stack([fixed(11, patterns=3, head=head) for head in range(4)]))
    for rule in (lacis.BigBird(different_layout_per_head=True), lacis.Variable(num_random_blocks=1)):
        rule.different_layout_per_head = True
        layout = rule.layout(4, 176, 176, 16)
        assert layout.shape == (4, 11, 11) and not torch.equal(layout[0], layout[1])
        assert torch.equal(layout, rule.layout(4, 176, 176, 16))


def entries(rule, q, k):
    """What the rule's mask says of all entries."""
    return rule.mask(*(x[0] for x in grid(q, k, batch=1))).expand(1, q, k)


RANGED = [
    lacis.Causal(),
    lacis.Local(3),
    lacis.Local(0),
    lacis.Local(5, causal=True),
    lacis.Dilated(2, 3),
    lacis.Dilated(1, 7, causal=True),
    lacis.Documents([4, 0, 1, 0, 6]),
    lacis.Documents([4, 0, 1, 9], causal=True),
    lacis.Documents([]),
]


@pytest.mark.parametrize("rule", RANGED, ids=repr)
def test_layouts_hold_every_entry_and_no_block_for_nothing(rule):
    for q, k in [(13, 13), (7, 15), (15, 7), (1, 9)]:
        mask = entries(rule, q, k)
        for block in (1, 2, 4, (2, 5)):
            rows, columns = rule.sides(block)
            padded = torch.nn.functional.pad(mask, (0, -k % columns, 0, -q % rows))
            held = padded.reshape(1, -(-q // rows), rows, -(-k // columns), columns).any(4).any(2)
            layout = rule.layout(4, q, k, block)
            assert bool((layout | ~held).all()), "an entry is missing"
            if not getattr(rule, "causal", False):
                assert torch.equal(layout, held)


@pytest.mark.parametrize(
    "rule",
    [
        lacis.Causal(block=4),
        lacis.Local(3, block=4),
        lacis.Dilated(2, 3, block=4),
        lacis.Documents([4, 0, 1, 4], block=4),
    ],
    ids=repr,
)
def test_attention_sees_the_entries(rule):
    operands = tensors()
    found = lacis.attention(*operands, rule, return_lse=True, target="eager")
    agree(found, dense(*operands, entries(rule, 9, 11)))


def test_attention_by_rules_of_blocks():
    for rule in (
        lacis.BigBird(different_layout_per_head=True, block=4),
        lacis.Fixed(num_local_blocks=2, block=4, **UNI),
        lacis.Longformer(block=4, **UNI),
        lacis.Variable(local_window_blocks=[1], block=4, **UNI),
    ):
        operands = tensors(q=18, k=22)
        kept = rule.layout(4, 18, 22, 4).repeat_interleave(4, 1).repeat_interleave(4, 2)[:, :18, :22]
        if rule.attention == "unidirectional":
            kept = kept & entries(lacis.Causal(), 18, 22)
        agree(lacis.attention(*operands, rule, return_lse=True, target="eager"), dense(*operands, kept))


def test_given_masks_and_layouts():
    operands, kept = tensors(q=18, k=22), drawn(4, 18, 22)
    for mask in (kept, kept[0]):
        rule = lacis.Given(mask)
        rule.block = 4
        assert isinstance(rule, lacis.PatternRule)
        agree(lacis.attention(*operands, rule, return_lse=True, target="eager"), dense(*operands, mask))
    blocks = drawn(5, 6)
    rule = lacis.Given(blocks)
    rule.block = 4
    wide = blocks.repeat_interleave(4, 0).repeat_interleave(4, 1)[:18, :22]
    agree(lacis.attention(*operands, rule, return_lse=True, target="eager"), dense(*operands, wide))
    with pytest.raises(lacis.DataError, match="neither the entries of 18 x 22 nor the blocks"):
        lacis.Given(drawn(3, 3)).layout(4, 18, 22, 4)


def test_rules_of_ones_own_and_patterns_that_are_kept():
    made = []

    class Diagonal(lacis.PatternRule):
        block = 4

        def layout(self, heads, q, k, block):
            made.append((q, k))
            return torch.eye(*self.grid(q, k, block), dtype=torch.bool)[None]

    operands, rule = tensors(q=18, k=22), Diagonal()
    kept = torch.eye(5, 6, dtype=torch.bool).repeat_interleave(4, 0).repeat_interleave(4, 1)[:18, :22]
    for _ in range(2):
        agree(lacis.attention(*operands, rule, return_lse=True, target="eager"), dense(*operands, kept))
    lacis.attention(*(x[:, :, :8] for x in operands), Diagonal, target="eager")
    assert made == [(18, 22), (8, 8)]

    class Wrong(lacis.PatternRule):
        def layout(self, heads, q, k, block):
            return torch.ones(1, 3, 3)

    with pytest.raises(lacis.DataError, match="Wrong must be bool"):
        lacis.attention(*operands, Wrong(), target="eager")


def test_rules_that_say_the_same_share_their_patterns():
    """So a rule that is made at each call costs no more than one that is kept."""
    q, k = torch.zeros(1, 2, 32, 4), torch.zeros(1, 2, 32, 4)
    of = lambda rule: choose(rule, q, k).pattern
    first = lacis.Local(4, block=8)
    assert of(lacis.Local(4, block=8)) is of(first) is of(lacis.Local(4, block=8))
    assert of(lacis.Local(12, block=8)) is not of(first)
    first.window = 12
    assert of(lacis.Local(4, block=8)) is not of(first) is of(lacis.Local(12, block=8))

    class Drawn(lacis.Local):
        def layout(self, heads, q, k, block):
            return torch.ones(1, *self.grid(q, k, block), dtype=torch.bool)

    assert not Drawn.pure and of(Drawn(4, block=8)) is not of(Drawn(4, block=8))
    assert all(isinstance(rule, lacis.PatternRule) and rule.pure for rule in RULES_OF_FIELDS)


RULES_OF_FIELDS = [lacis.Causal(), lacis.Local(4), lacis.Fixed(), lacis.Variable(), lacis.BigBird(), lacis.Longformer()]
RULES_OF_FIELDS += [lacis.Documents([3, 5]), lacis.Dilated(4, 2)]

REFUSED = [
    (lambda: lacis.Fixed(num_local_blocks=3, num_global_blocks=2), "must divide num_local_blocks"),
    (lambda: lacis.Fixed(num_different_global_patterns=2), "different_layout_per_head=True"),
    (lambda: lacis.Fixed(attention="both"), "'bidirectional' or 'unidirectional'"),
    (lambda: lacis.Fixed(horizontal_global_attention=True, **UNI), "needs 'bidirectional'"),
    (lambda: lacis.Variable(local_window_blocks=[]), "one is needed"),
    (lambda: lacis.Variable(global_block_indices=[3], global_block_end_indices=[3]), "an end behind each"),
    (lambda: lacis.BigBird(num_random_blocks=-1), "num_random_blocks must be a whole number"),
    (lambda: lacis.Local(1.5), "window must be a whole number"),
    (lambda: lacis.Documents([-1]), "0 or more"),
    (lambda: lacis.TopKBlocks(0), "k must be a positive whole number"),
    (lambda: lacis.Similarity(2), "threshold must be a number from -1 to 1, as cosines are, not 2"),
    (lambda: lacis.Similarity(k=0), "k must be a positive whole number"),
    (lambda: lacis.Causal().layout(1, 4, 4, (2, 0)), "a block is a positive number or two"),
]


@pytest.mark.parametrize("make, message", REFUSED)
def test_refusals(make, message):
    with pytest.raises(lacis.DataError, match=message):
        make()
