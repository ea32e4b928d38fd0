# SPDX-License-Identifier: Apache-2.0
"""One process of a DDP run: `distributed.py folder rank`; see test_pytorch.py."""

import copy
import gc
import pathlib
import sys

import lacis
import pytest
import torch
from test_shared_arrays import trained
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from training import build


def refuses_other_patterns(rank: int):
    """As many entries at other places on each rank, which DDP does not see when it sends no buffers."""
    model, _ = build("csr")
    lacis.require_equal_patterns(model)
    weight = model[2].weight
    weight.set_packed(lacis.pack(weight.to_dense().detach().roll(rank, 0), weight.format))
    text = "the ranks hold different patterns of '2.weight', so sums over ranks would mix entries; build on the same"
    with pytest.raises(lacis.DataError, match=text):
        lacis.require_equal_patterns(model)
    model = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    with pytest.raises(lacis.DataError, match=text):
        model(torch.ones(2, 40))


def sends_narrow_arrays(rank: int):
    """gloo and NCCL have no int16: DDP sends bytes, those of derived arrays too, and so does who loads a state dict."""
    narrow = lacis.Format.parse("(i, j) -> (i : dense<crd=i16>, j : compressed<crd=i16>)")
    model, _ = trained(format=narrow, sparsity=0.8 - 0.1 * rank)
    full = copy.deepcopy(model.state_dict())
    set_model_state_dict(model, full, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    for _ in range(2):
        parallel(torch.ones(2, 48, requires_grad=True)).sum().backward()
    model[0].weight.validate()
    lacis.require_equal_patterns(model)


def main(folder: pathlib.Path, rank: int):
    store = torch.distributed.FileStore(str(folder / "store"), 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    refuses_other_patterns(rank)
    sends_narrow_arrays(rank)
    model = torch.nn.parallel.DistributedDataParallel(build("sum")[0])
    x = torch.load(folder / "x.pt").chunk(2)[rank]
    model(x).square().mean().backward()
    expected = torch.load(folder / "grads.pt")
    for name, parameter in model.module.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-6)
    # gloo's threads end here, with the last that holds them: one that still frees a Python object while the interpreter
    # shuts down aborts the process
    torch.distributed.barrier()
    del model
    gc.collect()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
