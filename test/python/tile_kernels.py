# SPDX-License-Identifier: Apache-2.0
"""Layers on the CPU whose kernels, written in torch, read copies of values as those of tensor cores do.

The weight of a product is put together from the copy alone, so that a stale one shows in the numbers.
"""

from __future__ import annotations

import hashlib
import types

import lacis
import torch
from lacis.formats import Format, Sum, decompose
from lacis.nn import SparseModule, weight_module
from lacis.patterns import Pattern
from lacis.patterns.derivation import Derivation
from lacis.patterns.functions import make
from lacis.patterns.regroup import exchange_chunks
from lacis.patterns.structure import Structure
from lacis.runtime import library
from lacis.runtime.compile import Kernel
from lacis.runtime.kernels import Derived

_GROUP = "({0} floordiv 64 mod 6, {1} floordiv 16 mod 4)"
_LEVELS = "{0} floordiv 384 : dense, {1} floordiv 64 : compressed<unique=false>, " + _GROUP
_ROWS = f"#lacis.format<(i, j) -> ({_LEVELS.format('i', 'j')} : bitmap, i mod 64 : dense, j mod 16 : dense)>"
_COLUMNS = f"#lacis.format<(i, j) -> ({_LEVELS.format('j', 'i')} : bitmap, i mod 16 : dense, j mod 64 : dense)>"
LAYOUTS = {
    rows: Derivation("layout", (("capacity", 16), ("format", format), ("swizzle", line)))
    for rows, format, line in ((True, _ROWS, 32), (False, _COLUMNS, 128))
}

FORMATS = {
    "16": lacis.Bsr(16, 16),
    "32": lacis.Bsr(32, 32),
    "sum": decompose(head=lacis.BlockedEll(16, 16, width=1), rest=lacis.Bsr(16, 16)),
}

_kernels: dict[str, TileKernel] = {}
_layouts: dict[tuple, object] = {}


class Bound:
    """A kernel on given tensors but the first one, as `lacis.runtime.bound.BoundCall`."""

    def __init__(self, tensors, key, packed_shape, dropped, tail, otherwise=None, fills=()):
        self.fills = fills
        self.tensors, self.kernel, self.packed_shape = tensors, _kernels[key], packed_shape
        self.dropped, self.tail, self.number = dropped, tail, self

    @staticmethod
    def run(x, call):
        for fill in call.fills:
            fill()
        shape = [*x.shape[: x.ndim - call.dropped], *call.tail]
        return call.kernel.compute([x, *call.tensors], shape, call.packed_shape)


class BoundPair:
    """The same where two operands come later, as `lacis.runtime.bound.BoundPair`."""

    def __init__(self, tensors, key, packed_shape, shape):
        self.tensors, self.kernel, self.packed_shape = tensors, _kernels[key], packed_shape
        self.shape, self.number = shape, self

    @staticmethod
    def run(x, y, call):
        return call.kernel.compute([x, y, *call.tensors], call.shape, call.packed_shape)


