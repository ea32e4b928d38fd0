# SPDX-License-Identifier: Apache-2.0
"""Writes a chain as one `linalg.generic` for each statement, on tensors of one pattern."""

from __future__ import annotations

import dataclasses
import json
import math

from ..capture.chain import ChainSpec, Read, Statement
from .arithmetic import number
from .mlir import SUM_TYPES, TYPES, facts
from .philox import Philox
from .steps import function_location, steps_attribute

_BINARY = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf",
           "maximum": "arith.maximumf", "minimum": "arith.minimumf"}  # fmt: skip
_UNARY = {"neg": "arith.negf", "exp": "math.exp", "exp2": "math.exp2", "log": "math.log", "tanh": "math.tanh",
          "sqrt": "math.sqrt", "erf": "math.erf", "abs": "math.absf", "floor": "math.floor"}  # fmt: skip
_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_WHOLE = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "floordiv": "arith.divui",
          "mod": "arith.remui", "maximum": "arith.maxsi", "minimum": "arith.minsi"}  # fmt: skip
_LOGIC = {"and": "arith.andi", "or": "arith.ori"}
_REDUCE = {"add": ("arith.addf", 0.0), "max": ("arith.maximumf", -math.inf)}


def emit_chain(spec: ChainSpec) -> str:
    """The MLIR text of a chain."""
    return _ChainWriter(spec).text()


