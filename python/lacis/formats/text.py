# SPDX-License-Identifier: Apache-2.0
"""How formats are written: the printer and parser of the dialect's grammar, without the compiler.

```
format ::= '#lacis.format<(' id,+ ')' ['let' bind,+] '->' '(' level,+ ')' [',' 'layout' '=' attr] [',' 'multiset'] '>'
level  ::= ( part | '(' part,+ ')' ) ':' kind | 'link'
kind   ::= (alias | extent ['*' coord] | '@'id) ['<' arg,+ '>']
sum    ::= '#lacis.sum<' { id '=' format 'when' pred ',' } id '=' format '>'
```
"""

from __future__ import annotations

import dataclasses

from . import kinds  # noqa: F401  (registers the level kinds)
from .bindings import Affine, Rank, Slot
from .digit import Digit
from .level import COORDINATES, EXTENTS, Coordinate, Extent, Level
from .own import Mapped
from .scanner import Scanner

# Names of common pairs; spelling only, the level is the pair.
ALIASES = {
    "dense": ("full", "implicit"),
    "compressed": ("var", "crd"),
    "packed": ("fixed", "crd"),
    "singleton": ("one", "crd"),
    "ragged": ("var", "implicit"),
    "bitmap": ("var", "bitmap"),
    "structured": ("fixed", "code"),
}
_NAMES = {pair: alias for alias, pair in ALIASES.items()}
_ARGUMENTS = ("unique", "ordered", "pad", "pos", "crd")


def kind_name(extent: Extent, coordinate: Coordinate) -> str:
    """The alias of a pair, or `extent*coordinate`."""
    if extent == coordinate:
        return extent.spelling
    alias = _NAMES.get((extent.name, coordinate.name))
    return alias or (extent.name if coordinate.implicit else f"{extent.name}*{coordinate.name}")


def print_level(level: Level, names) -> str:
    """`j : compressed<unique=false>`; arguments that have their default are left out."""
    digits = ", ".join(d.text(names) for d in level.digits)
    digits = f"({digits})" if len(level.digits) > 1 else digits
    arguments = _arguments(level.extent, level.coordinate)
    kind = kind_name(level.extent, level.coordinate)
    kind = f"{kind}<{', '.join(arguments)}>" if arguments else kind
    return f"{digits} : {kind}" if digits else kind


def _arguments(extent, coordinate) -> list[str]:
    parts = [extent] if extent == coordinate else [extent, coordinate]
    words, named = [], {}
    for part in parts:
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if field.name == part.positional:
                if value is not None or field.default is None:
                    words.append("?" if value is None else str(value))
            elif field.name in _ARGUMENTS and value != field.default:
                named[field.name] = str(value).lower() if isinstance(value, bool) else value
    return words + [f"{key}={named[key]}" for key in _ARGUMENTS if key in named]


def print_format(fmt) -> str:
    """`#lacis.format<...>` of a format."""
    names = list(fmt.axes)
    binds = []
    for binding in fmt.bindings:
        binds.append(binding.text(names))
        names.append(binding.name)
    text = f"({', '.join(fmt.axes)})"
    text += f" let {', '.join(binds)}" if binds else ""
    text += f" -> ({', '.join(level.text(names) for level in fmt.levels)})"
    text += f", layout = {fmt.layout}" if fmt.layout else ""
    text += ", multiset" if fmt.multiset else ""
    return f"#lacis.format<{text}>"


def parse(text: str):
    """A `Format` or `Sum` from its text, with or without the `#lacis.format<` around it.

    >>> parse("(i, j) -> (i : dense, j : compressed)").text
    '#lacis.format<(i, j) -> (i : dense, j : compressed)>'
    """
    scan = Scanner(text)
    if scan.accept("#lacis.sum<"):
        result = _parse_sum(scan)
    elif scan.accept("#lacis.format<"):
        result = _parse_format(scan)
        scan.expect(">")
    else:
        result = _parse_format(scan)
    scan.expect_end()
    return result


def _parse_sum(scan: Scanner):
    from .sum import Sum, parse_predicate

    parts, predicates = {}, {}
    while True:
        name = scan.identifier("the name of a part")
        scan.expect("=")
        scan.expect("#lacis.format<")
        if name in parts:
            scan.fail(f"part '{name}' is there twice")
        parts[name] = _parse_format(scan)
        scan.expect(">")
        if scan.accept_word("when"):
            predicates[name] = parse_predicate(scan, parts[name].axes)
        if not scan.accept(","):
            break
    scan.expect(">")
    return Sum(parts, predicates)


def _parse_format(scan: Scanner):
    from .format import Format

    axes = scan.list(lambda: scan.identifier("the name of an axis"))
    if len(set(axes)) != len(axes):
        scan.fail("an axis name is there twice")
    names, bindings = list(axes), []
    if scan.accept_word("let"):
        while True:
            bindings.append(_parse_binding(scan, names))
            names.append(bindings[-1].name)
            if not scan.accept(","):
                break
    scan.expect("->")
    levels = scan.list(lambda: _parse_level(scan, names))
    layout, multiset = None, False
    while scan.accept(","):
        if scan.accept_word("layout"):
            scan.expect("=")
            layout = scan.attribute()
        elif scan.accept_word("multiset"):
            multiset = True
        else:
            scan.fail("expected 'layout' or 'multiset'")
    return Format.of(levels, axes=axes, bindings=bindings, multiset=multiset, layout=layout)


