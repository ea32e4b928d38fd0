# SPDX-License-Identifier: Apache-2.0
"""One process of two that train one model whose patterns change: `ranks.py folder rank`; see test_ranks.py."""

import gc
import pathlib
import sys

import dense_twin
import lacis
import pytest
import torch
import torch.distributed.tensor
from dense_twin import FORMATS, NAMES, OPTIMIZERS

STEPS = 9


def build(policy, format="csr"):
    s = lacis.create_schedule(dense_twin.make(), target="eager")
    for name in NAMES:
        FORMATS[format][1](s[name].sparsify(policy))
    return s.build(), s


def policy():
    return lacis.Regrow(0.8, range(0, 100, 2), grow="gradient")


def train(model, optimizer, updates, part):
    """`part` gives what this process sees of a batch."""
    for step in range(STEPS):
        x = part(torch.randn(16, 40, generator=torch.Generator().manual_seed(step), dtype=torch.float64))
        optimizer.zero_grad()
        (model(x) - x[:, :8]).square().mean().backward()
        optimizer.step()
        updates.step()


def trains_as_one(rank: int, folder: pathlib.Path):
    model, s = build(policy())
    parallel = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    updates = s.attach(optimizer, group=torch.distributed.group.WORLD)
    train(parallel, optimizer, updates, lambda x: x.chunk(2)[rank])
    lacis.require_equal_patterns(model)
    expected = torch.load(folder / "expected.pt")
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-9, atol=1e-12)


def the_first_rank_decides(rank: int):
    """What a rank reads may differ; what they do does not."""

    class Own(lacis.Policy):
        def mask(self, tensor):
            return lacis.Random(0.5)(tensor)

        def change(self, view):
            return torch.arange(2 + rank, view.count), view.empty()[: 2 + rank]

    model, s = build(Own(range(1, 9)))
    updates = s.attach(OPTIMIZERS["sgd"](model.parameters()), group=torch.distributed.group.WORLD)
    assert updates.step() and s["0.weight"].packed.nnz == 480
    lacis.require_equal_patterns(model)


def refuses(rank: int):
    model, s = build(lacis.Random(0.5, seed=rank))
    optimizer = OPTIMIZERS["sgd"](model.parameters())
    with pytest.raises(lacis.ScheduleError, match="there are 2 ranks; say group="):
        s.attach(optimizer)
    with pytest.raises(lacis.DataError, match="the ranks hold different patterns of '0.weight'"):
        s.attach(optimizer, group=torch.distributed.group.WORLD)
    assert not s.attach(optimizer, group="self").step()
    model, s = build(lacis.Magnitude(lacis.Ramp(0.0, 0.9, range(0, 9))))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    updates = s.attach(OPTIMIZERS["sgd"](model.parameters()), group=torch.distributed.group.WORLD)
    parallel(torch.ones(2, 40, dtype=torch.float64)).sum().backward()
    with pytest.raises(lacis.DataError, match="which DistributedDataParallel does not see"):
        updates.step()


def refuses_values_that_are_cut():
    """As FSDP2 cuts them over the ranks."""
    model, s = build(policy())
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    for name in NAMES:
        weight = model.get_submodule(name)
        cut = torch.distributed.tensor.distribute_tensor(weight.values.detach(), mesh)
        weight.values = torch.nn.Parameter(cut)
    with pytest.raises(lacis.DataError, match="the values of '0.weight' are a DTensor, cut over ranks"):
        s.attach(OPTIMIZERS["sgd"](model.parameters()), group=torch.distributed.group.WORLD)


def main(folder: pathlib.Path, rank: int):
    store = torch.distributed.FileStore(str(folder / "store"), 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    trains_as_one(rank, folder)
    the_first_rank_decides(rank)
    refuses(rank)
    refuses_values_that_are_cut()
    torch.distributed.barrier()
    gc.collect()  # gloo's threads end with the last that holds them
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
