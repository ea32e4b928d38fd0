# SPDX-License-Identifier: Apache-2.0
"""What a split leaves past the end of an axis is neither read nor written, whatever divides what."""

from __future__ import annotations

import itertools

import pytest
import strategies
import torch

import lacis
from lacis import steps

TOKENS = 5  # of no class: the loops under test are those of the other letters


def numbers(*shape) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def compare(expression: str, w, format, dense, chosen) -> None:
    """A kernel under the steps against float64 dense; the output has the pattern of `w` where it has its letters."""
    packed, is_sampled = lacis.pack(w, format), expression.endswith("->ij")
    y = lacis.einsum(expression, packed.pattern if is_sampled else packed, *dense, steps=chosen).to_dense()
    first = w != 0 if is_sampled else w
    expected = torch.einsum(expression, first.double(), *(x.double() for x in dense))
    shapes = [tuple(w.shape), *(tuple(x.shape) for x in dense)]
    torch.testing.assert_close(
        y.double(), expected, rtol=1e-4, atol=1e-4, msg=lambda m: f"{expression} {shapes} {chosen}: {m}"
    )


@pytest.fixture(params=[True, False], ids=["checked", "plain"])
def debug(request, monkeypatch):
    """Kernels that look at every access, and those that do not; of the short run the former."""
    if not (request.param or strategies.LONG):
        pytest.skip("in the long run")
    monkeypatch.setenv("LACIS_DEBUG", str(int(request.param)))


def test_a_sum_of_a_sampled_product_is_split_by_what_does_not_divide_it(debug):
    w = strategies.sparse(256, 128)
    compare("ij,ik,jk->ij", w, lacis.Csr(), (numbers(256, 32), numbers(128, 32)), [steps.Split("k", 3)])


def test_a_strip_of_a_strip_ends_before_both_do(debug):
    chosen = [steps.Split("k", 6), steps.Split("k1", 4), steps.Vectorize("k11", 4)]
    compare("ij,jk->ik", strategies.sparse(32, 16), lacis.Csr(), (numbers(16, 32),), chosen)


def test_jammed_rounds_of_fused_loops_pass_guards_of_their_own(debug):
    chosen = [steps.Split("k", 3), steps.Fuse("i", "k0"), steps.Split("i_k0", 2), steps.Jam("i_k01")]
    compare("ij,jk->ik", strategies.sparse(7, 9), lacis.Dense(2), (numbers(9, 7),), chosen)


def test_the_last_stored_block_ends_before_the_vector_does(debug):
    w, chosen = strategies.sparse(24, 40, density=0.5), [steps.Split("j1", 4), steps.Vectorize("j11", 4)]
    compare("ij,ik,jk->ij", w, lacis.Bsr(3, 5), (numbers(24, 4), numbers(40, 4)), chosen)


FACTORS, CLASSES = (2, 3, 4, 6, 8, 12), (1, 2, 4, 8, 16)


@pytest.mark.long
@pytest.mark.parametrize("unit", CLASSES)
def test_pairs_of_factors_on_sizes_of_a_class(unit, debug):
    """Every strip of a strip, as a vector: along the output, along the sum, and fused and jammed."""
    for outer, inner in itertools.product(FACTORS, FACTORS):
        strips = lambda loop: [steps.Split(loop, outer), steps.Split(f"{loop}1", inner)]
        vectors = lambda loop: [*strips(loop), steps.Vectorize(f"{loop}11", inner)]
        size = 3 * unit
        w, x = strategies.sparse(size, 7), numbers(7, size)
        compare("ij,jk->ik", w, lacis.Csr(), (x,), vectors("k"))
        compare("ij,ik,jk->ij", w, lacis.Csr(), (x.T.contiguous(), numbers(7, 7)), strips("k"))
        compare("ij,ik,jk->ij", w, lacis.Csr(), (numbers(size, size), numbers(7, size)), vectors("k"))
        compare("ij,ki,kj->ij", w, lacis.Csr(), (numbers(size, size), numbers(size, 7)), strips("k"))
        compare("ij,bj->bi", w.T.contiguous(), lacis.Csr(), (numbers(TOKENS, size),), [*strips("b"), steps.Jam("b11")])
        fused = [steps.Reorder("k", "i"), steps.Split("k", outer), steps.Split("i", inner)]
        fused += [steps.Reorder("k0", "i0", "k1", "i1"), steps.Fuse("k0", "i0")]
        fused += [steps.Split("k0_i0", 2), steps.Jam("k0_i01")]
        compare("ij,jk->ik", w, lacis.Dense(2), (x,), fused)
