# SPDX-License-Identifier: Apache-2.0
"""Keys and values in pages of a cache: the numbers of those gathered by hand, in float64."""

import pytest
import torch
from dense_attention import B, D, E, H, S, agree, dense, drawn, tensors
from strategies import mostly_long

import lacis

PAGE, PAGES = 4, 9
TABLE = torch.tensor([[7, 2, 0], [5, 7, -1]])  # a page of both, out of order, and none
LENGTH = PAGE * TABLE.shape[1]
THERE = (TABLE >= 0).repeat_interleave(PAGE, 1)


def pages(heads=2, dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    made = [torch.randn(PAGES, PAGE, heads, width, generator=generator, dtype=torch.float64) for width in (D, E)]
    return [x.to(dtype).requires_grad_() for x in made]


def by_hand(x):
    rows = [torch.cat([x[page] if page >= 0 else torch.zeros_like(x[0]) for page in row.tolist()]) for row in TABLE]
    return torch.stack(rows).transpose(1, 2)


WAYS = {"eager": ("eager", lacis.Csr), "cpu": ("auto", lacis.Bsr(4, 4)), "coo": ("cpu", lacis.Coo)}


@pytest.mark.parametrize("way", mostly_long(WAYS, "eager"))
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_pages_are_the_sequences_of_the_table(way, dtype):
    """Forward and backward; functions and masks speak of places in the sequence."""
    target, format = WAYS[way]
    kept, (q, *_), (k, v) = drawn(S, LENGTH), tensors(), pages()
    q.requires_grad_()
    pattern = lacis.Pattern.from_mask(kept, format)
    near = lambda b, h, i, j: j <= i + 3
    found = lacis.attention(q, k, v, pattern, mask=near, page_table=TABLE.to(dtype), return_lse=True, target=target)
    places = torch.arange(LENGTH) <= torch.arange(S)[:, None] + 3
    expected = dense(q, by_hand(k), by_hand(v), kept & places & THERE[:, None, None])
    agree(found, expected)
    gradients = [torch.autograd.grad(output.square().sum(), (q, k, v)) for output, _ in (found, expected)]
    agree(*gradients)


def test_what_is_not_kept_is_not_read():
    """The end of a last page, and pages of others, may hold anything."""
    kept, (q, *_), (k, v) = drawn(S, LENGTH), tensors(), pages()
    lengths = torch.tensor([10, 6])
    padding = torch.arange(LENGTH) < lengths[:, None]
    expected = dense(q, by_hand(k), by_hand(v), kept & padding[:, None, None])
    with torch.no_grad():
        for x in (k, v):
            x[0, 2:] = x[1] = x[8] = torch.nan
    q.requires_grad_()
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
    found = lacis.attention(q, k, v, pattern, page_table=TABLE, key_padding=padding, return_lse=True, target="eager")
    agree(found, expected)
    assert all(bool(x.isfinite().all()) for x in torch.autograd.grad(found[0].sum(), (q, k, v)))
    added = torch.where(padding, 0.0, -10000.0).double()
    k, v = pages()
    found = lacis.attention(q, k, v, pattern, page_table=TABLE, key_padding=added, return_lse=True, target="eager")
    change = lambda s: s + added[:, None, None]
    agree(found, dense(q, by_hand(k), by_hand(v), kept & THERE[:, None, None], change=change))


def test_a_query_of_each_sequence():
    """Decoding: one query, all keys of its pages."""
    (q, *_), (k, v) = tensors(q=1), pages()
    found = lacis.attention(
        q, k, v, torch.ones(1, 1, 3, dtype=torch.bool), page_table=TABLE, return_lse=True, target="eager"
    )
    agree(found, dense(q, by_hand(k), by_hand(v), THERE[:, None, None]))


def test_pages_in_a_graph():
    kept, (q, *_), (k, v) = drawn(S, LENGTH), tensors(), pages()
    pattern = lacis.Pattern.from_mask(kept, lacis.Csr)
    attend = lambda q, k, v, table: lacis.attention(q, k, v, pattern, page_table=table, target="eager")
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(q, k, v, TABLE), attend(q, k, v, TABLE))


def test_refusals():
    (q, *_), (k, v) = tensors(), pages()
    pattern = lacis.Pattern.from_mask(drawn(S, LENGTH), lacis.Csr)
    attend = lambda k=k, v=v, table=TABLE, **more: lacis.attention(q, k, v, pattern, page_table=table, **more)
    for given, message in [
        ({"table": TABLE.float()}, "an int32 or int64 tensor"),
        ({"table": 1}, "an int32 or int64 tensor"),
        ({"table": TABLE[:1]}, f"of {B} batches on cpu is needed"),
        ({"table": TABLE + PAGES}, f"names pages from 0 to {PAGES - 1}, and -1"),
        ({"k": k[0]}, r"k is a tensor of pages \[pages, page, Hk, D\]"),
        ({"v": v[:, :2]}, "pages of k .* do not fit"),
        ({"cu_seqlens": torch.tensor([0, S])}, "exclude each other"),
        ({"key_padding": torch.ones(B, 5)}, r"a tensor \[B, n \* page\] = \[2, 12\]"),
        ({"table": TABLE[:, :2]}, r"the pattern is \[9, 12\]"),
    ]:
        with pytest.raises(lacis.DataError, match=message):
            attend(**given)
    with pytest.raises(lacis.DataError, match="q has 4 heads, k 3"):
        attend(*pages(3))
    assert attend().shape == (B, H, S, E)
