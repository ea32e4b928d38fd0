# SPDX-License-Identifier: Apache-2.0
"""`lacis.kernel`: one kernel of a function of einsums, softmax and arithmetic on one pattern."""

from __future__ import annotations

import dataclasses
import functools
import inspect

import torch

from ..capture import DTYPES, Operand, check_operands, divisible, kind_of
from ..capture.chain import ChainSpec, Trace
from ..capture.expression import hints
from ..capture.traced import arguments_of, dtype_of, finished
from ..emit import emit_chain
from ..errors import DataError, ScheduleError, user_location
from ..formats import Sum
from ..packing import PackedTensor
from ..patterns import Pattern
from ..schedule.steps import Step
from . import library
from .compile import Kernel
from .kernels import LoadedKernel, compile_kernel
from .targets import require_devices, resolve_target, target_anywhere


# Of so many shapes the kernels are at hand; another shape mostly finds the same kernel by its text.
_SHAPES = 256
# What a softmax and what follows it become by default: targets whose names begin so, and the form.
_ROLLS = (("cpu", "loops"), ("cuda:sm_7", ""), ("cuda:sm_90a", "wide tiles"), ("cuda:", "tiles"))


def rolls_on(target: str) -> str:
    """The form of the one loop that a chain is by default, see `ChainSpec.rolls`."""
    return next((form for start, form in _ROLLS if target.startswith(start)), "")


def kernel(function) -> "ChainFunction":
    """A decorator: the function's statements are one kernel.

    The function takes dense tensors and one `lacis.Pattern`, and returns a tensor made by `lacis.einsum`,
    `lacis.softmax`, `lacis.logsumexp`, arithmetic, comparisons, `torch.where` and functions of one number such as
    `torch.exp`, or a tuple of them; `map` of entries sees coordinates, as `PackedTensor.map`. It is run once for each
    kind of operands, with stand-ins for them: numbers from outside are those of that run. The first einsum that has the
    pattern samples on it; what later ones read has its entries. Sizes of axes that the pattern lacks are
    compiled in, but for those of a batch. Results after the first are dense, and float32 at least.

    >>> import torch, lacis
    >>> @lacis.kernel
    ... def attention(q, k, v, pattern):
    ...     s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k) * 0.5
    ...     return lacis.einsum("hij,hje->hie", lacis.softmax(s, "j"), v)
    >>> q = k = v = torch.eye(4)[None]
    >>> pattern = lacis.Pattern.from_mask(torch.ones(4, 4).tril().bool(), lacis.Csr)
    >>> attention(q, k, v, pattern)[0, 1]
    tensor([0.3775, 0.6225, 0.0000, 0.0000])

    Call it, or its `.compile(*operands, steps=(), target="auto")`, which returns a `ChainKernel`. Half types are
    computed in float32 and rounded once; beside operands of one half type others may be float32. Forward only: operands
    that require a gradient raise `DataError`, as do operands that do not fit and functions that cannot be traced.
    """
    return ChainFunction(function)


