# SPDX-License-Identifier: Apache-2.0
"""Formats as values: how they are said, printed, parsed, nested, and refused."""

import doctest
import pathlib
import pickle

import lacis.formats as lacis
import pytest
from hypothesis import given, settings
from lacis import knobs
from lacis.errors import DataError, Error, FormatError
from lacis.formats import Bsr, Coo, Csc, Csr, Ell, Format, Sum, compose, decompose
from strategies import formats_and_sums

TABLE = {
    Csr: "(i, j) -> (i : dense, j : compressed)",
    Csc: "(i, j) -> (j : dense, i : compressed)",
    lacis.Dcsr: "(i, j) -> (i : compressed, j : compressed)",
    Coo: "(i, j) -> (i : compressed<unique=false>, j : singleton)",
    Ell: "(i, j) -> (i : dense, j : packed<?>)",
}
WHOLE_GRAMMAR = [
    "(i, j) let r = rank(i by nnz within 128), s = slot(j in i) -> "
    "(r floordiv 32 : dense, s : ragged, r mod 32 : dense, j : singleton<pad=true>)",
    "(i, j) let d = j - i -> (d : compressed, i : range)",
    "(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, (i mod 16, j mod 16) : bitmap)",
    "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)",
    "(i, j) -> (j : dense, i : compressed, link)",
    "(i, j) -> (j : dense, i : compressed<unique=false, pos=i64, crd=i64>, link<pos=i64>)",
    "(i, j) -> (i : @mine, j : compressed)",
    "(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, (i mod 16, j mod 16) : compressed<crd=i16>)",
    "(i, j) -> (i : dense, j : compressed<ordered=false, pos=i64, crd=i64>)",
    "(i, j) -> (i : dense, j : fixed*delta<4, 8>)",
    "(i, j) -> (i : dense, j : full*bitmap)",
    "(i, j) -> (i : var2*crd, j : var*fn), multiset",
    "(h, i, j) -> (h : batch, i : dense, j : compressed), layout = #x.y<a = [1, 2]>, multiset",
    "(i, j) -> (i floordiv 64 : dense, j : compressed, i floordiv 16 mod 4 : dense, i mod 16 : dense)",
]


