# SPDX-License-Identifier: Apache-2.0
"""A folder of compiled kernels that processes share: private, verified, bounded."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import pathlib
import stat
import tempfile
import time

import filelock

_LOG = logging.getLogger("lacis")
_MAGIC = b"LACISC01"
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".kernel"

DEFAULT_LIMIT = 2 * 1024**3
"""Bytes that the folder may hold before the least recently used entries leave."""

WRITERS = 8
"""Processes that may write at once without passing the limit: each takes its share of the room that is left."""


class CacheError(Exception):
    """The folder cannot be used; the caller compiles without it."""


def _prepare(directory: pathlib.Path) -> None:
    """Makes the folder, and refuses one that another user could have filled."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as error:
        raise CacheError(f"{directory}: {error.strerror}") from error
    if status.st_uid != os.geteuid():
        raise CacheError(f"{directory}: belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        try:
            directory.chmod(0o700)
        except OSError as error:
            raise CacheError(f"{directory}: open to other users: {error.strerror}") from error


class Cache:
    """Maps a key (hexadecimal) to bytes.

    An entry is written beside its place and renamed into it, so a reader sees all of it or nothing; its SHA-256
    is checked on every read, and an entry that fails is removed and counts as absent. Processes take turns
    (a lock file) only to remove old entries.
    """

    def __init__(self, directory: str | os.PathLike, limit: int = DEFAULT_LIMIT):
        self.directory = pathlib.Path(directory)
        self.limit = limit
        self._room = 0  # bytes that this process may write before it looks at the folder again
        _prepare(self.directory)

    def path(self, key: str) -> pathlib.Path:
        """The file of an entry."""
        if not key or set(key) - set("0123456789abcdef"):
            raise ValueError(f"'{key}' is no hexadecimal key")
        return self.directory / (key + _SUFFIX)

    def get(self, key: str) -> bytes | None:
        """The bytes under `key`, or None; a damaged entry is removed."""
        path = self.path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        payload = data[len(_MAGIC) + _DIGEST :]
        if data[: len(_MAGIC) + _DIGEST] != _MAGIC + hashlib.sha256(payload).digest():
            _LOG.warning("lacis: %s is damaged and was removed", path)
            self._remove(path)
            return None
        with contextlib.suppress(OSError):  # the time of last use, which eviction goes by
            os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> bool:
        """Stores `payload` under `key`; False where the disk does not let it."""
        path, entry = self.path(key), _MAGIC + hashlib.sha256(payload).digest() + payload
        try:
            handle, name = tempfile.mkstemp(dir=self.directory, prefix=".write-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(entry)
                os.replace(name, path)
            except BaseException:
                self._remove(pathlib.Path(name))
                raise
        except OSError as error:
            _LOG.warning("lacis: the kernel cache cannot be written: %s", error)
            return False
        self._room -= len(entry)
        if self._room < 0:
            held = self.size()
            if held > self.limit:
                self._evict(keep=path)
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
                    if item.name.endswith(_SUFFIX):
                        status = item.stat()
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