class _ChainWriter:
    def __init__(self, spec: ChainSpec):
        self.spec = spec
        self.element = TYPES[spec.dtype]
        self.wide = SUM_TYPES.get(self.element, "f32")
        self.pattern = spec.operands[spec.packed]
        self.loc = f" loc({json.dumps(spec.location[0])}:{spec.location[1]}:0)" if spec.location else ""
        self.known = dict(spec.sizes)
        self.types = {o.name: self.operand_type(o) for o in spec.operands}
        self.elements = {o.name: TYPES[o.dtype] for o in spec.operands if o.dtype is not None}
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        spec = self.spec
        arguments = ", ".join(f"%{o.name}: {self.types[o.name]} {self.attributes(o)}{self.loc}" for o in spec.operands)
        types = [self.tensor(o.letters, TYPES[spec.dtype_of(o)], o.sampled) for o in spec.outputs]
        names = ["out", *(f"out{n}" for n in range(1, len(types)))]
        results = ", ".join(f'{type} {{lacis.name = "{name}"}}' for type, name in zip(types, names))
        head = [f"#p = {self.pattern.format}"]
        head.append(f"func.func @{spec.name}({arguments}) -> ({results})")
        words = [
            "lacis.kernel",
            f"lacis.steps = {steps_attribute(spec.steps)}",
            *[f'lacis.rolls = "{spec.rolls}"'] * bool(spec.rolls),
        ]
        head.append(f"    attributes {{{', '.join(words)}}} {{")
        for statement in spec.statements:
            self.statement(statement, last=any(o is statement and spec.dtype_of(o) == spec.dtype for o in spec.outputs))
        self.op(f"return {', '.join(f'%{each.name}' for each in spec.outputs)} : {', '.join(types)}")
        return "\n".join([*head, *self.lines, "}" + function_location(spec.location, spec.steps)]) + "\n"

    def op(self, text: str) -> None:
        self.lines.append(f"  {text}{self.loc}")

    def fresh(self, text: str) -> str:
        self.count += 1
        self.op(f"%e{self.count} = {text}")
        return f"%e{self.count}"

    def tensor(self, letters, element: str, sampled: bool) -> str:
        sizes = "".join(f"{self.known.get(letter, '?')}x" for letter in letters)
        return f"tensor<{sizes}{element}{', #p' if sampled else ''}>"

    def operand_type(self, operand) -> str:
        if operand.dtype is None:
            return f"!lacis.pattern<{'x'.join('?' for _ in operand.indices)}, #p>"
        return self.tensor(operand.indices, TYPES[operand.dtype], False)

    def attributes(self, operand) -> str:
        divisible = {letter: by for letter, by in self.spec.divisible if letter not in self.known}
        words = facts(operand, divisible, {"uneven": self.spec.uneven} if operand.dtype is None else {})
        if operand.dtype is None and self.spec.full:
            words.append("lacis.full")
        return "{" + ", ".join(words) + "}"

    def sizes(self, statement: Statement) -> str:
        """The sizes of a result that are not compiled in, of what the statement reads."""
        found = []
        for letter in statement.letters:
            if letter not in self.known:
                source = next(read for read in statement.inputs if letter in read.letters)
                axis = self.fresh(f"arith.constant {source.letters.index(letter)} : index")
                found.append(self.fresh(f"tensor.dim %{source.name}, {axis} : {self.types[source.name]}"))
        return ", ".join(found)

    def initial(self, statement: Statement, element: str, type: str) -> str:
        """What a statement begins with: zeros of the pattern, or the neutral element of its sum."""
        if statement.sampled:
            return self.fresh(f"lacis.zeros %{self.pattern.name} : {self.types[self.pattern.name]} to {type}")
        empty = self.fresh(f"tensor.empty({self.sizes(statement)}) : {type}")
        if statement.reduce is None:
            return empty
        zero = self.fresh(f"arith.constant {number(_REDUCE[statement.reduce][1], element)}")
        return self.fresh(f"linalg.fill ins({zero} : {element}) outs({empty} : {type}) -> {type}")

    def statement(self, statement: Statement, last: bool) -> None:
        """One `linalg.generic`; a last one that adds up to a wider type is rounded by one more."""
        rounded = last and self.element != self.wide
        if rounded and statement.reduce:
            self.statement(dataclasses.replace(statement, name=f"{statement.name}_wide"), last=False)
            inputs = (Read(f"{statement.name}_wide", statement.letters),)
            statement = Statement(statement.name, statement.letters, inputs, ("read", 0), statement.sampled)
        element = self.element if rounded else self.wide
        type = self.tensor(statement.letters, element, statement.sampled)
        init = self.initial(statement, element, type)
        loops = statement.loops
        inputs = [read for read in statement.inputs if not read.whole]
        maps = ", ".join(_map(loops, read.letters) for read in (*inputs, statement))
        kinds = ", ".join('"parallel"' if x in statement.letters else '"reduction"' for x in loops)
        names = ", ".join(f'"{letter}"' for letter in loops)
        read = ", ".join(f"%{r.name}" for r in inputs)
        types = ", ".join(self.types[r.name] for r in inputs)
        ins = f"ins({read} : {types}) " if read else ""
        self.lines.append(
            f"  %{statement.name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}], "
            f'lacis.loops = [{names}], lacis.name = "{statement.name}"}}'
        )
        self.lines.append(f"      {ins}outs({init} : {type}) {{")
        arguments = [f"%in{self.count}_{n}: {self.elements[r.name]}" for n, r in enumerate(inputs)]
        self.lines.append(f"  ^bb0({', '.join([*arguments, f'%acc{self.count}: {element}'])}):")
        self.body(statement, [a.partition(":")[0] for a in arguments], f"%acc{self.count}", rounded)
        self.lines.append(f"  }} -> {type}{self.loc}")
        self.types[statement.name], self.elements[statement.name] = type, element

    def body(self, statement: Statement, inputs: list[str], carried: str, rounded: bool) -> None:
        names = iter(inputs)
        values = [
            f"%{read.name}" if read.whole else self.widened(next(names), self.elements[read.name])
            for read in statement.inputs
        ]
        self.loops = statement.loops
        value = self.expression(statement.body, values)
        if statement.reduce:
            value = self.fresh(f"{_REDUCE[statement.reduce][0]} {carried}, {value} : {self.wide}")
        if rounded:
            value = self.fresh(f"arith.truncf {value} : {self.wide} to {self.element}")
        self.op(f"linalg.yield {value} : {self.element if rounded else self.wide}")

    def widened(self, value: str, element: str) -> str:
        is_wide = element in (self.wide, "i64")
        return value if is_wide else self.fresh(f"arith.extf {value} : {element} to {self.wide}")

    def expression(self, body, values: list[str]) -> str:
        operation, *parts = body
        if operation == "read":
            return values[parts[0]]
        if operation == "number":
            return self.fresh(f"arith.constant {number(parts[0], self.wide)}")
        if operation == "index":
            index = self.fresh(f"linalg.index {self.loops.index(parts[0])} : index")
            whole = self.fresh(f"arith.index_cast {index} : index to i32")
            return self.fresh(f"arith.sitofp {whole} : i32 to {self.wide}")
        if operation in ("floordiv", "mod"):
            down = ("floor", ("div", *parts))
            return self.expression(
                down if operation == "floordiv" else ("sub", parts[0], ("mul", down, parts[1])), values
            )
        if operation == "element":
            return self.extracted(values[parts[0][1]], parts[1:], values)
        if operation == "kept":
            limit, seed, *where = parts
            seed = self.expression(seed, values)
            return Philox(self.fresh).kept(limit, seed, *(self.whole(part) for part in where))
        of = [self.expression(part, values) for part in parts]
        if operation == "share":
            zero = self.fresh(f"arith.constant {number(0, self.wide)}")
            none = self.fresh(f"arith.cmpf oeq, {of[1]}, {zero} : {self.wide}")
            share = self.fresh(f"arith.divf {of[0]}, {of[1]} : {self.wide}")
            return self.fresh(f"arith.select {none}, {zero}, {share} : {self.wide}")
        if operation == "where":
            return self.fresh(f"arith.select {of[0]}, {of[1]}, {of[2]} : {self.wide}")
        if operation in _COMPARE:
            return self.fresh(f"arith.cmpf {_COMPARE[operation]}, {of[0]}, {of[1]} : {self.wide}")
        if operation == "not":
            true = self.fresh("arith.constant true")
            return self.fresh(f"arith.xori {of[0]}, {true} : i1")
        if operation in _LOGIC:
            return self.fresh(f"{_LOGIC[operation]} {of[0]}, {of[1]} : i1")
        return self.fresh(f"{(_BINARY | _UNARY)[operation]} {', '.join(of)} : {self.wide}")

    def extracted(self, tensor: str, places, values: list[str]) -> str:
        """An element of a tensor, in the type of sums."""
        type, element, at = self.types[tensor[1:]], self.elements[tensor[1:]], []
        for axis, place in enumerate(places):
            if place[0] == "index":
                at.append(self.fresh(f"linalg.index {self.loops.index(place[1])} : index"))
                continue
            found = self.whole(place[1] if place[0] == "end" else place, values)
            if place[0] == "end":
                number = self.fresh(f"arith.constant {axis} : index")
                size = self.fresh(f"tensor.dim {tensor}, {number} : {type}")
                size = self.fresh(f"arith.index_cast {size} : index to i32")
                zero = self.fresh("arith.constant 0 : i32")
                below = self.fresh(f"arith.cmpi slt, {found}, {zero} : i32")
                other = self.fresh(f"arith.addi {found}, {size} : i32")
                found = self.fresh(f"arith.select {below}, {other}, {found} : i32")
            at.append(self.fresh(f"arith.index_cast {found} : i32 to index"))
        return self.widened(self.fresh(f"tensor.extract {tensor}[{', '.join(at)}] : {type}"), element)

    def whole(self, body, values=()) -> str:
        """An expression of coordinates as i32; what is divided is not below 0."""
        operation, *parts = body
        if operation == "number":
            return self.fresh(f"arith.constant {int(parts[0])} : i32")
        if operation == "index":
            index = self.fresh(f"linalg.index {self.loops.index(parts[0])} : index")
            return self.fresh(f"arith.index_cast {index} : index to i32")
        if operation == "where":
            chosen = self.expression(parts[0], values)
            return self.fresh(
                f"arith.select {chosen}, {', '.join(self.whole(part, values) for part in parts[1:])} : i32"
            )
        if operation == "neg":
            return self.whole(("sub", ("number", 0), *parts), values)
        if operation == "abs":
            return self.whole(("maximum", *parts, ("neg", *parts)), values)
        return self.fresh(f"{_WHOLE[operation]} {', '.join(self.whole(part, values) for part in parts)} : i32")


def _map(loops, letters) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(letters)})>"
