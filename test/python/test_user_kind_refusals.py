# SPDX-License-Identifier: Apache-2.0
"""What level kinds and bindings of the user's refuse, at the user's line."""

import itertools

import lacis
import pytest
import torch
import user_kinds
from lacis.errors import DataError, FormatError
from lacis.formats.own import KINDS
from lacis.packing import PackedTensor, pack

NUMBER = itertools.count()


def define(coordinate=lambda self, at, lo, pos: pos, bounds=lambda self, at: (at.parent, at.parent + 1), **members):
    """A kind with these methods and arrays, under a name that nobody has."""
    members = {"bounds": bounds, "coordinate": coordinate, "crd": lacis.array("i32", per="position"), **members}
    return lacis.kind(type("Tried", (lacis.LevelKind,), members), name=f"tried_{next(NUMBER)}")


def branches(self, at, lo, pos):
    return pos if pos > 0 else lo


def leaks(self, at, lo, pos):
    inside = []
    lacis.fori(pos, lambda n, state: (inside.append(n), state + n)[1], 0)
    return inside[0]


METHODS = {
    "Python branches on a value that is known only in the kernel; write lacis.where": branches,
    "Python asks for a value that is known only in the kernel": lambda self, at, lo, pos: range(pos)[0],
    "Python goes through a value": lambda self, at, lo, pos: [n for n in pos][0],
    "a float is no integer of a kernel": lambda self, at, lo, pos: pos * 0.5,
    "a Tensor is no integer of a kernel": lambda self, at, lo, pos: torch.ones(1),
    "a NoneType is no integer of a kernel|None is no integer of a kernel": lambda self, at, lo, pos: None,
    "a value made inside of a loop is used behind it; give it as its state": leaks,
    "the body of lacis.fori answers 2 values, not 1": lambda self, at, lo, pos: lacis.fori(2, lambda n, s: (s, s), pos),
    "a truth value is needed, not a number; write value != 0": lambda self, at, lo, pos: lacis.where(pos, 1, 0),
    "answers a truth value, and must answer an integer": lambda self, at, lo, pos: pos > 0,
    "'coordinate' is asked without the parent": lambda self, at, lo, pos: at.parent,
    "other code when run again": lambda self, at, lo, pos: pos + next(NUMBER),
    "'seen' is set inside of a method": lambda self, at, lo, pos: setattr(self, "seen", pos),
    "array 'crd' is read by methods, and filled by 'place' alone": lambda self, at, lo, pos: self.crd.__setitem__(
        pos, 1
    ),
    "array 'crd' has no end that a kernel knows": lambda self, at, lo, pos: list(self.crd)[0],
}


@pytest.mark.parametrize("message", METHODS)
def test_methods_that_no_kernel_can_run(message):
    with pytest.raises(FormatError, match=message) as raised:
        define(METHODS[message])
    assert raised.value.location[0] == __file__


def test_classes_that_are_no_kinds():
    for message, make in {
        "is no class of lacis.LevelKind": lambda: lacis.kind(int),
        "'two words' is no name": lambda: lacis.kind(user_kinds.MyCsr, name="two words"),
        "needs the method 'coordinate'": lambda: define(coordinate=None),
        "'fixed' is a number of positions from 1 on, and stands for 'bounds'": lambda: define(fixed=2),
        "an array cannot be called 'pos2'; use letters": lambda: define(pos2=lacis.array("i32")),
        "an array cannot be called 'valid'": lambda: define(valid=lacis.array("i32")),
        "there is another '@my_runs'": lambda: lacis.kind(user_kinds.MyHash, name="my_runs"),
        "no dtype 'f32'; use one of i8, i16, i32, i64, u8, u16, u32": lambda: lacis.array("f32"),
        "no length per 'row'; use 'parent', 'position' or 'own'": lambda: lacis.array("i32", per="row"),
        "'plus' is 0 or 1, and 0 per position": lambda: lacis.array("i32", per="position", plus=1),
        "lacis.where stands in the methods of a level kind": lambda: lacis.where(True, 1, 2),
        "is a class with methods forward, inverse and size": lambda: lacis.binding(user_kinds.MyCsr),
        "there is another '@my_morton'": lambda: lacis.binding(
            type("Other", (user_kinds.MyMorton,), {}), name="my_morton"
        ),
    }.items():
        with pytest.raises(FormatError, match=message):
            make()


