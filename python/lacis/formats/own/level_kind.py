# SPDX-License-Identifier: Apache-2.0
"""Level kinds of the user's: a class says what is stored, and its methods how it is walked, found and filled."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import ClassVar

from ...errors import FormatError, format_location, user_location
from .symbol import BIT, INDEX
from .traced import trace

_DTYPES = {"i8": 0, "i16": 0, "i32": 0, "i64": 0, "u8": 8, "u16": 16, "u32": 32}
_NAME = re.compile(r"[A-Za-z_]([A-Za-z0-9_]*[A-Za-z_])?")


@dataclasses.dataclass(frozen=True)
class array:
    """An array that a kind stores: `pos = lacis.array("i32", per="parent", plus=1)`.

    `dtype` is "i8", "i16", "i32", "i64", or "u8", "u16" and "u32", which have no sign; "u32" is for words of bits, as
    a kernel whose indices have 32 bits takes numbers from 2^31 on for negative ones. It has an element `per` "parent",
    per "position", or as many of the kind's "own" as `place` makes; `plus=1` is one more. Inside of methods it is read
    by `self.pos[index]`. Raises `FormatError`.
    """

    dtype: str
    per: str = "own"
    plus: int = 0

    def __post_init__(self):
        if self.dtype not in _DTYPES:
            raise FormatError(f"array: no dtype {self.dtype!r}; use one of {', '.join(_DTYPES)}")
        if self.per not in ("parent", "position", "own"):
            raise FormatError(f"array: no length per {self.per!r}; use 'parent', 'position' or 'own'")
        if self.plus not in (0, 1) or (self.plus and self.per == "position"):
            raise FormatError("array: 'plus' is 0 or 1, and 0 per position")

    @property
    def unsigned(self) -> int | None:
        """How many bits it has where it has no sign."""
        return _DTYPES[self.dtype] or None

    @property
    def text(self) -> str:
        type = self.dtype.replace("u", "ui")
        return f"{type} per {self.per}" + (f" plus {self.plus}" if self.plus else "")


class At:
    """Where a method is asked: `parent`, the position above (of `bounds`, `open`, `find`), and `size`, how many
    coordinates the level has."""

    def __init__(self, method: str, size, parent=None):
        self._method, self._size, self._parent = method, size, parent

    @property
    def size(self):
        return self._size()

    @property
    def parent(self):
        if self._parent is None:
            raise FormatError(
                f"'{self._method}' is asked without the parent; 'open' may give it as state, or it follows from 'lo'"
            )
        return self._parent


class _Field:
    """An array inside of a method: it can be read, and nothing else."""

    def __init__(self, machine, name: str, unsigned):
        self._machine, self._name, self._unsigned = machine, name, unsigned

    def __getitem__(self, index):
        return self._machine.field(self._name, index, self._unsigned)

    def __setitem__(self, index, value):
        raise FormatError(f"array '{self._name}' is read by methods, and filled by 'place' alone")

    def __iter__(self):
        raise FormatError(f"array '{self._name}' has no end that a kernel knows; read single elements")


class _Self:
    """What `self` is inside of a method: the class with its constants, and the arrays of one level."""

    def __init__(self, cls, machine):
        object.__setattr__(self, "_cls", cls)
        object.__setattr__(self, "_machine", machine)

    def __getattr__(self, name):
        own = self._cls.arrays().get(name)
        if own is not None:
            return _Field(self._machine, name, own.unsigned)
        value = inspect.getattr_static(self._cls, name)
        return value.__get__(self) if inspect.isfunction(value) else getattr(self._cls, name)

    def __setattr__(self, name, value):
        raise FormatError(f"'{name}' is set inside of a method, which has no effects; give it as state")


# The methods of kernels: what they take behind `at`, whether `at` has the parent, and how many values they answer.
METHODS = {
    "bounds": ((), True, 2),
    "open": (("lo",), True, None),
    "coordinate": (("lo", "pos"), False, None),
    "seek": (("lo", "hi", "crd"), False, 1),
    "find": (("crd",), True, 2),
    "owner": (("pos", "parents"), False, 1),
}


class LevelKind:
    """A level kind of one's own: arrays, and methods that say how a level of the kind is walked and filled.

    Decorated by `lacis.kind` it is written `@name` in formats. Its methods are run on symbols, which gives the code of
    kernels, and on tensors, to read and validate. They have no effects, and Python neither branches nor loops on what
    they are given: see `where`, `fori`, `whilei`.

    Of `bounds(at)`, `coordinate(at, lo, pos, *state)`, and `place(fibre)`, which fills the arrays, there is always one;
    `open(at, lo)`, `seek(at, lo, hi, crd)`, `find(at, crd)` and `owner(at, pos, parents)` where it can: a step that
    needs a missing one refuses the kind. `ordered` says that coordinates ascend in a fibre, `unique` that none is there
    twice, `gaps` that positions may lie under no parent, `fills` that one may have a coordinate and hold no entry.
    `fixed = n` says that each parent has n positions, one behind the other, and stands for `bounds`: loops know how
    often they run. docs/user-kinds.md has examples.
    """

    fixed: ClassVar[int | None] = None
    ordered: ClassVar[bool] = True
    unique: ClassVar[bool] = True
    gaps: ClassVar[bool] = False
    fills: ClassVar[bool] = False
    place = None

    _symbol: ClassVar[str] = ""
    _text: ClassVar[str] = ""
    _states: ClassVar[int] = 0
    _padded: ClassVar[bool] = False

    @classmethod
    def arrays(cls) -> dict[str, array]:
        """Its arrays by name, in the order of the class."""
        found = {}
        for base in reversed(cls.__mro__):
            found.update({name: value for name, value in vars(base).items() if isinstance(value, array)})
        return found

    @classmethod
    def methods(cls) -> tuple[str, ...]:
        """Those of its methods that kernels may be made of."""
        return tuple(name for name in METHODS if callable(getattr(cls, name, None)))

    @classmethod
    def call(cls, method: str, machine, parent, *arguments):
        """Run a method on a machine: `traced.Code` or `eager.Eager`."""
        at = At(method, machine.level_size, parent)
        return getattr(cls, method)(_Self(cls, machine), at, *arguments)

    @classmethod
    def text(cls) -> str:
        """The operation `lacis.kind` that defines it in a kernel's text."""
        return cls._text


