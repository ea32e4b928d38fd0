# SPDX-License-Identifier: Apache-2.0
"""The forms in which levels own the output, on a CPU: each beside the companion of the same pattern, and CSR."""

from __future__ import annotations

import lacis
import torch
from lacis import steps

from .measure import Case, measure

TITLE = "Owner forms on the CPU, float32"
ROWS = 1_000_000


def listed(rows: int, columns: int, share: float, entries: int) -> torch.Tensor:
    """A matrix of which a share of the rows has that many entries each."""
    own = torch.nonzero(torch.rand(rows) < share)[:, 0].repeat_interleave(entries)
    index = torch.stack([own, torch.randint(0, columns, (own.numel(),))])
    return torch.sparse_coo_tensor(index, torch.randn(own.numel()), (rows, columns), check_invariants=True).coalesce()


def case(name: str, matrix, format, form: str, expression: str, x: torch.Tensor, must: str = "", asked=None) -> Case:
    contenders = {}
    for label, chosen, asked in (
        ("lacis", format, [steps.Own("0", form)] if asked is None else asked),
        ("companion", format, [steps.Own("0", "companion")]),
        ("Csr", lacis.Csr, []),
    ):
        packed = lacis.pack(matrix, chosen)
        kernel = lacis.compile(expression, packed, x, steps=asked)
        contenders[label] = lambda kernel=kernel, packed=packed: kernel(packed, x)
    expected = contenders["Csr"]()
    for contender in contenders.values():
        torch.testing.assert_close(contender(), expected, rtol=1e-3, atol=1e-3)
    return Case(name, measure(contenders), must)


NEST = (
    "(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, "
    "i mod 16 : compressed<unique=false>, j mod 16 : singleton)"
)


def blocks(rows: int, columns: int, share: float) -> torch.Tensor:
    """A matrix of which a share of the blocks of 16×16 has a tenth of its places."""
    kept = (torch.rand(rows // 16, columns // 16) < share).repeat_interleave(16, 0).repeat_interleave(16, 1)
    return torch.randn(rows, columns) * kept * (torch.rand(rows, columns) < 0.1)


def band(rows: int, offsets) -> torch.Tensor:
    """A square matrix whose diagonals at these offsets are full."""
    row = torch.arange(rows)
    at = [(row[(row + d >= 0) & (row + d < rows)], d) for d in offsets]
    index = torch.cat([torch.stack([i, i + d]) for i, d in at], 1)
    return torch.sparse_coo_tensor(index, torch.randn(index.shape[1]), (rows, rows), check_invariants=True).coalesce()


def diagonals() -> list[Case]:
    x = torch.randn(ROWS)
    return [
        case(
            f"locate: Dia, {len(offsets)} diagonals of {ROWS} rows, 1 column",
            band(ROWS, offsets),
            lacis.Dia,
            "companion",
            "ij,j->i",
            x,
            "≥ 2 × Csr",
            asked=[],
        )
        for offsets in ((-1000, -1, 0, 1, 1000), range(-8, 9))
    ]


def run() -> list[Case]:
    with torch.inference_mode():
        return lists() + pushes() + columns() + shares() + diagonals() + codes()


def pushes() -> list[Case]:
    return [
        case(
            f"push: {rows}×{columns}, {share:.0%} of blocks of 16×16, a tenth inside, {tokens} columns",
            blocks(rows, columns, share),
            lacis.Format.parse(NEST),
            "push",
            "ij,jk->ik",
            torch.randn(columns, tokens),
            "≥ 1.2 × companion",
        )
        for rows, columns, share, tokens in ((1024, 1024, 1.0, 32), (2048, 16384, 0.1, 32), (1024, 65536, 0.1, 32))
    ]


def columns() -> list[Case]:
    return [
        case(
            f"push: Csc, {entries} entries in {rows} rows and {size} columns, a vector",
            entries_of(rows, size, entries, 1.0),
            lacis.Csc,
            "push",
            "ij,j->i",
            torch.randn(size),
            "≥ 1 × companion" if entries * 2 <= rows else "",
        )
        for rows, size, entries in ((ROWS, 50_000, 100_000), (ROWS, 1000, 100_000), (100_000, 50_000, 800_000))
    ]


def lists() -> list[Case]:
    return [
        case(
            f"list: Dcsr, 5 % of {ROWS // columns} rows, {entries} entries each, {columns} columns",
            listed(ROWS // columns, 4096, 0.05, entries),
            lacis.Dcsr,
            "list",
            "ij,j->i" if columns == 1 else "ij,jk->ik",
            torch.randn(4096) if columns == 1 else torch.randn(4096, columns),
            "≥ 5 × Csr" if (columns, entries) == (1, 2) else "≥ 1 × companion",
        )
        for columns, entries in ((1, 2), (1, 8), (8, 8), (32, 8))
    ]


def entries_of(rows: int, columns: int, entries: int, power: float) -> torch.Tensor:
    """A matrix of so many entries; the first rows have more of them the larger `power` is, 1 for equal rows."""
    index = torch.stack([(rows * torch.rand(entries) ** power).long(), torch.randint(0, columns, (entries,))])
    return torch.sparse_coo_tensor(index, torch.randn(entries), (rows, columns), check_invariants=True).coalesce()


def shares() -> list[Case]:
    return [
        case(
            f"share: Coo, {entries} entries in {rows} rows{', uneven' if power > 1 else ''}, {columns} columns",
            entries_of(rows, 50_000, entries, power),
            lacis.Coo,
            "share",
            "ij,j->i" if columns == 1 else "ij,jk->ik",
            torch.randn(50_000) if columns == 1 else torch.randn(50_000, columns),
            "≥ 1 × companion" if entries * 2 <= rows else "",
        )
        for rows, entries, power in ((ROWS, 100_000, 1.0), (100_000, 800_000, 1.0), (50_000, 800_000, 4.0))
        for columns in (1, 32)
    ]


def codes() -> list[Case]:
    """2:4 as codes of its groups, beside the same entries with their columns."""
    shapes = ((768, 768, 16), (768, 768, 32), (768, 768, 128), (3072, 768, 128), (768, 3072, 128), (4096, 4096, 16))
    cases = []
    for rows, columns, tokens in shapes:
        weight, x = torch.randn(rows, columns), torch.randn(tokens, columns)
        pruned = weight * lacis.NM(2, 4)(weight)
        contenders = {}
        for label, format in (("lacis", lacis.TwoFour), ("Ell", lacis.Ell(columns // 2))):
            packed = lacis.pack(pruned, format)
            kernel = lacis.compile("ij,bj->bi", packed, x)
            torch.testing.assert_close(kernel(packed, x), x @ pruned.T, rtol=1e-3, atol=1e-3)
            contenders[label] = lambda kernel=kernel, packed=packed, x=x: kernel(packed, x)
        times = measure({**contenders, "dense": lambda x=x, pruned=pruned: x @ pruned.T})
        cases.append(Case(f"locate: TwoFour, {rows}×{columns}, {tokens} tokens", times, "≥ 1 × Ell"))
    return cases
