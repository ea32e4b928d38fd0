# SPDX-License-Identifier: Apache-2.0
"""What holds of every level kind: equal bits in each run, gradients, padding that stays 0, damage that harms nobody."""

import lacis
import pytest
import test_kinds
import torch
import user_kinds  # noqa: F401  # @my_runs and its kin
from lacis.errors import DataError
from lacis.packing import PackedTensor, pack
from lacis.runtime import library
from strategies import sparse

KINDS = {
    **test_kinds.KINDS,
    "dense": str(lacis.Dense()),
    "compressed": str(lacis.Csr()),
    "compressed above": str(lacis.Dcsr()),
    "singleton": str(lacis.Coo()),
    "packed": "(i, j) -> (i : dense, j : packed<?>)",
    "blocks": str(lacis.Bsr(4, 8)),
    "range": str(lacis.Dia()),
    "rank": str(lacis.Sell(4, 8)),
    "runs": "(i, j) -> (i : dense, j : @my_runs)",
    "hashed": "(i, j) -> (i : dense, j : @my_hash)",
    "delta of a user's": "(i, j) -> (i : dense, j : @my_delta)",
}
HARMED = [name for name in KINDS if name not in ("dense", "ragged", "ragged above")]  # which have arrays that say where


def entries(dtype=torch.float32):
    return sparse(9, 35, density=0.3, dtype=dtype)


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_thousand_runs_have_the_same_bits(name):
    packed, x = pack(entries(), KINDS[name]), torch.randn(3, 35)
    kernel = lacis.compile("ij,bj->bi", packed, x, target="cpu")
    first = kernel(packed, x)
    assert all(torch.equal(kernel(packed, x), first) for _ in range(1000))


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_gradients_are_those_of_small_steps(name):
    packed, x = pack(entries(torch.float64), KINDS[name]), torch.randn(2, 35, dtype=torch.float64, requires_grad=True)
    values, valid = packed.values.clone().requires_grad_(), packed.pattern.part().valid
    kept = torch.ones_like(values, dtype=torch.bool) if valid is None else valid.reshape(values.shape)
    run = lambda v, x: lacis.einsum("ij,bj->bi", packed.with_values(torch.where(kept, v, 0)), x)
    assert torch.autograd.gradcheck(run, (values, x))


@pytest.mark.parametrize("name", KINDS)
def test_padding_stays_zero_over_ten_steps_of_adam(name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(35, 9))
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(0.7)).set_format(lacis.Format.parse(KINDS[name]))
    model = s.build()
    before = s["0.weight"].packed.pattern.to_mask()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(5, 35)).square().sum().backward()
        optimizer.step()
    packed = s["0.weight"].packed.validate()
    assert torch.equal(packed.pattern.to_mask(), before) and not packed.to_dense()[~before].any()
    assert int((packed.values != 0).sum()) == int(before.sum())


@pytest.mark.long
@pytest.mark.parametrize("name", HARMED)
def test_damaged_arrays_are_refused_and_harmless(name, monkeypatch):
    """`from_storage` takes or refuses them; a checked kernel that gets them unseen ends, whatever they say."""
    monkeypatch.setenv("LACIS_DEBUG", "1")
    generator, x = torch.Generator().manual_seed(0), torch.ones(3, 35)
    packed = pack(entries(), KINDS[name])
    kernel = lacis.compile("ij,bj->bi", packed, x, target="cpu")
    arrays, outcomes = kernel.arrays(packed), set()
    walked = {id(array): at for at, array in enumerate(arrays)}
    for own, array in packed.storage.items():
        for number in range(24 if array.numel() else 0):
            at = torch.randint(array.numel(), (1,), generator=generator)
            value = torch.randint(-300, 300, (1,), generator=generator) * 7 ** (number % 4)
            damaged = array.clone()
            damaged.view(-1)[at] = value.to(array.dtype)
            given = [damaged if n == walked.get(id(array)) else other for n, other in enumerate(arrays)]
            for attempt in (
                lambda: PackedTensor.from_storage(packed.format, packed.shape, {**packed.tensors, own: damaged}),
                lambda: library.einsum([x], given, (3, 9), kernel.key, [9, 35]),
            ):
                try:
                    attempt()
                    outcomes.add("taken")
                except DataError:
                    outcomes.add("refused")
    assert "refused" in outcomes
