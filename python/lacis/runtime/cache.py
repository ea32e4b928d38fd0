# SPDX-License-Identifier: Apache-2.0
"""A folder of compiled kernels that processes share: private, verified, bounded."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import re
import stat
import time

import filelock

from lacis.runtime import sealed

_LOG = logging.getLogger("lacis")
_MAGIC = b"LACISC02"
_ENTRY = re.compile("[0-9a-f]+[.]kernel")
INSIDE = "lacis-kernels"  # the folder that is made within one that other users may look into

DEFAULT_LIMIT = 2 * 1024**3
"""Bytes that the folder may hold before the least recently used entries leave."""

WRITERS = 8
"""Processes that may write at once without passing the limit: each takes its share of the room that is left."""


class CacheError(Exception):
    """The folder cannot be used; the caller compiles without it."""


def prepare(directory: pathlib.Path) -> pathlib.Path:
    """Makes the folder, and refuses one that another user could have filled.

    One that others may only look into is left as it is; a private folder inside of it takes its place.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        sealed.check_folder(directory)
        if not stat.S_IMODE(directory.stat().st_mode) & 0o077:
            return directory
        inside = directory / INSIDE
        inside.mkdir(mode=0o700, exist_ok=True)
        sealed.check_folder(inside)
        return inside
    except sealed.Distrusted as error:
        raise CacheError(str(error)) from None
    except OSError as error:
        raise CacheError(f"{directory}: {error.strerror}") from error


class Cache:
    """Maps a key (hexadecimal) to bytes.

    An entry is written beside its place and renamed into it, so a reader sees all of it or nothing. The SHA-256 of its
    key and content is checked on every read. An entry that fails is removed and counts as absent, as does one that is
    no file of this user's alone. Processes take turns (a lock file) only to remove old entries. A folder that is
    deleted is made again.
    """

    def __init__(self, directory: str | os.PathLike, limit: int = DEFAULT_LIMIT):
        self._asked = pathlib.Path(directory)
        self.limit = limit
        self._room = 0  # bytes that this process may write before it looks at the folder again
        self.directory = prepare(self._asked)

    def path(self, key: str) -> pathlib.Path:
        """The file of an entry."""
        if not key or set(key) - set("0123456789abcdef"):
            raise ValueError(f"'{key}' is no hexadecimal key")
        return self.directory / f"{key}.kernel"

    def get(self, key: str) -> bytes | None:
        """The bytes under `key`, or None; a damaged entry is removed."""
        path = self.path(key)
        try:
            payload = sealed.opened(_MAGIC, key, sealed.read(path, self.limit))
        except sealed.Distrusted as error:
            self.remove(key, str(error))
            return None
        except OSError:
            return None
        if payload is None:
            self.remove(key, f"{path}: is damaged, or another kernel's")
        return payload

    def remove(self, key: str, why: str) -> None:
        """Removes the entry that cannot be used, and says why."""
        _LOG.warning("lacis: %s; it was removed from the kernel cache", why)
        self._remove(self.path(key))

    def put(self, key: str, payload: bytes) -> bool:
        """Stores `payload` under `key`; False where the disk does not let it."""
        entry = sealed.sealed(_MAGIC, key, payload)
        try:
            try:
                sealed.write(self.path(key), entry)
            except FileNotFoundError:  # the folder was deleted
                self.directory = prepare(self._asked)
                sealed.write(self.path(key), entry)
        except (CacheError, OSError) as error:
            _LOG.warning("lacis: the kernel cache cannot be written: %s", error)
            return False
        self._room -= len(entry)
        if self._room < 0:
            held = self.size()
            if held > self.limit:
                self._evict(keep=self.path(key))
                held = self.size()
            self._room = max(self.limit - held, 0) // WRITERS
        return True

    def size(self) -> int:
        """Bytes of all entries."""
        return sum(size for _, size, _ in self._entries())

    def clear(self) -> None:
        """Removes every entry."""
        for _, _, path in self._entries():
            self._remove(path)

    def _entries(self) -> list[tuple[float, int, pathlib.Path]]:
        entries = []
        with contextlib.suppress(OSError):
            for item in os.scandir(self.directory):
                with contextlib.suppress(OSError):  # another process may just have removed it
                    if _ENTRY.fullmatch(item.name):
                        status = item.stat(follow_symlinks=False)
                        entries.append((status.st_mtime, status.st_size, pathlib.Path(item.path)))
        return entries

    def _evict(self, keep: pathlib.Path) -> None:
        """Removes the least recently used entries until four fifths of the limit are left."""
        lock = filelock.FileLock(self.directory / ".lock")
        try:
            with lock.acquire(timeout=0):
                self._remove_leftovers()
                entries = sorted(self._entries())
                total = sum(size for _, size, _ in entries)
                for _, size, path in entries:
                    if total <= self.limit * 4 // 5:
                        break
                    if path != keep:
                        self._remove(path)
                        total -= size
        except filelock.Timeout:
            pass  # another process is at it
        except OSError as error:
            _LOG.warning("lacis: the kernel cache cannot be trimmed: %s", error)

    def _remove_leftovers(self) -> None:
        """Removes what a process that died while writing left, an hour later."""
        for path in self.directory.glob(".write-*"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > 3600:
                    path.unlink()

    @staticmethod
    def _remove(path: pathlib.Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()