class TileKernel(Kernel):
    """An einsum with one packed operand in half types, in stored blocks."""

    launch = staticmethod(library.einsum)
    bind = Bound
    bound = staticmethod(lambda: Bound.run)
    bind_pair = BoundPair
    bound_pair = staticmethod(lambda: BoundPair.run)
    bind_layer = staticmethod(lambda *call: None)  # these run in Python

    def __init__(self, spec, target, device):
        format = Format.parse(spec.operands[spec.packed].format)
        self.parts = dict(format.parts) if isinstance(format, Sum) else {"": format}
        arrays = lambda format: format.buffers if spec.sampled else [*format.buffers, "values"]
        storage = [f"{part}.{name}".lstrip(".") for part in self.parts for name in arrays(self.parts[part])]
        step = LAYOUTS[spec.operands[spec.packed].indices[0] in spec.output.indices]
        self.line = step.line
        derived = [] if spec.sampled else [Derived(part, step, "values") for part in self.parts]
        key = hashlib.sha256(repr(spec).encode()).hexdigest()
        also = lambda key: _kernels.setdefault(key, self)
        loaded = types.SimpleNamespace(key=key, target=target, storage=storage, derived=derived, name_also=also)
        super().__init__(spec, loaded, device)
        _kernels[key] = self

    def scheduled(self, steps):
        from lacis.runtime.gradients import family

        return family(self, lambda spec, plain=False: TileKernel(spec, self.target, self.device), steps)

    def compute(self, tensors, shape, packed_shape):
        spec, count = self.spec, sum(operand.format is None for operand in self.spec.arguments)
        dense, arrays = iter(tensors[:count]), dict(zip(self.names, tensors[count:]))
        structures = {part: self._structure(part, arrays, packed_shape) for part in self.parts}
        found = []
        for operand in spec.operands:
            if operand.format is None:
                x = next(dense)
                found.append((operand, x.reshape(-1, *x.shape[-(len(operand.indices) - 1) :]).float()))
            elif not spec.sampled:
                found.append((operand, sum(self._weight(part, each, arrays) for part, each in structures.items())))
        terms = ",".join("".join(operand.indices) for operand, _ in found)
        y = torch.einsum(f"{terms}->{''.join(spec.output.indices)}", *(tensor for _, tensor in found))
        if spec.sampled:
            ((part, structure),) = structures.items()
            y = Pattern(structure.format, {"": structure}).gather(y)
        y = y + next(dense).float() if spec.bias is not None else y
        return y.to(spec.dtype).reshape(shape)

    def _structure(self, part, arrays, shape) -> Structure:
        buffers = {name: arrays[part, "", name] for name in self.parts[part].buffers}
        slots = len(buffers["crd1"].reshape(-1))
        return Structure(self.parts[part], tuple(shape), buffers, slots, buffers["crd1"].device, None)

    def _weight(self, part, structure, arrays) -> torch.Tensor:
        """The dense weight that a copy of values holds, in float32."""
        ((step, tiles),) = [(a[1], t) for a, t in arrays.items() if a[0] == part and a[1]]
        layout = _layout(structure, step.of_pattern)
        (rows, columns), (height, width) = layout.format.tile, structure.shape
        dense = torch.zeros(-(-height // rows) + 1, -(-width // columns) + 1, rows, columns)
        place = layout.tile_rows.clamp(max=len(dense) - 1), layout.tile_columns.clamp(max=dense.shape[1] - 1)
        dense.index_put_(place, exchange_chunks(tiles, self.line).float(), accumulate=True)
        return dense.transpose(1, 2).flatten(0, 1).flatten(1, 2)[:height, :width]


def _layout(structure, step):
    """The execution layout of a structure, made once for each pattern."""
    arrays = tuple(tuple(tensor.reshape(-1).tolist()) for tensor in structure.buffers.values())
    key = structure.format, structure.shape, step, arrays
    if key not in _layouts:
        _layouts[key] = make(step, structure)
    return _layouts[key]


def run(tensors, sizes, key):
    """As the overload of the operator for inference."""
    return _kernels[key].compute(tensors, sizes[1 : 1 + sizes[0]], sizes[1 + sizes[0] :])


def packed(format, rows=96, columns=160, seed=0, dtype=torch.bfloat16):
    """A random weight in whole blocks of 16."""
    draw = torch.Generator().manual_seed(seed)
    kept = torch.rand(rows // 32, columns // 32, generator=draw) < 0.5
    mask = kept.repeat_interleave(32, 0).repeat_interleave(32, 1)
    weight = torch.randn(rows, columns, generator=draw).to(dtype)
    return lacis.pack(weight * mask, format, mask=mask)


def layer(format, rows=96, columns=160, bias=True, seed=0, dtype=torch.bfloat16) -> SparseModule:
    """A linear layer of such a weight."""
    torch.manual_seed(seed)
    dense = torch.nn.Linear(columns, rows, bias=bias, dtype=dtype)
    weight = weight_module(packed(format, rows, columns, seed, dtype))
    return SparseModule(dense, "linear", weight, "cpu", TileKernel)


def tokens(*shape, grad=False, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*(shape or (5, 160)), generator=draw).bfloat16().requires_grad_(grad)


def expected(layer, x):
    with torch.no_grad():
        y = x.float() @ layer.weight.to_dense().float().T
        return (y if layer.bias is None else y + layer.bias.float()).bfloat16()


def inference(layer, x):
    with torch.no_grad():
        return layer(x)


def assert_fresh(layer, x=None):
    """Inference has the numbers of the present values."""
    x = tokens() if x is None else x
    assert torch.equal(inference(layer, x), expected(layer, x))


class Ways:
    """Counts the calls that the quick way answers; `general` closes it."""

    def __init__(self, layer, general=False):
        if layer._quick_steps is None:
            layer.bind()
        self.quick, self.answered, self.general = layer._quick_steps, 0, general
        layer._quick_steps = self

    def __call__(self, x):
        y = None if self.general else self.quick(x)
        self.answered += y is not None
        return y
