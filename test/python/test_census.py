# SPDX-License-Identifier: Apache-2.0
"""The census of default kernels: what it says of two files, and a drawn part of the stored one."""

import pathlib
import random
import subprocess
import sys

import pytest
import tally

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import census  # noqa: E402

from lacis.runtime import ptxas  # noqa: E402

STORED = pathlib.Path(census.__file__).with_suffix(".txt")
LINES = ("cpu\ta\tcode=1 registers=4", "cpu\tb\tcode=2 registers=5", "cpu\tc\trefused")


def written(path, *lines) -> str:
    path.write_text("\n".join(["# a comment", *lines]) + "\n")
    return str(path)


def test_files_that_agree(tmp_path, capsys):
    assert census.compare(written(tmp_path / "old", *LINES), written(tmp_path / "new", *LINES)) == 0
    assert capsys.readouterr().out.splitlines()[0] == "code: 2 of 2 equal"


def test_what_differs_is_named(tmp_path, capsys):
    changed = (LINES[0].replace("=4", "=6"), LINES[2].replace("refused", "code=3"), "cpu\td\tcode=4")
    assert census.compare(written(tmp_path / "old", *LINES), written(tmp_path / "new", *changed)) == 4
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "cpu a: registers 4 -> 6" and said[1].startswith("cpu c: ") and "only in" in said[2]
    assert said[-3] == "registers: 0 of 1 equal"


@pytest.mark.long
@pytest.mark.skipif(not ptxas.find(), reason="needs ptxas")
def test_drawn_kernels_are_those_of_the_stored_census(tmp_path):
    """Whoever means to change default kernels writes `test/census.txt` anew, see CONTRIBUTING.md."""
    path, stored = tmp_path / "drawn", census.read(str(STORED))
    first = random.Random(tally.SEED).randrange(len(stored))
    census.write(str(path), census.TARGETS, "", assemble=True, part=range(first, first + 40 * 7, 7))
    same = STORED.read_text().splitlines()[0].partition(", ")[2] == ptxas.version(ptxas.find())
    for name, found in census.read(str(path)).items():
        wanted = stored[name]
        assert found.get("spilled", "0") == wanted.get("spilled", "0"), name
        assert found == wanted if same else found.get("code") == wanted.get("code"), name


@pytest.mark.long
def test_two_environments_take_turns():
    """`bench.turns` on the CPU, with one environment in both places."""
    python, few = sys.executable, ["--most", "1", "--runs", "2"]
    command = [python, "-m", "bench.turns", python, python, "cpu_csr", *few]
    root = STORED.parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert lines[2].startswith("| cpu_csr | 0 | ") and lines[3].startswith("| all | geometric mean |"), done.stderr
    old, new, ratio = (float(cell) for cell in lines[2].split("|")[3:6])
    assert min(old, new) > 0 and abs(ratio - new / old) < 0.01 * ratio