@pytest.mark.parametrize("cls, text", TABLE.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_the_table(cls, text):
    assert str(cls()) == f"#lacis.format<{text}>"
    assert Format.parse(text) == cls() and Format.parse(str(cls())) == cls()


@pytest.mark.parametrize("text", WHOLE_GRAMMAR)
def test_the_whole_grammar_parses_and_prints(text):
    fmt = Format.parse(text)
    assert str(fmt) == f"#lacis.format<{text}>"
    assert Format.parse(str(fmt)) == fmt and hash(Format.parse(str(fmt))) == hash(fmt)


@settings(max_examples=150, deadline=None)
@given(formats_and_sums())
def test_round_trip_of_any_text(fmt):
    again = Format.parse(str(fmt))
    assert again == fmt and str(again) == str(fmt) and hash(again) == hash(fmt)


def test_spelling_does_not_count():
    assert Format.parse("(r, c) -> (r : full, c : var*crd)") == Csr()
    assert Format.parse("(r,c)->(r:dense,c:compressed<unique=true>)") == Csr()
    assert Format.parse("(i, j) -> (i : dense, j : packed<3, pad=true>)") == Ell(3)
    assert str(Format.parse("(i, j) -> (i : dense, j : packed<3, pad=false>)")).endswith("packed<3, pad=false>)>")
    assert Csr() != Csc() and Csr() != "text" and Csr() == Csr()
    assert pickle.loads(pickle.dumps(Ell(3))) == Ell(3)


def test_a_format_of_ones_own():
    class Ellpack(lacis.Format):
        def __init__(self):
            with lacis.iter(dim=2) as (I, J):
                J.compress(coordinate=True).pack()
                self.indices = [I, J]

    class BlockCoo(lacis.SparseTensor):
        def __init__(self):
            with lacis.iter(dim=2) as (I, J):
                (I0, I1), (J0, J1) = I.block(8), J.block(4)
                I0.compress(unique=False)
                J0.follow()
                self.indices = [I0, J0, lacis.fuse(I1, J1).compress()]

    assert Ellpack() == Ell()
    assert str(BlockCoo()) == (
        "#lacis.format<(i, j) -> (i floordiv 8 : compressed<unique=false>, j floordiv 4 : singleton, "
        "(i mod 8, j mod 4) : compressed)>"
    )
    assert BlockCoo() == Format.parse(str(BlockCoo()))


def test_nesting():
    nest = compose(2, [(16, 16)], [(Ell, [0, 1]), (Coo, [2, 3])])
    assert str(nest) == (
        "#lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, "
        "i mod 16 : compressed<unique=false>, j mod 16 : singleton)>"
    )
    assert compose(2, [(64, 32)], [(Bsr, None)]) == Bsr(64, 32) == compose(2, [(64, 32)], [(Bsr(64, 32), None)])
    assert compose(2, [(64, 64)], [(lacis.BlockedEll(width=3), None)]) == lacis.BlockedEll(64, 64, width=3)
    assert compose(2, [(64, 32)], [(Csr, None)]) == Bsr(64, 32)
    assert compose(2, [], [(Csc, None)]) == Csc()
    assert compose(2, [], [(Csr, [1, 0])]) == Csc()
    deep = compose(2, [(16, 16), (4, 4)], [(Csr, [0, 1]), (Csc, [2, 3]), (Coo, [4, 5])])
    assert str(deep) == (
        "#lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, j floordiv 4 mod 4 : dense, "
        "i floordiv 4 mod 4 : compressed, i mod 4 : compressed<unique=false>, j mod 4 : singleton)>"
    )
    assert compose(2, [(16, 16)], [(Bsr(2, 2), [0, 1])]).levels[0].digits[0].div == 32


@pytest.mark.parametrize(
    "blocks, formats, message",
    [
        ([(16,)], [(Csr, None)], "needs 2 sizes"),
        ([(0, 16)], [(Csr, None)], "positive"),
        ([(16, 16), (5, 4)], [(Csr, None)], "does not divide"),
        ([(16, 16)], [(Csr, [0, 4])], "no axis 4"),
        ([(16, 16)], [(Csr, [0, 1]), (Coo, [1, 2])], "axis 1 has a format"),
        ([(16, 16)], [(Csr, [0, 1, 2])], "has 2 axes, the tensor has 3"),
        ([(16, 16)], [(Bsr(8, 8), None)], r"\.block\(\) says \(16, 16\)"),
        ([], [(Bsr, None)], "no block sizes"),
        ([(16, 16)], [(Coo, [0, 1]), (decompose(a=Coo), [2, 3])], "sum cannot be nested"),
    ],
)
def test_nests_that_are_refused(blocks, formats, message):
    with pytest.raises(FormatError, match=message):
        compose(2, blocks, formats)


@pytest.mark.parametrize(
    "text, message",
    [
        ("(i, j) -> (i : dense)", "axis 'j' is missing"),
        ("(i, j) -> (i : dense, i : dense, j : dense)", "exactly once"),
        ("(i, j) -> (i floordiv 16 : dense, i mod 8 : dense, j : dense)", "exactly once"),
        ("(i, j) -> (i floordiv 16 : dense, j : dense)", "lacks its innermost digit 'i mod 16'"),
        ("(i, j) -> (i mod 0 : dense, j : dense)", "must be positive"),
        ("(i, j) -> (i floordiv -4 : dense, j : dense)", "must be positive"),
        ("(i, j) -> (i : singleton, j : dense)", "no level above it"),
        ("(i, j) -> (i : dense, j : singleton)", "'singleton' follows 'dense'.*'pad=true' here"),
        ("(i, j) -> (i : dense, link, j : compressed)", "'link' comes last"),
        ("(i, j) -> (i : dense, j : var*delta<?>)", "must be a number"),
        ("(i, j) -> (i : dense, j : full*crd)", "nothing to store"),
        ("(i, j) -> (i : dense, j : one*bitmap)", "needs a stored coordinate"),
        ("(i, j) -> (i : dense, j : var*code)", "structured<n>"),
        ("(i, j) -> (i : batch*crd, j : dense)", "leave 'crd' out"),
        ("(i, j) -> (i : dense, j : range*delta)", "leave 'delta' out"),
        ("(i, j) -> (i : dense, j : fixed<4>)", "needs a coordinate"),
        ("(i, j) -> (i : dense, j : nosuch)", "no level kind 'nosuch'"),
        ("(i, j) -> (i : dense, j : var*nosuch)", "no coordinate 'nosuch'"),
        ("(i, j) -> (i : dense, k : dense)", "no axis named 'k'"),
        ("(i, i) -> (i : dense)", "twice"),
        ("(i, j) -> (i : dense<4>, j : dense)", "'dense' takes no '4'"),
        ("(i, j) -> (i : dense<unique=false>, j : dense)", "'dense' takes no 'unique'"),
        ("(i, j) -> (i : dense, j : compressed<unique=maybe>)", "true or false"),
        ("(i, j) -> (i : dense, j : compressed<crd=f32>)", "integer type"),
        ("(i, j) -> (i : dense, j : packed<0>)", "must be positive"),
        ("(i, j) -> (i : dense, j : dense) nonsense", "expected the end"),
        ("(i, j) (i : dense, j : dense)", "expected '->'"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(FormatError, match=message):
        Format.parse(text)


def test_sums():
    fmt = decompose(ell=Ell(32), rest=Coo)
    assert str(fmt) == (
        "#lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<32>)> when fits, "
        "rest = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>"
    )
    assert Format.parse(str(fmt)) == fmt and hash(Format.parse(str(fmt))) == hash(fmt)
    rules = str(fmt).replace("when fits", "when fits and slot(j in i) lt 8 and nnz(i floordiv 2, j) ge 3 and j eq 0")
    signs = rules.replace(" lt ", " < ").replace(" ge ", " >= ").replace(" eq ", " == ")
    assert str(Format.parse(rules)) == rules == str(Format.parse(signs))


def test_sums_that_are_refused():
    with pytest.raises(FormatError, match="'ell' takes every entry"):
        decompose(ell=Ell, rest=Coo)
    with pytest.raises(FormatError, match="has 3 axes"):
        decompose(ell=Ell(3), rest=Coo(3))
    with pytest.raises(FormatError, match="no rule"):
        Sum({"a": Ell(3), "b": Coo()})
    with pytest.raises(FormatError, match="cannot have a rule"):
        Format.parse(str(Csr()).join(["#lacis.sum<a = ", " when j < 3>"]))
    with pytest.raises(FormatError, match="twice"):
        Format.parse(f"#lacis.sum<a = {Csr()} when j < 3, a = {Csr()}>")
    with pytest.raises(FormatError, match="at least one part"):
        decompose()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: lacis.Format().levels, "set self.indices"),
        (lambda: Bsr(16), "both block sizes"),
        (lambda: Bsr(0, 4), "positive"),
        (lambda: Ell(0), "positive"),
        (lambda: Bsr().text, "no block sizes"),
        (lambda: Csr().for_rank(3), "has 2 axes, the tensor has 3"),
        (lambda: lacis.as_format(3), "expected a format"),
        (lambda: lacis.iter(dim=0).__enter__(), "1 to 26"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(FormatError, match=message):
        make()


def test_errors_name_the_users_line_and_are_one_family():
    with pytest.raises(Error, match=r"test_formats\.py:\d+: "):
        Bsr(16)
    assert issubclass(DataError, ValueError) and issubclass(FormatError, Error)
    again = pickle.loads(pickle.dumps(DataError("wrong", location=("a.py", 3))))
    assert str(again) == "a.py:3: wrong"


def test_the_table_of_knobs_is_in_the_docs(monkeypatch):
    docs = pathlib.Path(__file__).parents[2] / "docs" / "knobs.md"
    assert knobs.table() in docs.read_text()
    monkeypatch.setenv("LACIS_DEBUG", "1")
    assert knobs.debug is True
    monkeypatch.setenv("LACIS_DEBUG", "0")
    assert knobs.debug is False
    with pytest.raises(AttributeError, match="no 'nosuch'"):
        _ = knobs.nosuch


def test_the_page_about_formats_runs():
    page = pathlib.Path(__file__).parents[2] / "docs" / "formats.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 10 and not result.failed


def test_formats_below_other_axes():
    below = Format.parse("(i, j) let h = j - i -> (h : compressed, i : range)").batched("h")
    assert below == Format.parse("(b, i, j) let h = j - i -> (b : batch, h : compressed, i : range)")
    assert str(Format.parse("(i, j) -> ((i, j) : compressed)").under("h")).startswith(
        "#lacis.format<(h, i, j) -> (h : dense"
    )
    with pytest.raises(FormatError, match="a format with bindings has no arrays for each head"):
        Format.parse("(i, j) let d = j - i -> (d : compressed, i : range)").under("h")
