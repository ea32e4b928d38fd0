# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a text, the tools and the process that compiles answer, and say what is wrong."""

import os
import random
import subprocess

import mutations
import pytest
import tally

import lacis
import lacis_tools
from lacis import _core

pytestmark = pytest.mark.skipif(mutations.OPT is None, reason="lacis-opt is not built")
COMPILE = str(lacis_tools.find("lacis-compile"))
MANY = 100_000

NESTED = {
    "arrays": "func.func private @f() attributes {a = " + "[" * MANY + "]" * MANY + "}",
    "dictionaries": "func.func private @f() attributes {a = " + "{b = " * MANY + "1" + "}" * MANY + "}",
    "never closed": "func.func private @f() attributes {a = " + "[" * MANY,
    "types": "func.func private @f(" + "tuple<" * MANY + ">" * MANY + ")",
    "functions": "func.func private @f(" + "() -> (" * MANY + ")" * MANY + ")",
    "expressions": "#m = affine_map<(i) -> (" + "(" * MANY + "i" + ")" * MANY + ")>",
    "signs": "#m = affine_map<(i) -> (" + "- " * MANY + "i)>",
    "regions": "module {" * MANY + "}" * MANY,
    "locations": "module {} loc(" + 'callsite("a" at ' * MANY,
    "aliases": "#a0 = [1]\n" + "".join(f"#a{n + 1} = [#a{n}]\n" for n in range(10_000)) + "module {}",
}


def refused(text):
    """What the three doors say of a text that they refuse: the two tools, and a process that goes on."""
    for command in ([mutations.OPT, "-"], [COMPILE, "-", "--target=cpu", "--emit=loops"]):
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=mutations.SECONDS)
        assert done.returncode == 1, (command, done.returncode, done.stderr[-500:])
        yield done.stderr
    with pytest.raises(lacis.CompileError) as caught:
        _core.compile(text, "cpu", {})
    yield str(caught.value)


@pytest.mark.parametrize("kind", NESTED)
def test_nesting_has_a_bound_that_the_error_names(kind):
    line = len(NESTED[kind].partition("\nmodule")[0].splitlines()) if kind != "aliases" else 257
    for said in refused(NESTED[kind]):
        assert f":{line}:1: error: the text is nested 25" in said
        assert "deep here, what aliases stand for included; 256 brackets inside one another are the most" in said


def test_nesting_of_llvm_ir_has_the_same_bound():
    text = "; ModuleID = 'x'\n@a = global " + "[1 x " * MANY + "i32" + "]" * MANY + " undef"
    with pytest.raises(lacis.CompileError, match=":2:1: error: the text is nested 257 deep"):
        _core.compile(text, "cpu", {})


def test_what_is_nested_less_deep_is_read():
    lines = [f"#s{n} = affine_set<(i) : (i >= {n})>" for n in range(300)]  # a comparison closes no bracket
    lines.append("func.func private @f() attributes {a = " + "[" * 254 + "]" * 254 + ', b = "[[[[[["} // [[[[[[')
    done = subprocess.run([mutations.OPT, "-"], input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", ["[5984]", "#names", '["parallel", 1]', "[#linalg.iterator_type<parallel>]"])
def test_iterators_are_names(value):
    text = "#names = [1]\nfunc.func @f(%x: tensor<f32>) {\n  linalg.generic {indexing_maps = [], iterator_types = "
    for said in refused(text + value + "} outs(%x : tensor<f32>) {\n  }\n}"):
        assert ':3:1: error: \'iterator_types\' is a list of names in quotes, "parallel" or "reduction"' in said


def test_arrays_are_of_numbers_with_a_width():
    for said in refused("func.func private @f(i32 {a = array<index: 4>})"):
        assert ":1:1: error: 'array' is of numbers with a width: i1, i8, i16, i32, i64, f32 or f64; got index" in said


def test_iterators_in_the_generic_form_are_read():
    maps = "indexing_maps = [affine_map<() -> ()>], iterator_types = []"
    text = f"""func.func @f(%x: tensor<f32>) -> tensor<f32> {{
      %y = linalg.generic {{{maps}}} outs(%x : tensor<f32>) {{ ^bb0(%a: f32): linalg.yield %a : f32 }} -> tensor<f32>
      return %y : tensor<f32>
    }}"""
    for form in ([], ["-mlir-print-op-generic"]):
        done = subprocess.run([mutations.OPT, "-", *form], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        text = done.stdout


def answers(seed, count):
    """Runs mutations of stages: each ends by itself, well or with an error that says something."""
    drawn = random.Random(seed)
    for _ in range(count):
        text, passes = mutations.draw(drawn)
        changed = mutations.mutate(text, drawn)
        done = mutations.run(changed, *passes)
        assert done.returncode in (0, 1), f"{passes}: {done.returncode}\n{done.stderr[-2000:]}\n{changed}"
        assert done.returncode == 0 or "error: " in done.stderr, f"{passes}\n{changed}"
        tally.counts["mutated texts"] += 1


def test_mutated_stages_are_answered():
    answers(tally.SEED, 60)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_many_mutated_stages_are_answered(part):
    answers(tally.SEED + 1 + part, int(os.environ.get("LACIS_TEST_MUTATIONS", "500")))
