# SPDX-License-Identifier: Apache-2.0
"""What is known of arithmetic of coordinates: no coordinates lead out of the bounds."""

import itertools
import random

import pytest

from lacis.attentions.places import CONDITIONS, bounds, whole

LENGTHS = {"i": 3, "j": 5}
BINARY = ("add", "sub", "mul", "maximum", "minimum")
PYTHON = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a, "abs": abs,
    "maximum": max, "minimum": min, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    "where": lambda c, a, b: a if c else b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": lambda a: not a,
}  # fmt: skip


def drawn(generator, depth: int):
    """Any arithmetic of whole numbers."""
    kind = generator.randrange(6) if depth else 5
    part = lambda: drawn(generator, depth - 1)
    if kind < 2:
        return (generator.choice(BINARY), part(), part())
    if kind == 2:
        return (generator.choice(("neg", "abs")), part())
    if kind == 3:
        return (generator.choice(("floordiv", "mod")), part(), ("number", float(generator.randint(1, 4))))
    if kind == 4:
        return ("where", ("not", (generator.choice(CONDITIONS[:6]), part(), part())), part(), part())
    return generator.choice([("index", "i"), ("index", "j"), ("number", float(generator.randint(-3, 3)))])


def run(body, where, seen):
    """The value; `seen` gets all numbers on the way, and what is divided."""
    operation, *parts = body
    if operation in ("index", "number"):
        value = where[parts[0]] if operation == "index" else int(parts[0])
    else:
        values = [run(part, where, seen) for part in parts]
        value = PYTHON[operation](*values)
        if operation in ("floordiv", "mod"):
            seen[1].append(values[0])
    if operation not in CONDITIONS:
        seen[0].append(value)
    return value


@pytest.mark.parametrize("seed", range(3))
def test_no_coordinates_lead_out_of_the_bounds(seed):
    generator = random.Random(seed)
    for _ in range(300):
        body = drawn(generator, 4)
        found, seen = whole(body, LENGTHS), ([], [])
        everywhere = itertools.product(*map(range, LENGTHS.values()))
        values = [run(body, dict(zip(LENGTHS, where)), seen) for where in everywhere]
        assert found.bounds[0] <= min(values) and max(values) <= found.bounds[1], body
        assert max(map(abs, seen[0])) <= found.largest, body
        assert found.divides_below_zero or min(seen[1], default=0) >= 0, body


I, J = ("index", "i"), ("index", "j")


@pytest.mark.parametrize(
    "body, known",
    [
        (("sub", I, J), (-4, 2)),
        (("abs", ("sub", I, J)), (0, 4)),
        (("minimum", ("maximum", ("sub", I, J), ("number", -1.0)), ("number", 1.0)), (-1, 1)),
        (("mod", J, ("number", 8.0)), (0, 4)),
        (("where", ("le", J, I), ("sub", I, J), ("number", 0.0)), (-4, 2)),
        (("floordiv", ("sub", I, J), ("number", 2.0)), None),  # below 0
        (("floordiv", J, I), None),
        (("mod", J, ("number", 0.0)), None),
        (("add", I, ("number", 0.5)), None),
        (("lt", I, J), None),  # no number
        (("add", I, ("lt", I, J)), None),
        (("sqrt", I), None),
    ],
)
def test_bounds(body, known):
    assert bounds(body, LENGTHS) == known