class ChainFunction:
    """A function whose statements are one kernel, see `lacis.kernel`."""

    def __init__(self, function, names=None, rounded: int = 1, seed: str = ""):
        """`names` are those of the operands, by default the function's parameters; the first `rounded` results are.

        `seed` is the name of one that is an int64 number.
        """
        functools.update_wrapper(self, function)
        self._function, self._rounded, self._seed = function, rounded, seed
        self._names = tuple(names or inspect.signature(function).parameters)
        self._kernels: dict[tuple, tuple[ChainKernel, Fit]] = {}
        self._loaded: dict[tuple, LoadedKernel] = {}

    def __call__(self, *operands):
        return self.run(operands)[1]

    def run(self, operands, steps=()) -> tuple[ChainKernel, torch.Tensor | PackedTensor | tuple]:
        """The kernel for operands like these, and what it makes of them."""
        kernel, fit = self._fitted(operands, steps)
        return kernel, kernel.launched(operands, fit)

    def compiled(self, *operands, steps=()) -> ChainKernel:
        """The kernel for operands like these, which is made once."""
        return self._fitted(operands, steps)[0]

    def _fitted(self, operands, steps) -> tuple[ChainKernel, Fit]:
        """The kernel, and how operands of these kinds fit it: both are found once for all calls with such operands."""
        known = steps, *map(_kind, operands)
        found = self._kernels.get(known)
        if found is None:
            if len(self._kernels) == _SHAPES:
                self._kernels.clear()
            kernel = self.compile(*operands, steps=steps)
            found = self._kernels[known] = kernel, kernel.fitted(operands)
        return found

    def compile(self, *operands, steps=(), target: str = "auto") -> ChainKernel:
        """The kernel for operands like these: formats, dtypes, sizes of axes that the pattern lacks."""
        steps = (None,) if isinstance(steps, (Step, str)) else tuple(steps)
        if not all(isinstance(step, Step) for step in steps):
            raise ScheduleError("kernel: 'steps' is a list of records, as steps=[lacis.steps.Roll('j')]")
        spec, batch = self._traced(operands, steps, kind_of(target))
        device = operands[spec.packed].device
        resolve = resolve_target if target == "auto" else target_anywhere
        name = resolve(target, device, f"{spec.name}: the pattern", spec.location)
        spec = dataclasses.replace(spec, rolls=rolls_on(name))
        rolled = next((step for step in steps if step.mnemonic == "roll" and not spec.rolls), None)
        if rolled:
            raise ScheduleError(
                f"roll: '{name}' has no default schedule for such a loop, CPUs and GPUs from sm_80 on have",
                location=rolled.location,
            )
        library.register()
        return ChainKernel(spec, self._load(spec, name, device), device, batch)

    def _load(self, spec: ChainSpec, target: str, device: torch.device) -> LoadedKernel:
        """The kernel of the statements, which are written once for all shapes that it serves."""
        known = spec, repr(spec.statements), target, device  # 0.0 equals -0.0, and a whole number another one
        if known not in self._loaded:
            if len(self._loaded) == _SHAPES:
                self._loaded.clear()
            on = device if device.type == "cuda" else None
            self._loaded[known] = compile_kernel(emit_chain(spec), target, device=on)
        return self._loaded[known]

    def _traced(self, operands, steps, kind) -> tuple[ChainSpec, tuple[str, ...]]:
        """The statements, and the letters of the batch."""
        if len(operands) != len(self._names):
            raise DataError(f"kernel: '{self.__name__}' takes {', '.join(self._names)}; {len(operands)} are given")
        patterns = [n for n, operand in enumerate(operands) if isinstance(operand, Pattern)]
        _check(self._names, operands, patterns, self._seed)
        check_operands(operands, kind)
        trace = Trace(self._names)
        arguments = arguments_of(trace, self._names, operands, lambda o: isinstance(o, Pattern))
        returned = finished(trace, self._function(*arguments))
        packed = patterns[0]
        letters = trace.pattern[1]
        batch = letters[: len(letters) - len(operands[packed].shape)]
        used = {read.name: read.letters for s in reversed(trace.statements) for read in s.inputs}
        dtype = dtype_of([o for o in operands if isinstance(o, torch.Tensor)])
        named = []
        for number, (name, operand) in enumerate(zip(self._names, operands)):
            if number == packed:
                text = operand.batched([trace.sizes[x] for x in batch], "".join(batch)) if batch else operand
                named.append(Operand(name, letters, None, text.format.text))
            elif name not in used:
                raise DataError(f"kernel: no statement reads argument '{name}'; leave it out")
            else:
                named.append(Operand(name, used[name], operand.dtype))
        sizes = {x: size for x, size in trace.sizes.items() if x not in letters}
        classes = tuple((x, divisible(trace.sizes[x])) for x in letters)
        uneven = hints(letters[len(batch) :], operands[packed], kind)["uneven"]
        spec = ChainSpec(
            self.__name__, tuple(named), packed, tuple(trace.statements), dtype, classes, uneven, tuple(sizes.items()),
            steps, returned=returned, location=user_location(), full=_is_full(operands[packed]), rounded=self._rounded,
        )  # fmt: skip
        return spec, batch


def _kind(operand) -> tuple:
    """What a kernel is compiled for of an operand, and all that says whether it fits."""
    if isinstance(operand, torch.Tensor):
        return operand.dtype, operand.shape, operand.device
    if isinstance(operand, Pattern):
        return operand.format.text, operand.shape, operand.device, _is_full(operand), operand.uneven
    return (type(operand),)


def _is_full(pattern: Pattern) -> bool:
    """Is every place of a stored block an entry, as far as is known without a look at numbers?"""
    return not isinstance(pattern.format, Sum) and pattern.part().valid is None


