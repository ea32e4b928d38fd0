# SPDX-License-Identifier: Apache-2.0
"""Kernels as users see them: specified, compiled, loaded, open to look inside."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Mapping

import torch

from .. import knobs
from ..capture import Epilogue, KernelSpec, kind_of
from ..emit import emit
from ..errors import DataError, ScheduleError, user_location
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.capturing import refuse_capture
from ..patterns.transforms import is_transformed
from ..schedule.steps import Steps, in_words, parse
from . import library
from .arrays import arrays_of
from .bound import BoundCall, BoundPair, bind_layer, changed, run_pair
from .bound import run as run_bound
from .call import Call, run
from .gradients import Family, family
from .ready import ready_calls
from .targets import require_devices, resolve_target, target_anywhere
from .transformed import of_entries

STAGES = ("lacis", "loops", "tiles", "buffers", "target", "llvm", "ptx", "asm")


class Kernel:
    """One compiled kernel.

    `asm` maps the stages to their text: `lacis`, `loops`, `buffers`, `target`, `llvm`, `asm` or `ptx`.
    """

    launch = staticmethod(library.einsum)
    bind = BoundCall
    bound, changed = staticmethod(run_bound), staticmethod(changed)
    bind_pair = BoundPair
    bind_layer = staticmethod(bind_layer)
    bound_pair = staticmethod(run_pair)

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
        """Text by stage, from the algebra down; without locations, which the files of `LACIS_DUMP_DIR` have."""
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
    def remarks(self) -> tuple[str, ...]:
        """Why rules of the default schedule did not apply; a step of the user's that contradicts one has its line."""
        return tuple(in_words(remark, self.spec.steps) for remark in self.loaded.info.get("remarks", ()))

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
        """The arrays of the packed operand that the kernel takes, in its order; see `lacis.patterns.derivation`."""
        own = [name.rpartition(".") for name in self.storage]
        return [(part, "", name) for part, _, name in own] + [(a.part, a.step, a.name) for a in self.derived]

    def arrays(self, packed: PackedTensor | Pattern) -> list[torch.Tensor]:
        """The tensors of a packed operand, or of a pattern, that the kernel takes, in its order."""
        return arrays_of(packed, self.names)

    @functools.cached_property
    def family(self) -> Family:
        """The kernels of its gradients, each by its default schedule."""
        return self.scheduled({})

    def scheduled(self, steps: Mapping[str, tuple]) -> Family:
        """The kernels of its gradients, by slot, scheduled by the steps of each."""

        def load(spec: KernelSpec, plain: bool = False) -> Kernel:
            return _load(dataclasses.replace(spec, plain=True) if plain else spec, self.target, self.device)

        return family(self, load, steps)

    def name_also(self, key: str) -> None:
        """Let the operator find this kernel under one more key, wherever it is loaded."""
        self.loaded.name_also(key)

    def plain(self) -> Kernel:
        """The same kernel on the operand's own arrays and values: for transforms, which look into no copy of values."""
        spec = dataclasses.replace(self.spec, plain=True, steps=())
        return load_kernel(spec, self.target, self.device)

    def run(self, dense, packed: PackedTensor | Pattern, shape) -> torch.Tensor:
        """Run on dense operands and a packed one; what gradients will walk goes along where they may be asked for."""
        family, looked_into = self.family, is_transformed()
        if looked_into and family.walks_copies:
            return self.plain().run(dense, packed, shape)
        if looked_into:
            packed = of_entries(packed)
        elif knobs.debug:
            packed.validate()
        storage, companions = self.arrays(packed), []
        if self.spec.scattered:
            _refuse_duplicates(packed)
        if torch.is_grad_enabled():
            asked = family.asked(dense, storage)
            if any(family.specs[slot].scattered for slot in asked):
                _refuse_duplicates(packed)
            names = family.bind(asked).companions if asked else []
            if looked_into and family.walks_copies:
                return self.plain().run(dense, packed, shape)
            companions = arrays_of(packed, names)
        return library.einsum(dense, storage, shape, family.key, list(packed.shape), companions)

    def __repr__(self) -> str:
        return f"Kernel({self.spec.name}, {self.key[:12]}, {self.target})"


def _refuse_duplicates(operand: PackedTensor | Pattern) -> None:
    """Each entry must own the outputs of its place."""
    pattern = operand if isinstance(operand, Pattern) else operand.pattern
    if any(part.repeats for part in pattern.parts.values()):
        raise DataError(
            "einsum: a dense result of all letters of the packed operand needs entries at places of their own; "
            "the operand has duplicates, pack its .to_dense()"
        )


