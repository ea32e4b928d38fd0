# SPDX-License-Identifier: Apache-2.0
"""Writes a kernel as one `linalg.generic` on encoded tensors, and one more for what follows the sum."""

from __future__ import annotations

import dataclasses
import json

import torch

from ..activations import find_activation
from ..capture.semirings import SEMIRINGS
from ..capture.spec import KernelSpec, Operand
from ..formats import binding_texts, kind_texts
from .arithmetic import Arithmetic, number
from .steps import function_location, steps_attribute

# Bool is a byte in memory, 0 or 1.
TYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.bool: "i8"}
TYPES |= {torch.int64: "i64"}  # of seeds
SUM_TYPES = {"f64": "f64", "i8": "i8"}
_FEW_EIGHTHS = 4  # stored at the most: what makes a difference to a default schedule


def emit(spec: KernelSpec) -> str:
    """The MLIR text of a kernel.

    >>> csr = "#lacis.format<(i, j) -> (i : dense, j : compressed)>"
    >>> w = Operand("w", ("i", "j"), torch.float32, csr)
    >>> x, y = Operand("x", ("b", "j"), torch.float32), Operand("y", ("b", "i"), torch.float32)
    >>> text = emit(KernelSpec("linear", (w, x), y))
    >>> text.splitlines()[0]
    '#w = #lacis.format<(i, j) -> (i : dense, j : compressed)>'
    """
    return _Writer(spec).text()


def density(spec: KernelSpec) -> dict[str, list[str]]:
    """What is told of how much is stored, in the dialect's words: default schedules of products sampled on a pattern
    `eighths`, of others `slabs`; `room` concerns products sampled on a pattern alone."""
    return {
        "eighths": [f"lacis.eighths = {_FEW_EIGHTHS} : i64"] if spec.eighths <= _FEW_EIGHTHS else [],
        "slabs": [] if spec.slabs is None else [f"lacis.slabs = {spec.slabs} : i64"],
        "room": ["lacis.room"] if spec.room else [],
    }


def facts(operand: Operand, divisible: dict[str, int], hints: dict[str, tuple[str, ...]]) -> list[str]:
    """What is told of an argument: its name, what its sizes are multiples of, and by hint which letters have it."""
    words = [f'lacis.name = "{operand.name}"']
    classes = [divisible.get(letter, 1) for letter in operand.indices]
    if any(c > 1 for c in classes):
        words.append(f"lacis.divisible = array<i64: {', '.join(map(str, classes))}>")
    for hint, letters in hints.items():
        flags = [letter in letters for letter in operand.indices]
        if any(flags):
            words.append(f"lacis.{hint} = array<i1: {', '.join(str(flag).lower() for flag in flags)}>")
    return words


def same_kernel(one: KernelSpec, other: KernelSpec) -> bool:
    """Do two specifications ask for one kernel, and its gradients for the same ones?"""
    alike = dataclasses.replace(one, eighths=other.eighths) == other
    return alike and density(one) == density(other)


