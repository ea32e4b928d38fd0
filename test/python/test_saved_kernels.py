# SPDX-License-Identifier: Apache-2.0
"""Kernels in files for other processes: whole, under their own names, and from nobody else."""

import os
import shutil
import subprocess
import sys
import types

import handmade
import pytest
import torch

from lacis import _core
from lacis.errors import CompileError, DataError
from lacis.runtime import kernels, library

STORAGE, DENSE, X = handmade.csr_problem()


def save(folder, key, **changes):
    kernels.save({key: types.SimpleNamespace(artifact=handmade.csr_linear(**changes))}, folder)
    return folder / f"{key}.lacis"


@pytest.fixture
def place(tmp_path):
    """A folder that this process loads kernels from, and a key that it has never heard of."""
    library.register()
    folder = tmp_path / "kernels"
    _core.set_kernel_path(str(folder))
    yield folder, handmade.key_of(str(tmp_path).encode())
    _core.set_kernel_path("")


def run(key):
    return library.einsum([X], STORAGE, [5, 37], key, [37, 29])


def test_one_file_a_kernel_that_others_read(place):
    folder, key = place
    path = save(folder, key)
    assert os.listdir(folder) == [f"{key}.lacis"] and path.stat().st_mode & 0o777 == 0o644
    torch.testing.assert_close(run(key), X @ DENSE.T)


def test_a_path_may_name_the_file(place):
    folder, key = place
    _core.set_kernel_path(f"/nowhere:{save(folder, key)}")
    torch.testing.assert_close(run(key), X @ DENSE.T)


def test_another_process_loads_it(tmp_path):
    saved = "ab" * 32
    save(tmp_path, saved)
    script = f"""
import sys; sys.path.insert(0, {handmade.__file__.rsplit("/", 1)[0]!r})
import os; os.environ["LACIS_KERNEL_PATH"] = {str(tmp_path)!r}
import handmade, torch
from lacis.runtime import library
library.register()
storage, dense, x = handmade.csr_problem()
y = library.einsum([x], storage, [5, 37], {saved!r}, [37, 29])
torch.testing.assert_close(y, x @ dense.T)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_write_that_fails_leaves_what_was_there(place, monkeypatch):
    folder, key = place
    path = save(folder, key)
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        save(folder, key, index_bits=64)
    assert path.read_bytes() == before and os.listdir(folder) == [path.name]


def exchange(path):
    other = save(path.parent, "cd" * 32)
    path.unlink()
    os.rename(other, path)


def link(path):
    shutil.move(path, path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")
    os.lchown(path, 65534, -1)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def loop(path):
    path.unlink()
    path.symlink_to(path)


CHANGES = {
    "is damaged, or was saved under another name; save it again with lacis.save_kernels": exchange,
    "is no kernel that this version saved; save it again with lacis.save_kernels": lambda p: p.write_bytes(b""),
    "is no kernel that this version saved": lambda p: p.write_bytes(handmade.csr_linear()),
    "belongs to another user; kernels are loaded from files of your own and of root": lambda p: os.chown(p, 65534, -1),
    r"can be written by other users; take that away \(chmod go-w\), or save the kernels elsewhere": lambda p: p.chmod(
        0o664
    ),
    "kernels' can be written by other users": lambda p: p.parent.chmod(0o1777),
    "kernels' belongs to another user": lambda p: os.chown(p.parent, 65534, -1),
    "is a link that another user made": link,
    "is no regular file": pipe,
    "cannot be read: Too many levels of symbolic links": loop,
}


@pytest.mark.parametrize("why", CHANGES)
def test_files_that_others_could_have_made_are_refused(place, why):
    if os.geteuid() != 0 and ("belongs" in why or "link that" in why):
        pytest.skip("only root gives files away")
    folder, key = place
    CHANGES[why](save(folder, key))
    with pytest.raises(CompileError, match=why):
        run(key)


def test_links_of_ones_own_are_followed(place):
    folder, key = place
    path = save(folder, key)
    shutil.move(path, folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    torch.testing.assert_close(run(key), X @ DENSE.T)


def test_kernels_are_not_saved_where_others_write(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(DataError, match="save_kernels: .*: other users can write to it"):
        save(tmp_path, "ab" * 32)
    assert not list(tmp_path.iterdir())