def _check(names, operands, patterns, seed: str) -> None:
    for name, operand in zip(names, operands):
        if isinstance(operand, PackedTensor):
            raise DataError(f"kernel: argument '{name}' is packed; give its .pattern, a chain reads no values of it")
        if not isinstance(operand, (torch.Tensor, Pattern)):
            raise DataError(f"kernel: argument '{name}' is {type(operand).__name__}; it takes tensors and one pattern")
        if isinstance(operand, torch.Tensor) and operand.dtype not in DTYPES and name != seed:
            raise DataError(f"kernel: argument '{name}' is {operand.dtype}; it takes floating point numbers")
    if len(patterns) != 1:
        raise DataError(f"kernel: {len(patterns)} arguments are patterns; a chain has one")
    if isinstance(operands[patterns[0]].format, Sum):
        raise DataError(f"kernel: argument '{names[patterns[0]]}' is a sum of formats, for which a chain has no code")


@dataclasses.dataclass(frozen=True)
class Fit:
    """How operands fit a kernel: sizes of the batch, shapes of the pattern below it and of the first result, were it
    dense, shapes and dtypes of the others. It follows from what `_kind` says of the operands.
    """

    batch: tuple[int, ...]
    pattern: tuple[int, ...]
    shape: tuple[int, ...]
    others: tuple[tuple[tuple[int, ...], torch.dtype], ...]


class ChainKernel(Kernel):
    """A compiled chain: `kernel(*operands)` runs it on operands of the same formats, dtypes and head sizes."""

    def __init__(self, spec: ChainSpec, loaded, device, batch: tuple[str, ...]):
        super().__init__(spec, loaded, device)
        self._batch = batch

    @property
    def text(self) -> str:
        """What the compiler was given."""
        return emit_chain(self.spec)

    def __call__(self, *operands):
        return self.launched(operands, self.fitted(operands))

    def fitted(self, operands) -> Fit:
        """What a launch needs that follows from the kinds of the operands; raises an error where they do not fit."""
        spec = self.spec
        if len(operands) != len(spec.operands) or not isinstance(operands[spec.packed], Pattern):
            raise DataError(f"kernel: '{spec.name}' takes {', '.join(o.name for o in spec.operands)}")
        require_devices(self.target, operands)
        sizes = self._sizes(operands)
        batch = tuple(sizes[x] for x in self._batch)
        pattern = self._batched(operands, batch)
        if pattern.format.text != spec.operands[spec.packed].format:
            raise ScheduleError(f"kernel: the pattern is {pattern.format}; compile the chain for it")
        if spec.full and not _is_full(pattern):
            raise ScheduleError(
                "kernel: stored blocks of the pattern have places without an entry; compile the chain for it"
            )
        first, *others = (tuple(sizes[x] for x in output.letters) for output in spec.outputs)
        dtypes = map(spec.dtype_of, spec.outputs[1:])
        return Fit(batch, tuple(pattern.shape), first, tuple(zip(others, dtypes)))

    def launched(self, operands, fit: Fit):
        """The results of operands of the kinds that were found to fit."""
        spec = self.spec
        if torch.is_grad_enabled() and any(x.requires_grad for x in operands if isinstance(x, torch.Tensor)):
            raise DataError("kernel: a chain has no gradient yet; call it under torch.no_grad(), or line by line")
        pattern = self._batched(operands, fit.batch)
        dense = [operand for n, operand in enumerate(operands) if n != spec.packed]
        shape = pattern.part().values_shape if spec.sampled else fit.shape
        with torch.no_grad():
            first, *rest = library.chain(
                dense, self.arrays(pattern), list(shape), self.key, list(fit.pattern), fit.others
            )
        first = PackedTensor(pattern, {"": first}) if spec.sampled else first
        return (first, *rest) if rest else first

    def _batched(self, operands, sizes) -> Pattern:
        pattern = operands[self.spec.packed]
        return pattern.batched(sizes, "".join(self._batch)) if sizes else pattern

    def _sizes(self, operands) -> dict[str, int]:
        """The size of each letter; raises `DataError` where operands do not fit."""
        spec, sizes = self.spec, dict(self.spec.sizes)
        for known, operand in zip(spec.operands, operands):
            if known.dtype is not None and (not isinstance(operand, torch.Tensor) or operand.dtype != known.dtype):
                raise ScheduleError(f"kernel: '{known.name}' is not {known.dtype}; compile the chain for it")
            own = known.indices if known.dtype is not None else known.indices[len(self._batch) :]
            if len(own) != len(operand.shape):
                raise DataError(f"kernel: '{known.name}' has {len(operand.shape)} axes; it takes [{', '.join(own)}]")
            for letter, size in zip(own, operand.shape):
                if sizes.setdefault(letter, size) != size:
                    raise DataError(f"kernel: axis '{letter}' of '{known.name}' has size {size} and {sizes[letter]}")
        return sizes

    def run(self, dense, packed, shape):
        raise NotImplementedError("kernel: a chain is called with its operands in their order")
