# SPDX-License-Identifier: Apache-2.0
"""The disk cache: private, verified, atomic, shared, bounded; and the keys of what it holds."""

import multiprocessing
import os
import shutil
import stat

import pytest

from lacis.runtime import cache as cache_module
from lacis.runtime import keys
from lacis.runtime.cache import Cache, CacheError

KEY = "0123abcd" * 8


def key_of(number: int) -> str:
    return f"{number:064x}"


def test_round_trip(tmp_path):
    cache = Cache(tmp_path / "cache")
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"code")
    assert cache.get(KEY) == b"code"
    assert cache.put(KEY, b"newer")
    assert Cache(tmp_path / "cache").get(KEY) == b"newer"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_folder_is_private(tmp_path):
    assert mode_of(Cache(tmp_path / "new").directory) == 0o700


def test_a_folder_that_others_look_into_stays_as_it_is(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o755)
    (tmp_path / "mine" / "letter.kernel").write_text("dear")
    cache = Cache(tmp_path / "mine", limit=100)
    cache.put(KEY, bytes(200))
    cache.clear()
    assert mode_of(tmp_path / "mine") == 0o755 and mode_of(cache.directory) == 0o700
    assert cache.directory.parent == tmp_path / "mine" and (tmp_path / "mine" / "letter.kernel").exists()


@pytest.mark.parametrize("mode", [0o1777, 0o2775, 0o770, 0o702])
def test_a_folder_that_others_write_to_is_refused(tmp_path, mode):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(CacheError, match="open: other users can write to it; .*chmod go-w"):
        Cache(tmp_path / "open")
    assert mode_of(tmp_path / "open") == mode and not list((tmp_path / "open").iterdir())


def test_a_deleted_folder_is_made_again(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.put(KEY, b"code")
    shutil.rmtree(tmp_path / "cache")
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"code") and cache.get(KEY) == b"code"
    assert mode_of(tmp_path / "cache") == 0o700


def test_folder_of_another_user(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CacheError, match="another user"):
        Cache(tmp_path)


def test_place_that_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError):
        Cache(tmp_path / "file" / "cache")


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "foreign"])
def test_damaged_entry_is_absent_and_removed(tmp_path, damage):
    cache = Cache(tmp_path)
    cache.put(KEY, b"some code")
    data = bytearray(cache.path(KEY).read_bytes())
    data[-1] ^= 1
    changed = {"flip": bytes(data), "truncate": data[:-3], "empty": b"", "foreign": b"#!/bin/sh\n" * 20}[damage]
    cache.path(KEY).write_bytes(changed)
    assert cache.get(KEY) is None
    assert not cache.path(KEY).exists()


def test_an_entry_under_another_name_is_absent(tmp_path):
    cache = Cache(tmp_path)
    cache.put(key_of(1), b"one")
    os.rename(cache.path(key_of(1)), cache.path(key_of(2)))
    assert cache.get(key_of(2)) is None
    assert not cache.path(key_of(2)).exists()


def link(path):
    shutil.copy(path, path.parent / "elsewhere")
    path.unlink()
    path.symlink_to(path.parent / "elsewhere")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def huge(path):
    os.truncate(path, 2 * cache_module.DEFAULT_LIMIT)


CHANGES = {
    "belongs to another user": lambda path: os.chown(path, 65534, -1),
    "other users can write": lambda path: path.chmod(0o666),
    "is a link": link,
    "is no regular file": pipe,
    "bytes, more than": huge,
}


@pytest.mark.parametrize("why", CHANGES)
def test_an_entry_that_others_could_have_made_is_absent_and_removed(tmp_path, caplog, why):
    if why.startswith("belongs") and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    cache = Cache(tmp_path)
    cache.put(KEY, b"code")
    CHANGES[why](cache.path(KEY))
    assert cache.get(KEY) is None
    assert why in caplog.text and not os.path.lexists(cache.path(KEY))


def test_key_is_no_path(tmp_path):
    for bad in ("../../etc/passwd", "", "ABC", "a/b"):
        with pytest.raises(ValueError):
            Cache(tmp_path).path(bad)


def test_least_recently_used_leave_first(tmp_path):
    cache = Cache(tmp_path, limit=10_000)
    for number in range(9):
        cache.put(key_of(number), bytes(1000))
        os.utime(cache.path(key_of(number)), (number, number))
    assert cache.get(key_of(0)) is not None  # used now, so it stays
    cache.put(key_of(9), bytes(1000))
    assert cache.size() <= 10_000
    assert cache.get(key_of(0)) is not None
    assert cache.get(key_of(9)) is not None
    assert cache.get(key_of(1)) is None


def test_a_write_seldom_looks_at_the_folder(tmp_path, monkeypatch):
    cache, looks, scandir = Cache(tmp_path), [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (looks.append(path), scandir(path))[1])
    for number in range(50):
        assert cache.put(key_of(number), bytes(1000))
    assert len(looks) <= 2
    assert cache.size() == 50 * (1000 + 40)


def test_failed_write_leaves_nothing(tmp_path, monkeypatch):
    cache = Cache(tmp_path)

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not cache.put(KEY, b"code")
    assert list(tmp_path.iterdir()) == []


def _hammer(folder, seed, done):
    cache = Cache(folder, limit=40_000)
    for step in range(150):
        number = (seed * 7 + step * 3) % 20
        payload = bytes([number]) * 3000
        found = cache.get(key_of(number))
        if found not in (None, payload):
            return
        cache.put(key_of(number), payload)
    done.put(seed)


def test_processes_share_a_folder(tmp_path):
    context = multiprocessing.get_context("fork")
    done = context.Queue()
    workers = [context.Process(target=_hammer, args=(tmp_path, seed, done)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(done.get(timeout=5) for _ in workers) == [0, 1, 2, 3]
    assert Cache(tmp_path).size() <= 40_000 + 4 * 3100
    assert not list(tmp_path.glob(".write-*"))


def test_locations_are_not_part_of_a_key():
    plain = 'func.func @f(%x: f32) attributes {note = "loc(a"} {\n  return\n}'
    placed = (
        '#loc = loc("train.py":12:0)\n#loc1 = loc("w"(#loc))\n'
        'func.func @f(%x: f32 loc("x"(#loc))) attributes {note = "loc(a"} {\n'
        '  return loc(fused["f(", callsite("g" at "h.py":1:2)])\n} loc(#loc1)'
    )
    assert keys.kernel_key(plain, "cpu", {}) == keys.kernel_key(placed, "cpu", {})


def test_key_covers_what_changes_the_code():
    base = {"text": "func.func @f()", "target": "cpu", "options": {"opt_level": 3}}
    changes = ({}, {"text": "func.func @g()"}, {"target": "cuda:sm_90a"}, {"options": {"opt_level": 2}})
    kernel_keys = [keys.kernel_key(**{**base, **change}) for change in changes]
    assert len(set(kernel_keys)) == len(changes)
    where = {"fingerprint": "1", "host": "znver4", "ptxas": "12.9"}
    changes = ({}, {"fingerprint": "2"}, {"host": "skylake"}, {"ptxas": "13.0"})
    assert len({keys.cache_key(kernel_keys[0], **{**where, **change}) for change in changes}) == len(changes)
