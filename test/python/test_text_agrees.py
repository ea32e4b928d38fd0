# SPDX-License-Identifier: Apache-2.0
"""Python and lacis-opt write and refuse the same formats."""

import pathlib
import shutil
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lacis.errors import FormatError
from lacis.formats import Bcsc, Bitmap, BlockedEll, Bsr, Coo, Csc, Csr, Dcsr, Dense, Dia, Ell, Format, NMFormat
from lacis.formats import Sell, TwoFour, companion
from strategies import formats_and_sums
from test_formats import WHOLE_GRAMMAR

OPT = shutil.which("lacis-opt", path=pathlib.Path(sys.executable).parent) or shutil.which("lacis-opt")
pytestmark = pytest.mark.skipif(OPT is None, reason="lacis-opt is not built")
PREDEFINED = [Csr(), Csc(), Coo(), Dcsr(), Ell(), Ell(4), Bsr(4, 8), Bcsc(4, 8), BlockedEll(4, 8, 2), Dense()]
PREDEFINED += [Bitmap(4, 8), Dia(), NMFormat(1, 4), Sell(32, 128), TwoFour()]


def run(texts, rank=2):
    """What lacis-opt prints for functions that take tensors of these formats."""
    dims = "?x" * rank
    lines = [f"func.func private @f{n}(tensor<{dims}f32, {text}>)" for n, text in enumerate(texts)]
    return subprocess.run([OPT, "-"], input="\n".join(lines), capture_output=True, text=True, timeout=120)


def agree(formats, rank=2):
    result = run([str(fmt) for fmt in formats], rank)
    assert result.returncode == 0, result.stderr
    for fmt in formats:
        assert f"f32, {fmt}>" in result.stdout


def test_the_predefined_formats_and_their_companions():
    companions = [companion(fmt, [axis]) for fmt in PREDEFINED for axis in (0, 1)]
    agree(PREDEFINED + [c for c in companions if c is not None])


@settings(max_examples=1, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.lists(formats_and_sums(), min_size=100, max_size=200))
def test_formats_at_random(formats):
    agree(formats)


@pytest.mark.parametrize("text", WHOLE_GRAMMAR)
def test_the_whole_grammar(text):
    if "#x.y" in text:
        text = text.replace("#x.y<a = [1, 2]>", "[1, 2]")
    agree([Format.parse(text)], Format.parse(text).rank)


@pytest.mark.parametrize(
    "text",
    [
        "(i, j) -> (i : dense)",
        "(i, j) -> (i : dense, i : dense, j : dense)",
        "(i, j) -> (i floordiv 16 : dense, i mod 8 : dense, j : dense)",
        "(i, j) -> (i mod 0 : dense, j : dense)",
        "(i, j) -> (i : singleton, j : dense)",
        "(i, j) -> (i : dense, j : fixed<4>)",
        "(i, j) -> (i : dense, j : singleton)",
        "(i, j) -> (i : dense, link, j : compressed)",
        "(i, j) -> (i : dense, j : nosuch)",
        "(i, j) -> (i : dense<4>, j : dense)",
        "(i, j) -> (i : dense, j : packed<0>)",
        "(i, j) -> (i mod 16 mod 5 : dense, j : dense)",
        "(i, j) -> (i : dense, j : structured<2>)",
        "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<5>)",
        "(i, j) -> (i : dense, j floordiv 2048 : dense, j mod 2048 : bitmap)",
        "(i, j) -> (i : dense, j : fixed*bitmap<?>)",
        "(i, j) -> (i : dense, j : var*delta<4>)",
        "(i, j) -> (i : dense, j : full*delta<8>)",
        "(i, j) -> (i : dense, j : var2*bitmap)",
        "(i, j) let d = j - i -> (d : compressed)",
        "(i, j) let d = j - i -> (i : dense, j : dense)",
    ],
)
def test_both_refuse(text):
    with pytest.raises(FormatError):
        Format.parse(text)
    result = run([f"#lacis.format<{text}>"])
    assert result.returncode != 0 and "error" in result.stderr