def _axis(scan: Scanner, names) -> int:
    name = scan.identifier("an axis")
    if name not in names:
        scan.fail(f"no axis named '{name}', the axes are {', '.join(names)}")
    return names.index(name)


def parse_digit(scan: Scanner, names) -> Digit:
    """`i floordiv 16 mod 4`."""
    axis, div, mod = _axis(scan, names), 1, 0
    while True:
        if scan.accept_word("floordiv"):
            size = scan.positive("a block size")
            div, mod = div * size, _divided(scan, mod, size)
        elif scan.accept_word("mod"):
            size = scan.positive("a block size")
            _divided(scan, mod, size)
            mod = size
        else:
            return Digit(axis, div, mod)


def _divided(scan, mod, size):
    if mod % size:
        scan.fail(f"a block of {size} does not divide the block of {mod} around it")
    return mod // size


def _parse_level(scan: Scanner, names) -> Level:
    if scan.accept_word("link"):
        return Level((), *_arguments_of(scan, (EXTENTS["link"], COORDINATES["link"])))
    digits = scan.list(lambda: parse_digit(scan, names)) if scan.peek("(") else [parse_digit(scan, names)]
    scan.expect(":")
    extent, coordinate = _parse_kind(scan)
    return Level(tuple(digits), extent, coordinate)


def _kind_classes(scan: Scanner) -> tuple[type[Extent], type[Coordinate]]:
    name = scan.identifier("a level kind")
    if scan.accept("*"):
        other = scan.identifier("a coordinate")
    elif name in ALIASES:
        name, other = ALIASES[name]
    else:
        other = name if name in COORDINATES and name in EXTENTS else "implicit"
    if "kind" in (name, other):
        scan.fail("level kind 'kind' needs a symbol: write '@name'")
    if name not in EXTENTS:
        known = sorted({*ALIASES, *EXTENTS})
        scan.fail(f"no level kind '{name}', the kinds are {', '.join(known)}")
    if other not in COORDINATES:
        scan.fail(f"no coordinate '{other}', the coordinates are {', '.join(sorted(COORDINATES))}")
    return EXTENTS[name], COORDINATES[other]


def _parse_kind(scan: Scanner) -> tuple[Extent, Coordinate]:
    if scan.peek("@"):
        kind = EXTENTS["kind"](scan.identifier("the name of a level kind", also="@"))
        return kind, kind
    return _arguments_of(scan, _kind_classes(scan))


def _arguments_of(scan: Scanner, classes) -> tuple[Extent, Coordinate]:
    given: list[dict] = [{}, {}]
    if scan.accept("<"):
        while True:
            key, value = scan.argument()
            _take(scan, classes, given, key, value)
            if not scan.accept(","):
                break
        scan.expect(">")
    if classes[0] is classes[1]:
        kind = classes[0](**given[0])
        return kind, kind
    return classes[0](**given[0]), classes[1](**given[1])


def _take(scan, classes, given, key, value):
    """Give an argument to the first of the two kinds that has the field and not yet a value."""
    for cls, values in zip(classes, given):
        name = cls.positional if key is None else key
        fields = {f.name: f for f in dataclasses.fields(cls)}
        if name in fields and name not in values and (key is None) == (name == cls.positional):
            _check_argument(scan, fields[name], value)
            values[name] = value
            return
    scan.fail(f"a level of kind '{kind_name(classes[0](), classes[1]())}' takes no '{key if key else value}'")


def _check_argument(scan, field, value):
    if value is None and field.default is not None:
        scan.fail(f"'{field.name}' must be a number")
    if "bool" in str(field.type) and not isinstance(value, bool):
        scan.fail(f"'{field.name}' must be true or false")
    is_type = field.type in ("str", str) or str(field.type) == "str | None"
    if is_type and value not in ("i8", "i16", "i32", "i64"):
        scan.fail(f"'{field.name}' must be an integer type: i8, i16, i32 or i64")


def _parse_binding(scan: Scanner, names):
    name = scan.identifier("the name of a binding")
    if name in names:
        scan.fail(f"'{name}' is there twice")
    scan.expect("=")
    if scan.accept_call("slot"):
        axis = _axis(scan, names)
        scan.expect_word("in")
        within = [parse_digit(scan, names)]
        while scan.accept(","):
            within.append(parse_digit(scan, names))
        scan.expect(")")
        return Slot(name, axis, tuple(within))
    if scan.accept_call("rank"):
        axis = _axis(scan, names)
        scan.expect_word("by")
        scan.expect_word("nnz")
        within = scan.positive("a number of rows") if scan.accept_word("within") else None
        scan.expect(")")
        return Rank(name, axis, within)
    if scan.peek("@"):
        symbol = scan.identifier("the name of a binding", also="@")
        operands = scan.list(lambda: _axis(scan, names))
        if len(set(operands)) != len(operands):
            scan.fail(f"'{symbol}' has an axis twice")
        return Mapped(name, symbol, tuple(operands))
    left = _axis(scan, names)
    sign = "+" if scan.accept("+") else "-"
    if sign == "-":
        scan.expect("-")
    return Affine(name, left, sign, _axis(scan, names))
