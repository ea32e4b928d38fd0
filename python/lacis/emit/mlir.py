# SPDX-License-Identifier: Apache-2.0
"""Writes a kernel as one `linalg.generic` on encoded tensors, and one more for what follows the sum."""

from __future__ import annotations

import json

import torch

from ..capture.spec import KernelSpec, Operand
from .steps import function_location, steps_attribute

_TYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}


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


class _Writer:
    def __init__(self, spec: KernelSpec):
        self.spec = spec
        self.element = _TYPES[spec.dtype]
        self.sum_type = "f64" if self.element == "f64" else "f32"
        self.names = {id(o): f"%{_identifier(o.name)}" for o in spec.arguments}
        self.loc = f" loc({json.dumps(spec.location[0])}:{spec.location[1]}:0)" if spec.location else ""
        self.lines: list[str] = []

    def text(self) -> str:
        spec = self.spec
        head = [f"#{_identifier(o.name)} = {o.format}" for o in spec.operands if o.format]
        arguments = ", ".join(f"{self.names[id(o)]}: {self.type(o)} {self.attributes(o)}{self.loc}" for o in spec.arguments)
        out = self.dense_type(spec.output, self.element)
        head.append(f"func.func @{spec.name}({arguments}) -> ({out} {{lacis.name = {json.dumps(spec.output.name)}}})")
        head.append(f"    attributes {{lacis.kernel, lacis.steps = {steps_attribute(spec.steps)}}} {{")
        self.sizes()
        total = self.contraction()
        if spec.bias is not None or self.element != self.sum_type:
            total = self.epilogue(total)
        self.op(f"return {total} : {out}")
        return "\n".join([*head, *self.lines, "}" + function_location(spec.location, spec.steps)]) + "\n"

    def op(self, text: str) -> None:
        self.lines.append(f"  {text}{self.loc}")

    def type(self, operand: Operand) -> str:
        if operand.format is None:
            return self.dense_type(operand, self.element)
        return f"tensor<{'?x' * len(operand.indices)}{self.element}, #{_identifier(operand.name)}>"

    @staticmethod
    def dense_type(operand: Operand, element: str) -> str:
        return f"tensor<{'?x' * len(operand.indices)}{element}>"

    def attributes(self, operand: Operand) -> str:
        known = dict(self.spec.divisible)
        classes = [known.get(letter, 1) for letter in operand.indices]
        words = [f'lacis.name = "{operand.name}"']
        if any(c > 1 for c in classes):
            words.append(f"lacis.divisible = array<i64: {', '.join(map(str, classes))}>")
        return "{" + ", ".join(words) + "}"

    def sizes(self) -> None:
        """One `tensor.dim` for each letter of the output, of the packed operand where it has the letter."""
        sources = sorted(self.spec.operands, key=lambda o: o.format is None)
        for letter in self.spec.output.indices:
            source = next(o for o in sources if letter in o.indices)
            axis = source.indices.index(letter)
            self.op(f"%axis_{letter} = arith.constant {axis} : index")
            self.op(f"%size_{letter} = tensor.dim {self.names[id(source)]}, %axis_{letter} : {self.type(source)}")

    def empty(self, name: str, element: str) -> str:
        type = self.dense_type(self.spec.output, element)
        sizes = ", ".join(f"%size_{letter}" for letter in self.spec.output.indices)
        self.op(f"{name} = tensor.empty({sizes}) : {type}")
        return type

    def contraction(self) -> str:
        spec, loops = self.spec, self.spec.loops
        type = self.empty("%empty", self.sum_type)
        self.op(f"%zero = arith.constant 0.0 : {self.sum_type}")
        self.op(f"%init = linalg.fill ins(%zero : {self.sum_type}) outs(%empty : {type}) -> {type}")
        kinds = ["parallel" if letter in spec.output.indices else "reduction" for letter in loops]
        self.generic("%sum", loops, kinds, spec.operands, [self.type(o) for o in spec.operands], "%init", type)
        inputs = [f"%in{n}" for n in range(len(spec.operands))]
        arguments = [f"{name}: {self.element}" for name in inputs] + [f"%acc: {self.sum_type}"]
        self.lines.append(f"  ^bb0({', '.join(arguments)}):")
        product = None
        for n, name in enumerate(inputs):
            name = self.widened(name, f"%wide{n}")
            if product is None:
                product = name
            else:
                self.op(f"  %product{n} = arith.mulf {product}, {name} : {self.sum_type}")
                product = f"%product{n}"
        self.op(f"  %next = arith.addf %acc, {product} : {self.sum_type}")
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
        spec, loops = self.spec, self.spec.output.indices
        type = self.empty("%target", self.element)
        source = Operand("sum", loops, spec.dtype)
        operands, types = [source], [self.dense_type(spec.output, self.sum_type)]
        if spec.bias is not None:
            operands.append(spec.bias)
            types.append(self.type(spec.bias))
        self.generic("%result", loops, ["parallel"] * len(loops), operands, types, "%target", type)
        bias = f", %add: {self.element}" if spec.bias is not None else ""
        self.lines.append(f"  ^bb0(%value: {self.sum_type}{bias}, %old: {self.element}):")
        value = "%value"
        if spec.bias is not None:
            self.op(f"  %biased = arith.addf {value}, {self.widened('%add', '%wide_bias')} : {self.sum_type}")
            value = "%biased"
        if self.element != self.sum_type:
            self.op(f"  %rounded = arith.truncf {value} : {self.sum_type} to {self.element}")
            value = "%rounded"
        self.op(f"  linalg.yield {value} : {self.element}")
        self.lines.append(f"  }} -> {type}{self.loc}")
        return "%result"

    def widened(self, name: str, wide: str) -> str:
        if self.element == self.sum_type:
            return name
        self.op(f"  {wide} = arith.extf {name} : {self.element} to {self.sum_type}")
        return wide


def _map(loops, indices) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(indices)})>"


def _strings(words) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _identifier(name: str) -> str:
    return name if name[0].isalpha() else f"arg{name}"
