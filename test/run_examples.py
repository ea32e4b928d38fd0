# SPDX-License-Identifier: Apache-2.0
"""Runs the ```mlir examples of .td files and pages through lacis-opt: `run_examples.py FILE...`.

Each example must parse, verify, print, and parse again. An example that begins with a line `// lacis-opt FLAGS` gets
those flags; one that begins with `// becomes` is what the example before it turns into.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

EXAMPLE = re.compile(r"^([ \t]*)```mlir\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def examples(path):
    """(line, text) of each example in a file."""
    text = path.read_text()
    for match in EXAMPLE.finditer(text):
        yield text.count("\n", 0, match.start()) + 2, textwrap.dedent(match.group(2))


def flags_of(example):
    first = example.split("\n", 1)[0]
    return first.removeprefix("// lacis-opt").split() if first.startswith("// lacis-opt") else []


def run(text, flags):
    return subprocess.run(["lacis-opt", *flags, "-"], input=text, capture_output=True, text=True)


def main(paths):
    count, failed = 0, 0
    for path in map(pathlib.Path, paths):
        before = None
        for line, example in examples(path):
            count += 1
            result = run(example, flags_of(example))
            if result.returncode == 0:
                result = run(result.stdout, [])
            if result.returncode != 0:
                failed += 1
                print(f"{path}:{line}: error: the example does not run\n{result.stderr}")
            elif example.startswith("// becomes") and result.stdout != before:
                failed += 1
                print(f"{path}:{line}: error: the example before becomes\n{before}")
            before = result.stdout
    print(f"{count} examples, {failed} failed")
    return failed != 0 or count == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
