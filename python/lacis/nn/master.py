# SPDX-License-Identifier: Apache-2.0
"""A packed weight that is derived from a dense Parameter: the entries from its values, the values in each call."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch.nn.parallel import DistributedDataParallel

from ..operators import OPERATORS
from ..packing import PackedTensor
from ..patterns.capturing import is_captured
from ..patterns.places import Places, place_pattern, places_of
from ..patterns.seen import Seen, trained_by_graph
from ..sparsifiers.choose import blocked, spread
from .probe import Join, Probe
from .sharded import whole


class Master:
    """What makes `weight`, a packed module, from a dense one.

    `sparsifier` chooses, `mode` and `decay` say the gradient.

    The entries are chosen anew in each call (`is_chosen_anew`), or stay as they are until somebody calls `keep`.
    """

    def __init__(self, weight, sparsifier, block: tuple[int, ...] | None, mode: str, decay: float):
        self.weight, self.sparsifier, self.mode, self.decay = weight, sparsifier, mode, decay
        self.is_chosen_anew = True
        self.places: Places = places_of(weight.packed().pattern, block)
        self._seen: Seen | None = None

    @property
    def positions(self) -> torch.Tensor:
        """int64 [count], ascending: the places that are kept, blocks where these are stored whole, else entries."""
        return self.places.positions

    def packed(self) -> PackedTensor:
        """The packed weight, as it was last derived."""
        return self.weight.packed()

    def refresh(self, dense: torch.Tensor) -> None:
        """Have the packed weight hold the entries of a dense one, as it is now."""
        captured = is_captured(dense.device)
        if captured and dense.requires_grad:
            trained_by_graph(dense)
        if self._seen is not None and self._seen.still(dense) and not captured:
            return
        values = whole(dense.detach()).reshape(self.places.shape)
        with torch.no_grad():
            if self.is_chosen_anew:
                self._choose(values)
            self._write(values)
        self._seen = Seen(dense) if _counts_changes(dense) else None

    def keep(self, positions: torch.Tensor) -> None:
        """Keep these places, int64 ascending, from now on until another call; the next `refresh` brings their values.

        Raises what the format does; nothing has changed then.
        """
        self.kept(positions)()

    def kept(self, positions: torch.Tensor):
        """The call that does what `keep` does, with all made that can fail."""
        device = self.weight.device
        pattern, places = place_pattern(self.weight.format, self.places.shape, positions.to(device), self.places.block)
        pattern.uneven = self.weight.described().pattern.uneven  # without a wait
        zeros = torch.zeros(len(places.positions), places.width, dtype=self.weight.dtype, device=device)
        replacements = self.weight.replacements(PackedTensor(pattern, places.scatter(zeros)))

        def write():
            self.weight.take(replacements, pattern)
            held = self.places.positions, self.places.rows
            if held[0].shape == places.positions.shape:  # a compiled graph and a captured one hold these
                held = held[0].copy_(places.positions), held[1].copy_(places.rows)
            else:
                held = places.positions, places.rows
            self.places, self._seen = dataclasses.replace(places, positions=held[0], rows=held[1]), None

        return write

    def mask(self, dense: torch.Tensor) -> torch.Tensor:
        """bool of the shape of a dense weight: what the sparsifier keeps of it, or where the pattern is."""
        if self.is_chosen_anew:
            return self.sparsifier(dense.detach().reshape(self.places.shape)).reshape(dense.shape)
        block, shape = self.places.block, self.places.shape
        grid = shape if block is None else [-(-size // b) for size, b in zip(shape, block)]
        kept = torch.zeros(math.prod(grid), dtype=torch.bool, device=dense.device).index_fill(0, self.positions, True)
        kept = kept.reshape(grid)
        return (kept if block is None else spread(kept, block, shape)).reshape(dense.shape)

    def values(self, dense: torch.Tensor) -> dict[str, torch.Tensor]:
        """The values of the parts at the entries of a dense weight; differentiable in it."""
        dense, block = dense.reshape(self.places.shape), self.places.block
        rows = dense.reshape(-1, 1) if block is None else blocked(dense, block).reshape(-1, self.places.width)
        return self.places.scatter(rows.index_select(0, self.positions))

    def to(self, device: torch.device) -> None:
        """The weight was moved to this device."""
        if self.positions.device != device:
            moved = self.positions.to(device), self.places.rows.to(device)
            self.places = dataclasses.replace(self.places, positions=moved[0], rows=moved[1])
        self._seen = None

    def _choose(self, dense: torch.Tensor) -> None:
        mask, block = self.sparsifier(dense), self.places.block
        if block is not None:
            mask = blocked(mask.to(torch.uint8), block).any(-1)
        mask = mask.reshape(-1)
        if mask.device.type == "cpu" or not getattr(self.sparsifier, "counts", False):
            positions = mask.nonzero().reshape(-1)
        else:
            positions = mask.nonzero_static(size=len(self.positions)).reshape(-1)  # without a wait
        if mask.device.type != "cpu" or not torch.equal(positions, self.positions):
            self.keep(positions)

    def _write(self, dense: torch.Tensor) -> None:
        found = self.values(dense)
        for name, part in self.weight._named_parts():
            if part.values.device.type != "cpu" or not torch.equal(part.values, found[name]):
                part.values.copy_(found[name])

    def __getstate__(self):
        return {**self.__dict__, "_seen": None}


class MasterForward:
    """The `forward` of a layer whose module and dense Parameter stay, while its product runs on the packed weight.

    `layer` is the sparse module that runs it, which the model does not hold: its files, optimizers, and what shares out
    Parameters over ranks see the dense one alone.
    """

    def __init__(self, module: torch.nn.Module, layer, master: Master, operator):
        self.module, self.layer, self.master = module, layer, master
        self._name, self._attribute = operator.name, operator.attribute
        for name, held in layer.__dict__.items():  # the module runs its hooks
            if "hook" in name and isinstance(held, dict):
                layer.__dict__[name] = type(held)()

    @property
    def weight(self) -> torch.Tensor:
        """The dense weight as the module has it now."""
        return getattr(self.module, self._attribute)

    def __call__(self, *args, **named):
        layer, master, dense = self.layer, self.master, self.weight
        args = layer._replaced.in_order(args, named) if named else args
        trains = torch.is_grad_enabled() and dense.requires_grad
        is_traced = torch.compiler.is_compiling()
        if trains and master.decay:
            decayed = Decayed.apply(dense, master.mask(dense), master.decay)
        else:
            decayed = dense
        if is_traced and (master.is_chosen_anew or layer.target == "eager"):
            return self._masked(decayed, args)
        if not is_traced:
            self._follow(dense)
            master.refresh(dense)
        if not is_traced and not (trains and master.mode == "masked"):
            y = layer(*args)
        else:
            values = master.values(decayed if master.mode == "masked" else dense.detach())
            names = {
                f"{self._attribute}.{name}.values" if name else f"{self._attribute}.values": name for name in values
            }
            given = {path: values[name] for path, name in names.items()}
            y = torch.func.functional_call(layer, given, args)
        return self._straight(y, decayed, args) if trains and master.mode == "ste" else y

    def refresh(self) -> None:
        """Have the packed weight be that of the dense one, as it is now."""
        self._follow(self.weight)
        self.master.refresh(self.weight)

    def _follow(self, dense: torch.Tensor) -> None:
        """Device, dtype, bias and mode of the module, which others may have changed."""
        layer, module = self.layer, self.module
        if layer.weight.device != dense.device or layer.weight.dtype != dense.dtype:
            layer.to(device=dense.device, dtype=dense.dtype)
        if self.master.positions.device != dense.device:
            self.master.to(dense.device)
        for name, parameter in module._parameters.items():
            if name != self._attribute and layer._parameters.get(name) is not parameter:
                layer._parameters[name] = parameter
        if layer.training != module.training:
            layer.train(module.training)

    def _straight(self, y: torch.Tensor, dense: torch.Tensor, args) -> torch.Tensor:
        """The product, whose gradient in the dense weight is that of a dense product."""
        operator = OPERATORS[self._name]
        given, shape = operator.inputs(self.module, *args)
        given = [each.detach() for each in given[: len(operator.operands) - 1]]  # without the bias
        zeros = Probe.apply(dense.reshape(self.master.places.shape), y.dtype, operator.statement, tuple(shape), *given)
        return Join.apply(y, operator.answer(self.module, zeros, *args))

    def _masked(self, dense: torch.Tensor, args) -> torch.Tensor:
        """The same numbers in torch's own operators: a graph cannot hold a pattern that it chooses itself."""
        mask = self.master.mask(dense)
        held = Straight.apply(dense, mask) if self.master.mode == "ste" else torch.where(mask, dense, 0)
        return OPERATORS[self._name].eager(held, self.module, *args)


class Decayed(torch.autograd.Function):
    """A weight as it is, whose gradient pulls what is not kept towards 0: `+ decay * (1 - mask) * weight` (SR-STE, Zhou
    et al., 2021)."""

    @staticmethod
    def forward(ctx, weight, mask, decay):
        ctx.save_for_backward(weight, mask)
        ctx.decay = decay
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        weight, mask = ctx.saved_tensors
        return grad + torch.where(mask, 0, weight) * ctx.decay, None, None


class Straight(torch.autograd.Function):
    """A weight under a mask, whose gradient passes the mask (Bengio et al., 2013)."""

    @staticmethod
    def forward(ctx, weight, mask):
        return torch.where(mask, weight, 0)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def _counts_changes(dense: torch.Tensor) -> bool:
    """Does torch count the changes of this tensor? FSDP2 gathers it into the same memory without a count."""
    if dense.is_inference():
        return False
    alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
    return alone or DistributedDataParallel._active_ddp_module is not None