class EinsumKernel(Kernel):
    """A compiled einsum: `kernel(*operands)` runs it. What the epilogue reads is that of `compile`, or of the call."""

    def __init__(self, call: Call, kernels: dict[str, Kernel]):
        self._call = call
        self._kernels = kernels
        first = next(iter(kernels.values()))
        super().__init__(first.spec, first.loaded, first.device)
        self._ready = ready_calls(call, kernels)

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels by part: one, named "", save where the output has all letters of a packed sum."""
        return dict(self._kernels)

    def __call__(self, *operands, epilogue: Epilogue | None = None) -> torch.Tensor | PackedTensor:
        """Run on operands like those it was compiled for; sizes of another divisibility class compile a variant.

        Raises `ScheduleError` for operands of other formats, dtypes or epilogues, `DataError` for those that lie
        where kernels of its target do not run.
        """
        known = self._call
        result = self._ready.run(operands) if epilogue is None else None
        if result is not None:
            return result
        own = known.epilogue if epilogue is None else epilogue
        require_devices(self.target, operands)
        given = (self.spec.location, self.spec.steps, known.semiring, own, known.deterministic, known.strict)
        call = Call(known.expression, operands, *given, kind_of(self.target), known.asked)

        def compute(asked: Call):
            if asked is not call or call.is_cast:
                return asked.launch(load_kernels(asked, self.target))
            kernels = self._for(call)
            result = call.launch(kernels)
            if epilogue is None:
                self._ready.keep(operands, kernels.get(""), result)
            return result

        return run(call, compute)

    def _for(self, call: Call) -> dict[str, Kernel]:
        return {name: self._piece(name, spec, call.device) for name, (spec, _) in call.pieces.items()}

    def _piece(self, name: str, spec: KernelSpec, device) -> Kernel:
        kernel = self._kernels.get(name)
        if kernel is not None and spec == kernel.spec:
            return kernel if kernel.device.type == device.type else load_kernel(spec, self.target, device)
        known = {name: getattr(kernel.spec, name) for name in _HINTS if kernel is not None}
        if kernel is None or dataclasses.replace(spec, **known) != kernel.spec:
            raise ScheduleError("kernel: the operands differ from those it was compiled for; compile it for these")
        # Divisibility is a promise to the compiler: more of it than was asked for does no harm.
        present = dict(spec.divisible)
        if all(present.get(letter, 1) % size == 0 for letter, size in kernel.spec.divisible):
            return kernel if kernel.device.type == device.type else load_kernel(kernel.spec, self.target, device)
        return load_kernel(spec, self.target, device)


# What a kernel was told that other operands need not share with those that it was compiled for.
_HINTS = "divisible uneven large filled hypersparse skewed eighths slabs tf32 checked room".split()
_lock = threading.Lock()
_kernels: dict[tuple, Kernel] = {}


def load_kernel(spec: KernelSpec, target: str, device: torch.device) -> Kernel:
    """The kernel of a specification, compiled and loaded once a process and device."""
    return _load(spec, resolve_target(target, device, *_said(spec)), device)


def load_anywhere(spec: KernelSpec, target: str, device: torch.device) -> Kernel:
    """As `load_kernel`, for a target that names an architecture on any machine; there it is not loaded."""
    return _load(spec, target_anywhere(target, device, *_said(spec)), device)


def _said(spec: KernelSpec) -> tuple:
    """What an error names of a kernel that cannot be for a device, and the user's line."""
    return f"{spec.name}: the packed operand", spec.location


def _load(spec: KernelSpec, target: str, device: torch.device) -> Kernel:
    where = (spec, target, device)
    with _lock:
        kernel = _kernels.get(where)
    if kernel is None:
        from .kernels import compile_kernel

        refuse_capture(device, f"the kernel of '{spec.name}'")
        library.register()
        loaded = compile_kernel(emit(spec), target, device=device if device.type == "cuda" else None)
        with _lock:
            kernel = _kernels.setdefault(where, Kernel(spec, loaded, device))
    return kernel


def compile(
    expression: str,
    *operands,
    steps=(),
    target: str = "auto",
    semiring: str = "plus_times",
    epilogue: Epilogue | None = None,
    deterministic: bool = True,
    strict: bool = False,
    out_dtype: torch.dtype | None = None,
) -> EinsumKernel:
    """Compile an einsum with one packed operand; `kernel(*operands)` runs it. Keywords as those of `lacis.einsum`.

    A `target` that names an architecture (`"cuda:sm_90a"`) compiles wherever the operands lie, on a machine without a
    GPU too, and for operands on `meta`, which have no values: `kernel.asm` has all stages, `lacis.save_kernels` writes
    it, and only a call with operands elsewhere raises.

    >>> import lacis
    >>> w, x = lacis.pack(torch.eye(3), lacis.Csr), torch.ones(2, 3)
    >>> kernel = compile("ij,bj->bi", w, x)
    >>> kernel(w, 2 * x).sum()
    tensor(12.)

    >>> for_gpu = compile("ij,bj->bi", w, torch.empty(2, 3, device="meta"), target="cuda:sm_90a")
    >>> ".target sm_90a" in for_gpu.asm["ptx"]
    True

    Raises `CompileError` with the user's line when the compiler refuses, `DataError` when operands do not fit.
    """
    if target == "eager":
        raise ScheduleError(
            "compile: target 'eager' has no kernel; lacis.einsum(..., target='eager') runs torch's operators"
        )
    location = user_location()
    given = (location, steps, semiring, epilogue, deterministic, strict, kind_of(target), out_dtype)
    call = Call(expression, operands, *given)
    return EinsumKernel(call, load_kernels(call, target, load_anywhere))


def load_kernels(call: Call, target: str, load=load_kernel) -> dict[str, Kernel]:
    """The kernels of an einsum, by the names of its pieces."""
    return {name: load(spec, target, call.device) for name, (spec, _) in call.pieces.items()}
