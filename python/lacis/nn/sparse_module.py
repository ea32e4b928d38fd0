# SPDX-License-Identifier: Apache-2.0
"""The module that takes the place of a dense layer and runs its operator's kernel."""

from __future__ import annotations

import dataclasses

import torch
from torch import is_grad_enabled
from torch.compiler import is_dynamo_compiling
from torch.nn.parallel import DistributedDataParallel

from .. import knobs
from ..capture import kernel_spec, kind_of
from ..emit import same_kernel
from ..errors import DataError
from ..operators import OPERATORS
from ..patterns.capturing import is_captured
from ..patterns.transforms import is_transformed
from .cast import Cast, cast_of
from .copied import DenseCopy
from .dense import Replaced
from .eager import run_eager
from .quick import QuickCall
from .ranks import require_equal_under_ddp
from .recorded import entries_alone, require_pattern_in, revision
from .step import QuickSteps
from .takes_dense_states import TakesDenseStates

_OWN = set(torch.nn.Module().__dict__)


class SparseModule(TakesDenseStates, torch.nn.Module):
    """Runs `operator` with the packed `weight`; all else (bias, hooks, attributes) is the dense module's.

    What it holds is plain tensors and text, so it copies, pickles and moves like any module. The kernel is found
    by `loader(spec, target, device)`, and again when dtype, device or process change.
    """

    collector = None  # who asks for the gradient of all places, for an update of the pattern

    def __init__(
        self,
        dense,
        operator: str,
        weight,
        target: str,
        loader,
        steps=(),
        location=None,
        gradient_steps=None,
        deterministic: bool = True,
        name: str | None = None,
        strict: bool = False,
    ):
        super().__init__()
        self._take(dense, OPERATORS[operator].attribute, weight)
        taken = {name: value for name, value in self.__dict__.items() if name not in _OWN or "hook" in name}
        self.operator = operator
        self.target = target
        self.loader = loader
        self.steps = tuple(steps)
        self.deterministic = deterministic
        self.strict = strict
        self.gradient_steps = dict(gradient_steps or {})  # by slot, see lacis.capture.gradient
        self.location = location
        self._path = name
        self._key: str | None = None
        self._quick: QuickCall | None = None  # in inference
        self._quick_steps: QuickSteps | None = None  # in training
        self._casts: dict[torch.dtype, Cast] = {}  # by the dtype of an autocast region
        self._bound: frozenset[str] = frozenset()
        self.runs_dense = False  # the dense product is faster, and may take its place
        self._dense = DenseCopy()
        hidden = {name: value for name, value in taken.items() if self.__dict__[name] is not value}
        self._replaced = Replaced(type(dense), tuple(taken), hidden, tuple(dense._parameters))

    def _take(self, dense, attribute, weight) -> None:
        """Attributes, tensors and hooks of the dense module, the weight apart; hooks are shared, not copied."""
        for name, value in dense.__dict__.items():
            if name not in _OWN or "hook" in name:
                self.__dict__[name] = value
        self.training = dense.training
        for name, parameter in dense._parameters.items():
            if name != attribute:
                self.register_parameter(name, parameter)
        for name, buffer in dense._buffers.items():
            self.register_buffer(name, buffer, persistent=name not in dense._non_persistent_buffers_set)
        for name, child in dense._modules.items():
            self.add_module(name, child)
        self.add_module(attribute, weight)

    @property
    def _title(self) -> str:
        """What errors call the layer."""
        return f"{self.operator} '{self._path}'" if self._path else self.operator

    def forward(self, *args, **named):
        args = self._replaced.in_order(args, named) if named else args
        traced = is_dynamo_compiling()
        quick = None if traced or self.runs_dense or len(args) != 1 else self._quick
        if is_grad_enabled():
            return self._recorded(args, quick, traced)
        y = None if quick is None else quick(args[0])
        return self.general(*args) if y is None else y

    def _recorded(self, args, quick: QuickCall | None, traced: bool):
        """`forward` where autograd may record it."""
        if not traced and DistributedDataParallel._active_ddp_module is not None:
            require_equal_under_ddp()
        y = None
        if quick is not None:
            quick.release()
            y = self._quick_steps(args[0])
        y = self.general(*args) if y is None else y
        return y if self.collector is None else self.collector.watch(self, args, y)

    def general(self, *args):
        """`forward` in every mode, which says what is wrong with its arguments."""
        operator = OPERATORS[self.operator]
        if not torch.compiler.is_compiling():
            self.follow()
        for given in args:
            if not isinstance(given, torch.Tensor):
                what = f"a {type(given).__module__}.{type(given).__name__}".replace("builtins.", "")
                raise DataError(f"{self.operator}: the input is {what}, not a torch tensor; torch.as_tensor makes one")
        if self.target == "eager" and not self.runs_dense:
            return run_eager(self, operator, args)
        looked_into = not torch.compiler.is_compiling() and is_transformed()
        if self.runs_dense and not (looked_into or torch.compiler.is_compiling()):
            return operator.eager(self._dense_weight(), self, *args)
        if self._key is None:
            self.bind()
        dense, shape = operator.inputs(self, *args)
        self._check(dense)
        if looked_into:
            return operator.answer(self, self._looked_into(dense, shape), *args)
        if not torch.compiler.is_compiling() and knobs.debug:
            self.weight.validate()
        cast = cast_of(self)
        storage = self._tensors(self._arrays if cast is None else cast.arrays)
        companions = self._tensors(self._gradient_arrays(dense, storage, cast)) if torch.is_grad_enabled() else []
        key = self._key if cast is None else cast.family.key
        y = self._launch(dense, storage, shape, key, list(self.weight.packed_shape), companions)
        if not torch.compiler.is_compiling() and y.grad_fn is not None:
            require_pattern_in(y.grad_fn, self)
        return operator.answer(self, y, *args)

    def follow(self) -> bool:
        """Take over what was written into the weight's arrays; False where the kernel in use is another one now.

        That is so where the weight has another density class, other integer types, or another dtype. Raises `DataError`
        where the arrays are malformed, or hold nothing yet.
        """
        if is_captured(self.weight.device):
            for part in self.weight._parts():
                part.is_captured = True
        try:
            self.weight.follow()
        except DataError as error:
            raise DataError(f"{self._title}: {error.message}") from None
        if self._key is None or self.weight.dtype != self._spec.dtype:
            return False
        now = revision(self.weight._parts())
        if now != self._revision:
            self._revision, before, self._sizes = now, self._sizes, self.weight.sizes()
            if self._sizes != before and not same_kernel(self.spec(), self._spec):
                self.bind()
                return False
        return True

    def _looked_into(self, dense, shape) -> torch.Tensor:
        """A call in a transform of `torch.func` or forward mode: the kernel reads the values where they are stored."""
        weight, family = self.weight, self._family
        places = [] if family.walks_copies else self._arrays
        storage = self._tensors(places)
        companions = self._gradient_arrays(dense, storage, None) if places and torch.is_grad_enabled() else []
        if family.walks_copies:
            return family.kernel.plain().run(dense, weight.packed(), shape)
        for n in family.own_values:
            storage[n] = entries_alone(storage[n], weight._part(places[n][0]).valid)
        return self._launch(dense, storage, shape, self._key, list(weight.packed_shape), self._tensors(companions))

    @property
    def is_bound(self) -> bool:
        """Has it a kernel?"""
        return self._key is not None

    @property
    def dtype(self) -> torch.dtype:
        """That of the kernel which was bound last."""
        return self._spec.dtype

    def _dense_weight(self) -> torch.Tensor:
        """The dense weight: recorded by autograd, or a copy that is kept until the values change."""
        return self._dense.of(self.weight) if self.runs_dense else self.weight.to_dense()

    @property
    def derived_bytes(self) -> int:
        """Bytes beside the weight itself: companions, work lists, copies of values, a dense copy."""
        copy = self._dense.tensor
        return self.weight.derived_bytes + (0 if copy is None else copy.numel() * copy.element_size())

    def _tensors(self, places) -> list[torch.Tensor]:
        weight = self.weight
        return [weight._part(part).tensor(name) for part, name in places]

    def _check(self, dense) -> None:
        weight = self.weight
        casts = torch.is_autocast_enabled(weight.device.type)
        for tensor in dense:
            if (tensor.dtype != weight.dtype and not casts) or tensor.device != weight.device:
                raise DataError(
                    f"{self._title}: the weight is {weight.dtype} on {weight.device}, an operand {tensor.dtype} on "
                    f"{tensor.device}; cast or move it, or run under torch.autocast"
                )

    def bind(self):
        """Compile or find the kernel for the present dtype, device and density class, and load it."""
        spec = self.spec()
        kernel = self.loader(spec, self.target, self.weight.device)
        self._spec, self._revision, self._casts = spec, revision(self.weight._parts()), {}
        self._sizes, self._family = self.weight.sizes(), kernel.scheduled(self.gradient_steps)
        self._arrays = self.weight.bind(kernel.names)
        self._companions: list[tuple[str, str]] = []
        self._launch = kernel.launch
        self._key = self._family.key
        operator = OPERATORS[self.operator]
        quick = operator.quick and not knobs.debug
        self._quick = QuickCall(self, operator, kernel, self._arrays) if quick else None
        self._quick_steps = QuickSteps(self, operator) if quick else None
        self.bind_gradients(self._bound)
        return kernel

    def family(self):
        """The kernel with those of its gradients; see `lacis.runtime.gradients`."""
        if self._key is None:
            self.bind()
        return self._family

    def slots(self) -> list[str]:
        """What there may be gradients for: the dense operands, and the values unless they are frozen."""
        return [slot for slot in self.family().slots if self.weight.requires_grad or not slot.endswith("values")]

    def bind_gradients(self, slots=None) -> None:
        """Compile the kernels of gradients, of all that can train by default, and make the arrays that they walk."""
        bound = self._bound.union(self.slots() if slots is None else slots)
        self._companions = self.weight.bind(self._family.bind(bound).companions)
        self._bound = bound
        for cast in self._casts.values():
            cast.bind_gradients(self.weight, self._bound)

    def _gradient_arrays(self, dense, storage, cast: Cast | None):
        """Where the arrays are that the gradients of this call walk; their kernels are compiled at the first call."""
        if not torch.compiler.is_compiling():
            asked = (self._family if cast is None else cast.family).asked(dense, storage)
            if not self._bound.issuperset(asked):
                self.bind_gradients(asked)
        return self._companions if cast is None else cast.companions

    def train(self, mode: bool = True):
        """As for any module; the kernels of the gradients are compiled before the first step, not in it."""
        super().train(mode)
        if mode and self._key is not None and not self._bound:
            self.bind_gradients()
        return self

    def spec(self):
        """The specification of the kernel at the present dtype."""
        operator = OPERATORS[self.operator]
        weight, has_bias, kind = self.weight.described(), operator.has_bias(self), kind_of(self.target)
        spec = kernel_spec(operator, weight, has_bias, self.steps, self.location, kind)
        return dataclasses.replace(spec, deterministic=self.deterministic, plain=self.strict)

    def _apply(self, fn, recurse=True):
        before = (self.weight.dtype, self.weight.device)
        super()._apply(fn, recurse)
        after = (self.weight.dtype, self.weight.device)
        if self._key is not None and before != after:
            self._key = self._quick = self._quick_steps = None
            self._casts, self._dense = {}, DenseCopy()
            if after[1].type in ("cpu", "cuda") and self.weight.has_content:
                self.bind()
        return self

    def __getstate__(self):
        state = dict(self.__dict__)
        for name in ("_family", "_launch", "_arrays", "_companions", "_spec", "_revision", "_sizes", "collector"):
            state.pop(name, None)
        state["_key"] = state["_quick"] = state["_quick_steps"] = None
        state["_casts"], state["_dense"] = {}, DenseCopy()
        return state

    def _get_name(self) -> str:
        return f"Sparse{self._replaced.type.__name__}"

    def extra_repr(self) -> str:
        sizes = [f"{k}={getattr(self, k)}" for k in ("in_features", "out_features") if hasattr(self, k)]
        bias = [f"bias={self.bias is not None}"] if "bias" in self._parameters else []
        return ", ".join([*sizes, *bias, f"target={self.target}"])
