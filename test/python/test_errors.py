# SPDX-License-Identifier: Apache-2.0
"""Every sentence of the C++ half stands in a test; every operation, pass, step and level kind has a lit test."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Sentences without a test, each with the reason. What is listed must still be said, and in no test.
UNTESTED = {
    "cannot create a temporary file": "the operating system refuses",
    "how many copies loop": "no nest has a loop that meets with a bound of its own rounds",
    "context of device": "the CUDA driver refuses",
    "bytes of shared memory; device": "the device has less than the target that the code was made for",
    "blocks is more than the device takes": "no tensor that fits the device asks for so many",
    "lacis: torch refused": "torch refuses",
    "lacis: this torch was built without CUDA": "such a torch gives no tensor of a GPU",
    "lacis: torch has no dtype for the output of this kernel": "a launch plan refuses such an output before",
    "tensors must lie on the CPU or on a CUDA device": "torch calls the operator for no other device",
    "failed without a word": "a pass that fails says why",
    "the loops are not those over blocks, the rows of a block, and columns": "no format or part has others",
    "the loops are not those over blocks and the two axes of a block": "no format has others",
    "no statement takes the largest of what another made on the pattern, for exponentials below it": "chains have one",
    "no statement adds up what another made on the pattern": "a chain is one because of such a sum",
    "its steps do not go together with those that were given": "those alone are refused then, and that is told",
    "a path has a name for each step, at least one": "the parser makes both lists of one",
    "has shares that another step has changed": "no step changes the shares that split_nnz makes",
}


def plain(text):
    """Without the backslashes that quote, and with one space for each gap."""
    return re.sub(r"\s+", " ", re.sub(r"\\(.)", r"\1", text.replace(r"\n", " ")))


def sentences(source):
    """String literals of C++ that have three words or more; adjacent literals are one.

    Names of files, assertions, what `--help` says (with a capital), what torch is asked for, and assembly are none.
    """
    source = re.sub(r"//[^\n]*|#\s*include[^\n]*|getDescription\(\)[^\n]*", "", source)
    nested = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
    source = re.sub(rf"\b(assert|static_assert|llvm_unreachable|desc|checkTorch)\s*{nested}", "", source)
    for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*"', "", source)):
        text = plain(literal).strip(" ,:;'\"().")
        words = [word for word in text.split() if re.search("[A-Za-z]{2}", word)]
        if len(words) >= 3 and not text[0].isupper() and not re.search(r"[$@{}]|->|[a-z0-9][.:][a-z0-9]", text):
            yield text


def said(root):
    """Each sentence of the C++ half with the file that says it."""
    places = "lib/**/*.cpp", "lib/**/*.h", "include/**/*.td", "python/ops/*", "python/bindings/*"
    for path in sorted(path for place in places for path in root.glob(place)):
        text = path.read_text()
        if path.suffix == ".td":  # only the code in it speaks
            text = "".join(code for code in re.findall(r"\[\{(.*?)\}\]", text, re.S) if "emitError" in code)
        for sentence in sentences(text):
            yield sentence, path.relative_to(root)


def heard(root):
    """The text of all tests but this one, where adjacent literals are one."""
    files = [path for kind in ("mlir", "test", "py", "cpp") for path in sorted(root.glob(f"test/**/*.{kind}"))]
    text = "\n".join(path.read_text() for path in files if path.name != pathlib.Path(__file__).name)
    return plain(re.sub(r"""(["'])\s*\n\s*[fr]*\1""", "", text))


def untested(root, exceptions):
    text = heard(root)
    return [f"{path}: {words}" for words, path in said(root) if words not in text and words not in exceptions]


def test_every_sentence_has_a_test():
    assert not untested(ROOT, UNTESTED)


def test_exceptions_are_needed():
    text, known = heard(ROOT), {words for words, _ in said(ROOT)}
    assert [words for words in UNTESTED if words not in known or words in text] == []


@pytest.mark.parametrize(
    "source, expected",
    [
        ('return op.emitError("a new refusal that ") << n << " ends";', ["a new refusal that"]),
        ('emitError() << "one sentence "\n    "in two pieces";', ["one sentence in two pieces"]),
        ('return why = "it is no product of matrices", false;', ["it is no product of matrices"]),
        ('assert(n > 0 && "not for a user"); // "nor is this"', []),
        ('#include "llvm/ADT/Some Long Name.h"\nasm("mov.u32 %r, %s and more;");', []),
    ],
)
def test_a_planted_error_is_found(tmp_path, source, expected):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "New.cpp").write_text(source)
    (tmp_path / "test").mkdir()
    assert untested(tmp_path, {}) == [f"lib/New.cpp: {words}" for words in expected]
    for words in expected:
        (tmp_path / "test" / "new.mlir").write_text(f"// expected-error @below {{{{{words}}}}}")
        assert untested(tmp_path, {}) == []


def declared(pattern):
    """The names that the declarations of the core give, by a pattern."""
    names = [name for path in sorted(ROOT.glob("include/**/*.td")) for name in re.findall(pattern, path.read_text())]
    assert names
    return names


def lit(folder):
    return "\n".join(path.read_text() for path in sorted(ROOT.glob(f"test/{folder}")))


def test_every_operation_has_a_text_that_reads_back_and_one_that_is_used():
    shown, used = lit("Dialect/*.mlir"), lit("[!D]*/**/*.mlir")
    for name in declared(r"Op : \w+<\"(\w+)\""):
        assert re.search(rf"\blacis\.{name}\b", shown), f"test/Dialect shows no lacis.{name}"
        assert re.search(rf"\blacis\.{name}\b", used), f"no lit test of a pass has lacis.{name}"


def test_every_pass_is_run_by_a_lit_test():
    runs = "\n".join(line for line in lit("**/*.mlir").splitlines() if "RUN:" in line or "DEFINE:" in line)
    assert [name for name in declared(r"Pass<\"([\w-]+)\"") if f"-{name}" not in runs] == []


def test_every_step_has_a_lit_test():
    steps = declared(r"Lacis_Step<\"\w+\", \"(\w+)\"")
    assert [name for name in steps if not (ROOT / f"test/Steps/{name}.mlir").exists()] == []


def test_every_level_kind_has_a_lit_test():
    text = lit("Levels/*.mlir")
    kinds = declared(r"Lacis_(?:Extent|Coordinate|ExtentAndCoordinate)<\"\w+\", \"(\w+)\"")
    assert [name for name in kinds if not re.search(rf"\b{name}\b", text)] == []