class _Writer:
    def __init__(self, spec: KernelSpec):
        self.spec = spec
        self.element = TYPES[spec.dtype]  # of the output
        self.sum_type = SUM_TYPES.get(self.element, "f32")
        self.semiring = SEMIRINGS[spec.semiring]
        self.names = {id(o): f"%{_identifier(o.name)}" for o in spec.arguments}
        self.source = spec.operands[spec.packed]
        self.loc = f" loc({json.dumps(spec.location[0])}:{spec.location[1]}:0)" if spec.location else ""
        self.lines: list[str] = []

    def text(self) -> str:
        spec = self.spec
        head = [f"#{_identifier(o.name)} = {o.format}" for o in spec.operands if o.format]
        formats = [str(o.format) for o in spec.operands if o.format]
        head += dict.fromkeys(text for format in formats for text in (*kind_texts(format), *binding_texts(format)))
        arguments = ", ".join(
            f"{self.names[id(o)]}: {self.type(o)} {self.attributes(o)}{self.loc}" for o in spec.arguments
        )
        out = self.output_type(self.element)
        head.append(f"func.func @{spec.name}({arguments}) -> ({out} {{lacis.name = {json.dumps(spec.output.name)}}})")
        words = ["lacis.kernel", f"lacis.steps = {steps_attribute(spec.steps)}"]
        words += ["lacis.checked"] * spec.checked + ["lacis.nondeterministic"] * (not spec.deterministic)
        words += ["lacis.plain"] * spec.plain
        words += density(spec)["room"] if spec.sampled else []
        words += ["lacis.tf32"] * (spec.tf32 and self.is_single())
        head.append(f"    attributes {{{', '.join(words)}}} {{")
        self.sizes()
        total = self.contraction()
        if self.element != self.sum_type or spec.epilogue or (spec.scale, spec.activation) != (None, None):
            total = self.epilogue(total)
        self.op(f"return {total} : {out}")
        return "\n".join([*head, *self.lines, "}" + function_location(spec.location, spec.steps)]) + "\n"

    def is_single(self) -> bool:
        """Are all operands of the sum float32?"""
        return all(o.dtype in (None, torch.float32) for o in (*self.spec.operands, self.spec.output))

    def is_half(self) -> bool:
        """Is an operand of the sum, or the output, of a half type?"""
        return TYPES[self.spec.narrow] != self.sum_type

    def op(self, text: str) -> None:
        self.lines.append(f"  {text}{self.loc}")

    def type(self, operand: Operand) -> str:
        """The type of an argument: a dense tensor, an encoded one, or a pattern."""
        sizes = "?x" * len(operand.indices)
        if operand.dtype is None:
            return f"!lacis.pattern<{sizes.removesuffix('x')}, #{_identifier(operand.name)}>"
        encoding = f", #{_identifier(operand.name)}" if operand.format else ""
        return f"tensor<{sizes}{TYPES[operand.dtype]}{encoding}>"

    def output_type(self, element: str) -> str:
        encoding = f", #{_identifier(self.source.name)}" if self.spec.sampled else ""
        return f"tensor<{'?x' * len(self.spec.output.indices)}{element}{encoding}>"

    def attributes(self, operand: Operand) -> str:
        hints = ("uneven", "large", "filled", "hypersparse", "skewed") if operand.format is not None else ()
        words = facts(operand, dict(self.spec.divisible), {name: getattr(self.spec, name) for name in hints})
        if operand.format is not None and (not self.spec.sampled or self.is_half()):
            words += density(self.spec).get("eighths" if self.spec.sampled else "slabs", [])
        return "{" + ", ".join(words) + "}"

    def sizes(self) -> None:
        """One `tensor.dim` for each letter of a dense output, of the packed operand where it has the letter."""
        sources = sorted(self.spec.operands, key=lambda o: o.format is None)
        for letter in () if self.spec.sampled else self.spec.output.indices:
            source = next(o for o in sources if letter in o.indices)
            axis = source.indices.index(letter)
            self.op(f"%axis_{letter} = arith.constant {axis} : index")
            self.op(f"%size_{letter} = tensor.dim {self.names[id(source)]}, %axis_{letter} : {self.type(source)}")

    def empty(self, name: str, element: str) -> str:
        """An output without values yet; a sampled one has the pattern of the packed operand."""
        type = self.output_type(element)
        if self.spec.sampled:
            self.op(f"{name} = lacis.zeros {self.names[id(self.source)]} : {self.type(self.source)} to {type}")
        else:
            sizes = ", ".join(f"%size_{letter}" for letter in self.spec.output.indices)
            self.op(f"{name} = tensor.empty({sizes}) : {type}")
        return type

    def initial(self) -> tuple[str, str]:
        """The output full of the semiring's zero, and its type."""
        if self.spec.sampled and self.semiring.zero == 0:
            return "%init", self.empty("%init", self.sum_type)
        type = self.empty("%empty", self.sum_type)
        self.op(f"%zero = arith.constant {number(self.semiring.zero, self.sum_type)}")
        self.op(f"%init = linalg.fill ins(%zero : {self.sum_type}) outs(%empty : {type}) -> {type}")
        return "%init", type

    def contraction(self) -> str:
        spec, loops = self.spec, self.spec.loops
        init, type = self.initial()
        kinds = ["parallel" if letter in spec.output.indices else "reduction" for letter in loops]
        operands = [o for o in spec.operands if o.dtype is not None]
        self.generic("%sum", loops, kinds, operands, [self.type(o) for o in operands], init, type)
        inputs = [f"%in{n}" for n in range(len(operands))]
        arguments = [f"{name}: {TYPES[o.dtype]}" for name, o in zip(inputs, operands)] + [f"%acc: {self.sum_type}"]
        self.lines.append(f"  ^bb0({', '.join(arguments)}):")
        product = None
        for n, name in enumerate(inputs):
            name = self.widened(name, f"%wide{n}", operands[n])
            if product is None:
                product = name
            else:
                self.op(f"  %product{n} = {self.semiring.multiply} {product}, {name} : {self.sum_type}")
                product = f"%product{n}"
        self.op(f"  %next = {self.semiring.add} %acc, {product} : {self.sum_type}")
        self.op(f"  linalg.yield %next : {self.sum_type}")
        self.lines.append(f"  }} -> {type}{self.loc}")
        return "%sum"

    def generic(self, result, loops, kinds, operands, types, init, init_type) -> None:
        maps = [_map(loops, o.indices) for o in operands] + [_map(loops, self.spec.output.indices)]
        names = ", ".join(self.names.get(id(o), f"%{o.name}") for o in operands)
        words = [
            f"indexing_maps = [{', '.join(maps)}]",
            f"iterator_types = [{_strings(kinds)}]",
            f"lacis.loops = [{_strings(loops)}]",
        ]
        self.lines.append(f"  {result} = linalg.generic {{{', '.join(words)}}}")
        self.lines.append(f"      ins({names} : {', '.join(types)}) outs({init} : {init_type}) {{")

    def epilogue(self, total: str) -> str:
        """`activation(scale * total + bias) + residual` in the type of the sum, rounded once."""
        spec, loops = self.spec, self.spec.output.indices
        type = self.empty("%target", self.element)
        source = Operand(total.removeprefix("%"), loops, spec.dtype)
        types = [self.output_type(self.sum_type), *(self.type(o) for o in spec.epilogue)]
        self.generic("%result", loops, ["parallel"] * len(loops), [source, *spec.epilogue], types, "%target", type)
        arguments = [f"%value: {self.sum_type}", *(f"%in_{o.name}: {TYPES[o.dtype]}" for o in spec.epilogue)]
        self.lines.append(f"  ^bb0({', '.join(arguments)}, %old: {self.element}):")
        value = self.finished("%value")
        if self.element != self.sum_type:
            self.op(f"  %rounded = arith.truncf {value} : {self.sum_type} to {self.element}")
            value = "%rounded"
        self.op(f"  linalg.yield {value} : {self.element}")
        self.lines.append(f"  }} -> {type}{self.loc}")
        return "%result"

    def finished(self, value: str) -> str:
        spec = self.spec
        half = self.element if self.element != self.sum_type else None
        arithmetic = Arithmetic(self.sum_type, lambda text: self.op("  " + text), half)
        read = {o.name: self.widened(f"%in_{o.name}", f"%wide_{o.name}", o) for o in spec.epilogue}
        if spec.scale is not None:
            scale = read.get("scale") or arithmetic.constant(spec.scale)
            value = arithmetic.multiply(value, scale)
        if spec.bias is not None:
            value = arithmetic.add(value, read["bias"])
        if spec.activation is not None:
            value = find_activation(spec.activation).code(arithmetic, value)
        return value if spec.residual is None else arithmetic.add(value, read["residual"])

    def widened(self, name: str, wide: str, operand: Operand) -> str:
        element = TYPES[operand.dtype]
        if element == self.sum_type:
            return name
        self.op(f"  {wide} = arith.extf {name} : {element} to {self.sum_type}")
        return wide


def _map(loops, indices) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(indices)})>"


def _strings(words) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _identifier(name: str) -> str:
    return name if name[0].isalpha() else f"arg{name}"