def test_what_a_class_lacks_is_refused_where_it_is_needed():
    kind = define(
        bounds=lambda self, at: (at.parent * 2, at.parent * 2 + 2), coordinate=lambda self, at, lo, pos: pos - lo
    )
    text = f"(i, j) -> (i : dense, j : {kind._symbol})"
    with pytest.raises(FormatError, match="has no packing: its class has no method 'place'"):
        pack(torch.eye(2), text)
    storage = {"crd1": torch.zeros(6, dtype=torch.int32)}
    packed = PackedTensor.from_storage(text, (3, 2), storage, torch.arange(6.0))
    assert packed.to_dense().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert packed.pattern.batched([2], "h").to_mask().all()
    kind.place = lambda self, fibre: lacis.Placed(fibre.ends - 1, 1, (1,))
    with pytest.raises(FormatError, match="'place': answers lacis.Placed with its arrays, crd"):
        pack(torch.eye(2), text)
    kind.place = lambda self, fibre: lacis.Placed(fibre.ends - 1, 9, (9,), {"crd": torch.zeros(9)})
    with pytest.raises(FormatError, match="9 positions for 2 entries; 'coordinate' answers whether there is one"):
        pack(torch.eye(2), text)
    kind.fixed = 3
    with pytest.raises(FormatError, match="'place': 9 positions under 2 parents with 3 each"):
        pack(torch.eye(2), text)


def test_a_step_that_needs_a_missing_method_is_refused():
    packed = pack(torch.eye(8), "(i, j) -> (i : dense, j : @my_runs)")
    with pytest.raises(lacis.CompileError, match="split: loop 'j' walks positions whose coordinates are not stored in"):
        lacis.compile("ij,j->i", packed, torch.ones(8), steps=[lacis.steps.Split("j", 4)], target="cpu")


@pytest.mark.long
def test_kinds_that_lie_are_found_out():
    def place(self, fibre):
        count = fibre.first.numel()
        return lacis.Placed(fibre.ends - 1, count, (count,), {"end": fibre.starts(), "crd": fibre.crd[fibre.first]})

    members = {"end": lacis.array("i32", per="parent", plus=1), "place": place}
    bounds = lambda self, at: (self.end[at.parent], self.end[at.parent + 1])
    for what, methods in {
        "is read as other entries": {"coordinate": lambda self, at, lo, pos: lo - lo + at.size - 1 - self.crd[pos]},
        "'find' answers another position": {
            "coordinate": lambda self, at, lo, pos: self.crd[pos],
            "find": lambda self, at, crd: (self.end[at.parent], self.end[at.parent] < self.end[at.parent + 1]),
        },
    }.items():
        with pytest.raises(DataError, match=what):
            lacis.check_kind(define(bounds=bounds, **members, **methods))


def test_damage_is_said_with_its_place():
    for name, at, value, message in (
        ("pos1", 1, 99, "positions|must have shape"),
        ("crd1", 0, 77, "has coordinate 77 at position 0, which is outside of the level's 8"),
        ("crd1", 2, 0, "coordinate 0 at position 2, which does not lie behind the one before it"),
    ):
        packed = pack(torch.ones(3, 8), "(i, j) -> (i : dense, j : @my_csr)")
        packed.storage[name][at] = value
        with pytest.raises(DataError, match=message):
            packed.validate()


def test_a_name_that_nobody_has():
    with pytest.raises(FormatError, match="level kind '@nobody' has no code yet: decorate its class with lacis.kind"):
        pack(torch.eye(3), "(i, j) -> (i : dense, j : @nobody)")
    with pytest.raises(FormatError, match="binding '@nobody' has no code yet: decorate its class with lacis.binding"):
        pack(torch.eye(3), "(i, j) let z = @nobody(i, j) -> (z : compressed)")
    assert "@nobody" not in KINDS
