# SPDX-License-Identifier: Apache-2.0
"""One process of two that train one model whose patterns change: `ranks.py folder rank`; see test_ranks.py."""

import gc
import itertools
import pathlib
import sys

import dense_twin
import lacis
import pytest
import torch
from dense_twin import FORMATS, NAMES, OPTIMIZERS
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

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
    parallel = DistributedDataParallel(model, broadcast_buffers=False)
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
    model, s = build(lacis.Magnitude(lacis.Ramp(0.0, 0.9, range(0, 9))), "ell")
    parallel = DistributedDataParallel(model)
    updates = s.attach(OPTIMIZERS["sgd"](model.parameters()), group=torch.distributed.group.WORLD)
    parallel(torch.ones(2, 40, dtype=torch.float64)).sum().backward()
    with pytest.raises(lacis.DataError, match="which DistributedDataParallel does not see"):
        updates.step()


def sharded(model):
    """As FSDP2 cuts it over the ranks."""
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    for each in (model[0], model[2], model):
        fully_shard(each, mesh=mesh)
    return model


def trains_as_one_where_values_are_cut(rank: int, folder: pathlib.Path):
    """The values, the gradient and the state of each rank are a part of each; the policy sees all."""
    model, s = build(policy())
    with pytest.raises(lacis.DataError, match="the values of '0.weight' are cut over ranks, which train one model"):
        s.attach(OPTIMIZERS["sgd"](sharded(model).parameters()), group="self")
    optimizer = OPTIMIZERS["adamw"](model.parameters())
    updates = s.attach(optimizer, group=torch.distributed.group.WORLD, resize=False)
    values = model[0].weight.values
    train(model, optimizer, updates, lambda x: x.chunk(2)[rank])
    assert model[0].weight.values is values and updates.count == STEPS
    lacis.require_equal_patterns(model)
    expected = torch.load(folder / "expected.pt")
    for name, tensor in model.state_dict().items():
        tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        torch.testing.assert_close(tensor, expected[name], rtol=1e-9, atol=1e-12)
    model, s = build(lacis.Magnitude(lacis.Ramp(0.0, 0.9, range(0, 9))), "ell")
    optimizer = OPTIMIZERS["sgd"](sharded(model).parameters())
    with pytest.raises(lacis.DataError, match="'0.weight' would have .* stored places|cannot become"):
        s.attach(optimizer, group=torch.distributed.group.WORLD).step()


def counts_fall_in_place(rank: int):
    """With room for what was there: under DDP, and cut by FSDP2, as in one process."""
    for wrap in (DistributedDataParallel, sharded):
        found = []
        for share in (lambda x: x, lambda x: x.chunk(2)[rank]):
            alone = not found
            model, s = build(lacis.Magnitude(lacis.Ramp(0.0, 0.9, range(0, 9, 2))))
            trained = model if alone else wrap(model)
            optimizer = OPTIMIZERS["adamw"](model.parameters())
            updates = s.attach(optimizer, group="self" if alone else torch.distributed.group.WORLD, resize=not alone)
            train(trained, optimizer, updates, share)
            assert len(model[0].weight.values) == 960 and s["0.weight"].packed.nnz == 96
            found.append([s[name].packed.to_dense().detach() for name in NAMES])
        for mine, expected in zip(*found):
            torch.testing.assert_close(mine, expected, rtol=1e-9, atol=1e-12)


def masters_train_as_one(rank: int):
    """Dense Parameters that stay, whose entries follow them: under DDP, and cut by FSDP2."""
    when = lacis.Movement(lacis.Ramp(0.1, 0.8, range(1, 9, 2)))
    for sparsifier, wrap in itertools.product((lacis.Magnitude(0.7), when), (DistributedDataParallel, sharded)):
        found = []
        for share in (lambda x: x, lambda x: x.chunk(2)[rank]):
            s = lacis.create_schedule(dense_twin.make(), target="eager")
            for name in NAMES:
                s[name].sparsify(sparsifier, master="ste", decay=0.1).set_format(lacis.Csr)
            alone = not found
            model = s.build() if alone else wrap(s.build())
            optimizer = OPTIMIZERS["adamw"](model.parameters())
            train(
                model, optimizer, s.attach(optimizer, group="self" if alone else torch.distributed.group.WORLD), share
            )
            found.append([s[name].packed.to_dense().detach() for name in NAMES])
        for mine, expected in zip(*found):
            torch.testing.assert_close(mine, expected, rtol=1e-9, atol=1e-12)


def attends_as_one(rank: int):
    """A module that attends on a pattern: each rank has half of the batch, and all have the gradients of the whole."""
    found = []
    for alone in (True, False):
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            for number, parameter in enumerate(layer.parameters()):
                generator = torch.Generator().manual_seed(number)
                parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        s = lacis.create_schedule(layer, target="eager")
        s["self_attn"].sparsify(lacis.Local(3)).block(4, 4).set_format(lacis.Bsr)
        s.build()
        x = torch.randn(4, 12, 8, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        model = layer if alone else DistributedDataParallel(layer)
        model(x if alone else x.chunk(2)[rank]).square().mean().backward()
        found.append([parameter.grad for parameter in layer.parameters()])
    for whole, mine in zip(*found):
        torch.testing.assert_close(mine, whole, rtol=1e-9, atol=1e-12)


def main(folder: pathlib.Path, rank: int):
    store = torch.distributed.FileStore(str(folder / "store"), 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    trains_as_one(rank, folder)
    the_first_rank_decides(rank)
    refuses(rank)
    trains_as_one_where_values_are_cut(rank, folder)
    counts_fall_in_place(rank)
    masters_train_as_one(rank)
    attends_as_one(rank)
    torch.distributed.barrier()
    gc.collect()  # gloo's threads end with the last that holds them
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
