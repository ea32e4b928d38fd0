# SPDX-License-Identifier: Apache-2.0
"""One process of an FSDP2 run: `sharded.py folder rank`; see test_sharded.py."""

import gc
import pathlib
import sys
import warnings

import lacis
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from training import build

WHOLE = StateDictOptions(full_state_dict=True)


def sharded(format, target="eager", **options):
    model, _ = build(format, target=target)
    for each in (model[0], model[2], model):
        fully_shard(each, mesh=torch.distributed.init_device_mesh("cpu", (2,)), **options)
    return model


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2)


def batch():
    return torch.randn(8, 40, generator=torch.Generator().manual_seed(1))


def step(model, optimizer, x, share=1):
    """One step with clipped gradients; the loss and the norm of the whole batch."""
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    loss = loss.detach().clone() / share
    if share > 1:
        torch.distributed.all_reduce(loss)
        norm = norm.full_tensor()
    return loss, norm


def equal(model, whole):
    for mine, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine.full_tensor(), theirs)


def trains_as_one(rank, format, target):
    model, twin = sharded(format, target), build(format, target="eager")[0]
    optimizers = adamw(model), adamw(twin)
    for _ in range(5):
        found = step(model, optimizers[0], batch().chunk(2)[rank], share=2)
        torch.testing.assert_close(found, step(twin, optimizers[1], batch()), rtol=1e-5, atol=1e-6)
    equal(model, twin)
    torch.testing.assert_close(model[0].weight.to_dense(), twin[0].weight.to_dense())


def runs_in_the_dtype_of_its_policy(rank):
    model = sharded("csr", "cpu", mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    x = batch()
    y = model(x)
    assert y.dtype == torch.bfloat16 and all(p.dtype == torch.float32 for p in model.parameters())
    expected = build("csr", target="eager")[0](x)
    torch.testing.assert_close(y.float(), expected, rtol=0.1, atol=0.05)
    y.float().square().mean().backward()
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())


def states_load(rank):
    """Sharded ones into the sharded model, whole ones into and out of it; another pattern with them."""
    model, twin, x = sharded("csr"), build("csr", target="eager")[0], batch()
    model.load_state_dict(model.state_dict())
    equal(model, twin)
    weight = twin[0].weight
    weight.set_packed(lacis.pack(weight.to_dense().detach().roll(1, 0) * 2, weight.format))
    set_model_state_dict(model, twin.state_dict(), options=WHOLE)
    equal(model, twin)
    torch.testing.assert_close(model(x), twin(x))
    state = get_model_state_dict(model, options=WHOLE)
    again = build("csr", target="eager")[0]
    again.load_state_dict(state)
    torch.testing.assert_close(again(x), twin(x))
    dense = torch.randn(24, 40, generator=torch.Generator().manual_seed(2))
    model.load_state_dict({"0.weight": dense, "2.weight": torch.ones(8, 24)}, strict=False)
    mask = model[0].weight.packed().pattern.to_mask()
    torch.testing.assert_close(model[0].weight.to_dense(), dense * mask)


def patterns_change_in_place(rank):
    model, x = sharded("csr"), batch()
    weight = model[0].weight
    values, dense = weight.values, weight.to_dense().detach().roll(1, 0)
    weight.set_packed(lacis.pack(dense, weight.format))
    assert weight.values is values
    twin = build("csr", target="eager")[0]
    twin[0].weight.set_packed(lacis.pack(dense, weight.format))
    torch.testing.assert_close(model(x), twin(x))
    with pytest.raises(
        lacis.DataError, match=r"the values \[192\] are shared out over ranks, and cannot become \[24\]"
    ):
        weight.set_packed(lacis.pack(torch.eye(24, 40), weight.format))
    torch.testing.assert_close(model(x), twin(x))


def checkpoint(model, optimizer):
    state, of_optimizer = get_state_dict(model, optimizer)
    return {"model": state, "optimizer": of_optimizer}


def resumes(folder, rank):
    """A checkpoint of two ranks resumes on both; test_sharded.py resumes it on one."""
    model = sharded("bsr")
    optimizer = adamw(model)
    step(model, optimizer, batch().chunk(2)[rank], share=2)
    dcp.save(checkpoint(model, optimizer), checkpoint_id=str(folder / "checkpoint"))
    expected = [step(model, optimizer, batch().chunk(2)[rank], share=2) for _ in range(3)]
    if rank == 0:
        torch.save(expected, folder / "expected.pt")
    again = sharded("bsr")
    optimizer = adamw(again)
    load(again, optimizer, folder)
    for loss, norm in expected:
        torch.testing.assert_close(step(again, optimizer, batch().chunk(2)[rank], share=2), (loss, norm))


def load(model, optimizer, folder):
    state = checkpoint(model, optimizer)
    dcp.load(state, checkpoint_id=str(folder / "checkpoint"))
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


def main(folder: pathlib.Path, rank: int):
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.FileStore(str(folder / "store"), 2), rank=rank, world_size=2
    )
    for format, target in (("csr", "cpu"), ("sum", "eager"), ("uneven", "eager")):
        trains_as_one(rank, format, target)
    runs_in_the_dtype_of_its_policy(rank)
    states_load(rank)
    patterns_change_in_place(rank)
    resumes(folder, rank)
    torch.distributed.barrier()
    gc.collect()  # as in distributed.py
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
