# SPDX-License-Identifier: Apache-2.0
"""Products of graphs with features, and products sampled at their edges, beside cuSPARSE through torch."""

from __future__ import annotations

import lacis
import torch

from .measure import Case, measure

TITLE = "Graphs on the GPU, 200,000 nodes, 4 million edges, float32"

NODES, EDGES = 200_000, 4_000_000


def run() -> list[Case]:
    if not torch.cuda.is_available():
        return []
    return [case for name, make in GRAPHS.items() for case in cases(name, make())]


def power_law(ordered: bool) -> torch.Tensor:
    """Out-degrees by a power law whose longest row is about a 400th of all entries."""
    weight = torch.arange(1, NODES + 1, device="cuda", dtype=torch.float64) ** -0.6
    return rows_by(weight if ordered else weight[torch.randperm(NODES, device="cuda")])


def rows_by(weight: torch.Tensor) -> torch.Tensor:
    """Rows drawn by weight, columns uniform; edges that are drawn twice count once."""
    bound = weight.cumsum(0)
    rows = torch.searchsorted(bound / bound[-1], torch.rand(EDGES, device="cuda", dtype=torch.float64))
    columns = torch.randint(NODES, (EDGES,), device="cuda")
    return torch.unique(rows.clamp(max=NODES - 1) * NODES + columns)


def one_long_row() -> torch.Tensor:
    """Uniform rows but one, which holds 2 % of all entries."""
    weight = torch.ones(NODES, device="cuda", dtype=torch.float64)
    weight[NODES // 3] = NODES * 0.0204
    return rows_by(weight)


GRAPHS = {
    "power law, ordered": lambda: power_law(True),
    "power law, shuffled": lambda: power_law(False),
    "uniform": lambda: rows_by(torch.ones(NODES, device="cuda", dtype=torch.float64)),
    "one row of 2 %": one_long_row,
}


def cases(name: str, edges: torch.Tensor) -> list[Case]:
    """Products with a vector and one feature; SpMM, SDDMM and gradients of values at 32, 128 and 256 features."""
    index = torch.stack([edges // NODES, edges % NODES])
    values = torch.randn(edges.numel(), device="cuda")
    csr = torch.sparse_coo_tensor(index, values, (NODES, NODES), is_coalesced=True).to_sparse_csr()
    packed = lacis.pack(csr, lacis.Csr)
    x = torch.randn(NODES, device="cuda")
    found = [product(f"product with a vector: {name}", "ij,j->i", packed, csr, x, "1.0× cuSPARSE")]
    found.append(classes(name, "ij,j->i", csr, x))
    found.append(classes(name, "ij,jk->ik", csr, torch.randn(NODES, 32, device="cuda")))
    found.append(product(f"product: {name}, 1", "ij,jk->ik", packed, csr, x[:, None], "1.0× cuSPARSE"))
    for features in (32, 128, 256):
        a, b = (torch.randn(NODES, features, device="cuda") for _ in range(2))
        found.append(product(f"product: {name}, {features}", "ij,jk->ik", packed, csr, b, "1.0× cuSPARSE"))
        found.append(sddmm(f"{name}, {features}", packed, csr, a, b))
    return found


def product(name: str, statement: str, packed, csr, x, must: str = "") -> Case:
    kernel = lacis.compile(statement, packed, x)
    torch.testing.assert_close(kernel(packed, x), csr @ x, rtol=1e-3, atol=1e-2)
    with torch.inference_mode():
        contenders = {"lacis": lambda: kernel(packed, x), "cuSPARSE": lambda: csr @ x}
        times = measure(contenders, "cuda", rounds=20, flush=True)
    return Case(name, times, must)


# Each row in one part; of a vector also the layout of slices.
CLASSES = {
    "short and long": lambda: lacis.decompose(short=(lacis.Csr, lacis.nnz("i") < 256), long=lacis.Dcsr),
    "three classes": lambda: lacis.decompose(
        short=(lacis.Csr, lacis.nnz("i") < 32), some=(lacis.Dcsr, lacis.nnz("i") < 256), long=lacis.Dcsr
    ),
    "Hyb(1, 5)": lambda: lacis.Hyb(1, 5),
}


def classes(name: str, statement: str, csr, x) -> Case:
    """Row classes beside the default of `Csr`; the best of them is compared."""
    features = f", {x.shape[1]} features" if x.ndim == 2 else " and a vector"
    formats = {"Csr": lambda: lacis.Csr, **CLASSES}
    if x.ndim == 1:
        formats["Sell(32, 128)"] = lambda: lacis.Sell(32, 128)
    contenders, want = {}, csr @ x
    with torch.inference_mode():
        for label, make in formats.items():
            packed = lacis.pack(csr, make())
            kernel = lacis.compile(statement, packed, x)
            torch.testing.assert_close(kernel(packed, x), want, rtol=1e-3, atol=1e-2)
            contenders[label] = lambda kernel=kernel, packed=packed: kernel(packed, x)
        contenders["cuSPARSE"] = lambda: csr @ x
        found = measure(contenders, "cuda", rounds=20, flush=True)
    best = min(found.keys() - {"Csr", "cuSPARSE"}, key=found.get)
    must = "1.2× cuSPARSE" if x.ndim == 1 or x.shape[1] == 1 else "1.15× Csr on power laws, 0.95× on all"
    return Case(f"row classes: {name}{features}: {best}", {"lacis": found[best], **found}, must)


def sddmm(name: str, packed, csr, a, b) -> Case:
    """The sampled product; the gradient of the values of `packed @ b` is the same sum. By rows nothing lists these."""
    kernel = lacis.compile("ij,ik,jk->ij", packed.pattern, a, b)
    by_rows = lacis.compile("ij,ik,jk->ij", packed.pattern, a, b, steps=[lacis.steps.Walk("0", "i")])
    of_product = lacis.compile("ij,jk->ik", packed, b).family.gradient("values").kernel
    gradient = lambda: of_product.run([b, a], packed, packed.values.shape)
    ones = torch.sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), torch.zeros_like(csr.values()), csr.shape)
    sampled = lambda: torch.sparse.sampled_addmm(ones, a, b.T, beta=0.0)
    torch.testing.assert_close(kernel(packed.pattern, a, b).values, sampled().values(), rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(gradient(), sampled().values(), rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(by_rows(packed.pattern, a, b).values, sampled().values(), rtol=1e-3, atol=1e-2)
    with torch.inference_mode():
        own = {
            "lacis": lambda: kernel(packed.pattern, a, b),
            "by rows": lambda: by_rows(packed.pattern, a, b),
            "gradient of the values": gradient,
        }
        times = measure({**own, "cuSPARSE": sampled}, "cuda", rounds=20, flush=True)
    return Case(f"sampled: {name}", times, "1.0× cuSPARSE, the gradient no slower")
