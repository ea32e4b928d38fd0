# SPDX-License-Identifier: Apache-2.0
"""One process of a DDP run: `distributed.py folder rank`; see test_pytorch.py."""

import gc
import pathlib
import sys

import torch
from training import build


def main(folder: pathlib.Path, rank: int):
    store = torch.distributed.FileStore(str(folder / "store"), 2)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
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
