# SPDX-License-Identifier: Apache-2.0
"""Kernels as users see them: specified, compiled, loaded, open to look inside."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
import threading

import torch

from ..capture import KernelSpec, capture_einsum
from ..emit import emit
from ..errors import ScheduleError, user_location
from ..packing import PackedTensor
from ..schedule.steps import Steps, parse
from . import library
from .gradients import Family, family

STAGES = ("lacis", "loops", "tiles", "buffers", "target", "llvm", "ptx", "asm")


class Kernel:
    """One compiled kernel. `asm` maps the stages to their text: `lacis`, `loops`, `buffers`, `target`, `llvm`, `asm` or `ptx`."""

    launch = staticmethod(library.einsum)

    def __init__(self, spec: KernelSpec, loaded, device: torch.device):
        self.spec = spec
        self.loaded = loaded
        self.device = device

    @property
    def key(self) -> str:
        """sha-256 of the text without locations, the target and what else changes the code."""
        return self.loaded.key

    @property
    def target(self) -> str:
        return self.loaded.target

    @property
    def asm(self) -> dict[str, str]:
        """Text by stage, from the algebra down."""
        found = self.loaded.stages
        order = {name: n for n, name in enumerate(STAGES)}
        return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, len(order)))}

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages, in order."""
        return tuple(self.asm)

    @property
    def steps(self) -> Steps:
        """The steps in force, default ones included, as records; given back by hand they make the same kernel."""
        return Steps(map(parse, self.loaded.info.get("steps", ())))

    @property
    def text(self) -> str:
        """What the compiler was given."""
        return emit(self.spec)

    @property
    def storage(self) -> list[str]:
        return self.loaded.storage

    @property
    def derived(self) -> list:
        return self.loaded.derived

    @functools.cached_property
    def names(self) -> list[tuple[str, str, str]]:
        """The arrays of the packed operand that the kernel takes, in its order; see `gradients.Array`."""
        own = [name.rpartition(".") for name in self.storage]
        return [(part, "", name) for part, _, name in own] + [(a.part, a.format, a.name) for a in self.derived]

    def arrays(self, packed: PackedTensor) -> list[torch.Tensor]:
        """The tensors of a packed operand that the kernel takes, in its order."""
        return [packed.array(*name) for name in self.names]

    @functools.cached_property
    def family(self) -> Family:
        """The kernels of its gradients."""
        return family(self, lambda spec: load_kernel(spec, self.target, self.device))

    def __call__(self, *operands) -> torch.Tensor:
        """Run on operands like those it was compiled for; sizes of another divisibility class compile a variant."""
        spec, sizes = capture_einsum_of(self.spec, operands)
        packed = operands[self.spec.packed]
        if spec != self.spec:
            if dataclasses.replace(spec, divisible=self.spec.divisible) != self.spec:
                raise ScheduleError("kernel: the operands differ from those it was compiled for; compile it for these")
            return load_kernel(spec, self.target, packed.device)(*operands)
        dense = [operand for operand in operands if operand is not packed]
        shape = [sizes[letter] for letter in self.spec.output.indices]
        return self.run(dense, packed, shape)

    def run(self, dense, packed: PackedTensor, shape) -> torch.Tensor:
        """Run on dense operands and a packed one; what gradients will walk goes along where someone may ask for them."""
        storage, companions = self.arrays(packed), []
        if torch.is_grad_enabled():
            asked = self.family.asked(dense, storage)
            companions = [packed.array(*name) for name in self.family.bind(asked).companions] if asked else []
        return library.einsum(dense, storage, shape, self.key, list(packed.shape), companions)

    def __repr__(self) -> str:
        return f"Kernel({self.spec.name}, {self.key[:12]}, {self.target})"


def capture_einsum_of(spec: KernelSpec, operands):
    """The specification of the same expression on other operands."""
    left = ",".join("".join(o.indices) for o in spec.operands)
    found, sizes = capture_einsum(f"{left}->{''.join(spec.output.indices)}", operands, spec.location, spec.steps)
    # Divisibility is a promise to the compiler: more of it than was asked for does no harm.
    asked, present = dict(spec.divisible), dict(found.divisible)
    if all(present.get(letter, 1) % size == 0 for letter, size in asked.items()):
        found = dataclasses.replace(found, divisible=spec.divisible)
    return found, sizes


def resolve_target(target: str, device: torch.device, what: str = "target", location=None) -> str:
    """The target for tensors on a device: `auto` is where they lie, `cuda` the device's own architecture."""
    if target == "eager":
        return target
    if target == "auto":
        target = device.type
    if target.partition(":")[0] != device.type:
        raise ScheduleError(f"{what} is on {device}, the target is '{target}'; move it, or take target='auto'", location=location)
    if target == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        if major < 8:
            raise ScheduleError(f"{what}: kernels need compute capability 8.0, {device} has {major}.{minor}", location=location)
        return f"cuda:sm_{major}{minor}" + ("a" if (major, minor) == (9, 0) else "")
    return target


_lock = threading.Lock()
_kernels: dict[tuple, object] = {}


def load_kernel(spec: KernelSpec, target: str, device: torch.device) -> Kernel:
    """The kernel of a specification, compiled and loaded once a process and device."""
    target = resolve_target(target, device)
    where = (spec, target, device)
    with _lock:
        loaded = _kernels.get(where)
    if loaded is None:
        from .kernels import compile_kernel

        loaded = compile_kernel(emit(spec), target, device=device if device.type == "cuda" else None)
        with _lock:
            loaded = _kernels.setdefault(where, loaded)
    return Kernel(spec, loaded, device)


def compile(expression: str, *operands, steps=(), target: str = "auto") -> Kernel:
    """Compile an einsum with one packed operand; `kernel(*operands)` runs it.

    Raises `CompileError` with the user's line when the compiler refuses, `DataError` when operands do not fit.
    """
    spec, _ = capture_einsum(expression, operands, user_location(), steps)
    if target == "eager":
        raise ScheduleError("compile: target 'eager' has no kernel; lacis.einsum(..., target='eager') runs torch's operators")
    return load_kernel(spec, target, operands[spec.packed].device)


def compile_many(requests, target: str = "auto") -> list[Kernel]:
    """Compile in parallel threads; each request is a tuple `(expression, *operands)`."""
    location = user_location()
    specs = [(capture_einsum(expression, operands, location)[0], operands) for expression, *operands in requests]
    workers = max(1, min(len(specs), os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="lacis-compile") as pool:
        return list(pool.map(lambda s: load_kernel(s[0], target, s[1][s[0].packed].device), specs))
