# SPDX-License-Identifier: Apache-2.0
"""`python -m lacis node` builds the node of autograd for the torch that is installed, and says why where it cannot."""

import logging
import os
import subprocess
import sys

import lacis
import pytest
import torch
from lacis import __main__
from lacis.runtime import node
from torch.utils import cpp_extension

NOWHERE = """
import lacis, torch
from lacis import __main__
from lacis.runtime import bound, library, node

node.name = lambda: "absent.so"
lacis.__path__.insert(0, "/nowhere")  # where nobody may write
"""
BUILD = "assert __main__.main(['node']) == 0"
TRAIN = """
library.register()
assert bound.has_node()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 8))
s = lacis.create_schedule(model)
s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
layer, x = s.build()[0], torch.randn(4, 16, requires_grad=True)
for _ in range(2):
    x.grad = None
    y = layer(x)
    y.sum().backward()
assert "LayerCall" in y.grad_fn.name(), y.grad_fn.name()
torch.testing.assert_close(x.grad, layer.weight.to_dense().detach().sum(0).expand(4, -1))
"""


@pytest.fixture
def missing(monkeypatch, tmp_path):
    """As where Lacis was built against another torch; the folder of kernels, which is empty."""
    monkeypatch.setattr(node, "name", lambda: "absent.so")
    monkeypatch.setattr(lacis, "__path__", [str(tmp_path / "package")])
    monkeypatch.setenv("LACIS_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_what_is_missing_is_said_with_what_to_run(missing):
    said = dict(__main__.rows())["autograd"]
    assert said == f"Python, for want of a node for torch {torch.__version__}: run python -m lacis node"


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("get_cxx_compiler", lambda: "no-such-c++", "there is no C++ compiler 'no-such-c++' on the PATH; install one"),
        ("is_ninja_available", lambda: False, "torch builds its extensions with ninja, which is not on the PATH; pip"),
        ("include_paths", lambda: ["/nowhere"], f"torch {torch.__version__} has no headers: 'torch/csrc/autograd/cus"),
    ],
)
def test_what_a_build_needs_is_said(missing, monkeypatch, capsys, name, value, said):
    for each, there in {"get_cxx_compiler": lambda: sys.executable, "is_ninja_available": lambda: True}.items():
        monkeypatch.setattr(cpp_extension, each, there)
    monkeypatch.setattr(cpp_extension, name, value)
    assert __main__.main(["node"]) == 1
    assert capsys.readouterr().err.startswith(f"python -m lacis node: {said}")


def test_one_that_others_could_have_written_is_passed_over(missing, caplog):
    library = missing / node.built_name()
    library.write_bytes(b"")
    library.chmod(0o600)
    assert node.find() == str(library)
    library.chmod(0o622)
    with caplog.at_level(logging.WARNING, "lacis"):
        assert node.find() is None
    assert "other users can write to it" in caplog.text
    library.rename(missing / "elsewhere")
    library.symlink_to(missing / "elsewhere")
    assert node.find() is None


def test_one_that_is_there_is_not_built_again(missing, capsys):
    folder = missing / "package"
    folder.mkdir()
    (folder / node.built_name()).write_bytes(b"")
    assert __main__.main(["node"]) == 0
    assert capsys.readouterr().out.strip() == str(folder / node.built_name())


@pytest.mark.long
def test_a_node_that_was_built_runs(tmp_path):
    env = {**os.environ, "LACIS_CACHE_DIR": str(tmp_path)}
    for script in (NOWHERE + BUILD, NOWHERE + TRAIN):
        subprocess.run([sys.executable, "-c", script], env=env, check=True)
    assert (tmp_path / node.built_name()).stat().st_mode & 0o077 == 0