KINDS: dict[str, type[LevelKind]] = {}


def kind(cls=None, *, name: str | None = None):
    """Class decorator: a `LevelKind` becomes known to formats as `@name`, by default its class's name in small letters.

    Its methods are run once, on symbols. Raises `FormatError` at the user's line for a method that does what kernels
    cannot, and for a name that another kind has.
    """
    if cls is None:
        return lambda decorated: kind(decorated, name=name)
    if not isinstance(cls, type) or not issubclass(cls, LevelKind):
        raise FormatError(f"kind: {cls!r} is no class of lacis.LevelKind")
    name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise FormatError(f"kind: {name!r} is no name")
    text, states, padded = _traced(cls, name)
    if _traced(cls, name)[0] != text:
        raise FormatError(f"kind '@{name}': its methods make other code when run again; they must have no effects")
    known = KINDS.get(f"@{name}")
    if known is not None and known is not cls and known._text != text:
        where = format_location(getattr(known, "_location", None))
        raise FormatError(f"kind: there is another '@{name}' ({where}); give this one its own: @lacis.kind(name=...)")
    cls._symbol, cls._text, cls._states, cls._padded = f"@{name}", text, states, padded
    cls._location = user_location()
    KINDS[cls._symbol] = cls
    return cls


def kind_texts(format: str) -> list[str]:
    """The operations that define the kinds that the text of a format names."""
    names = dict.fromkeys(re.findall(r"@[A-Za-z_][\w$.]*(?!\w|\()", format))
    return [KINDS[name].text() for name in names if name in KINDS]


def _traced(cls, name: str) -> tuple[str, int, bool]:
    """The text of the operation, how many states a walk has, and whether positions may hold no entry."""
    arrays, methods = cls.arrays(), cls.methods()
    for own in arrays:
        if not _NAME.fullmatch(own) or own in (*METHODS, "values", "valid", *dir(LevelKind)):
            raise FormatError(f"kind '@{name}': an array cannot be called '{own}'; use letters, the last no digit")
    if cls.fixed is not None and (type(cls.fixed) is not int or cls.fixed < 1 or "bounds" in methods):
        raise FormatError(f"kind '@{name}': 'fixed' is a number of positions from 1 on, and stands for 'bounds'")
    for needed in ("bounds", "coordinate") if cls.fixed is None else ("coordinate",):
        if needed not in methods:
            raise FormatError(f"kind '@{name}' needs the method '{needed}'")
    bodies, states, padded = [], 0, False
    for method in ("open", *(m for m in methods if m != "open")):
        if method not in methods:
            continue
        lines, count, padded_here = _trace_method(cls, name, method, states)
        states = count if method == "open" else states
        padded = padded or padded_here
        bodies.append(lines)
    facts = [fact for fact in ("ordered", "unique", "fills") if getattr(cls, fact)]
    facts += [] if cls.fixed is None else [f"fixed = {cls.fixed}"]
    head = f"lacis.kind @{name} arrays({', '.join(f'{n} : {a.text}' for n, a in arrays.items())})"
    head += f" facts({', '.join(facts)})" if facts else ""
    return "\n".join([head + " {", *bodies, "}"]), states, padded


def _trace_method(cls, name: str, method: str, states: int) -> tuple[str, int, bool]:
    """The text of a method, how many values it answers, and whether a position may hold no entry."""
    arguments, has_parent, wanted = METHODS[method]
    count = has_parent + len(arguments) + (states if method == "coordinate" else 0)

    def run(code, *symbols):
        parent, rest = (symbols[0], symbols[1:]) if has_parent else (None, symbols)
        return cls.call(method, code, parent, *rest)

    what = f"kind '@{name}', '{method}'"
    lines, taken, answers = trace(what, count, run)
    padded = method == "coordinate" and len(answers) == 2 + states
    if method == "coordinate":
        types = [INDEX, *[BIT] * padded, *[INDEX] * states]
    else:
        types = [INDEX] * (len(answers) if wanted is None else wanted)
        types = [INDEX, BIT] if method == "find" else types
    found = [answer.type for answer in answers]
    if found != types:
        say = lambda types: ", ".join("an integer" if t == INDEX else "a truth value" for t in types)
        raise FormatError(f"{what}: answers {say(found)}, and must answer {say(types)}")
    values = ", ".join(answer.name for answer in answers)
    body = [f"  {method}({', '.join(symbol.name for symbol in taken)}) {{", *(f"  {line}" for line in lines)]
    return "\n".join([*body, f"    lacis.answer {values} : {', '.join(found)}", "  }"]), len(answers), padded
