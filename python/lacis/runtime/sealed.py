# SPDX-License-Identifier: Apache-2.0
"""Files of compiled kernels: each says which kernel it is, is written whole, and is read only from whom one trusts."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import secrets
import stat

_DIGEST = hashlib.sha256().digest_size
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Distrusted(Exception):
    """A file or folder that another user could have filled; the message says why."""


def sealed(magic: bytes, key: str, payload: bytes) -> bytes:
    """`payload` after `magic` and the SHA-256 of the key and itself."""
    return magic + hashlib.sha256(key.encode() + payload).digest() + payload


def opened(magic: bytes, key: str, data: bytes) -> bytes | None:
    """What `sealed` was given; None for damaged data and for those of another key.

    >>> opened(b"M", "a", sealed(b"M", "a", b"code")), opened(b"M", "b", sealed(b"M", "a", b"code"))
    (b'code', None)
    """
    payload = data[len(magic) + _DIGEST :]
    return payload if payload and data == sealed(magic, key, payload) else None


def check_folder(path: pathlib.Path) -> None:
    """Raise `Distrusted` unless the folder is this user's and no other one may write to it; `OSError` without one."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        if status.st_uid not in (os.geteuid(), 0):
            raise Distrusted(f"{path}: is a link of another user")
        status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise Distrusted(f"{path}: is no folder")
    _check_owner(path, status)


def check_file(path: pathlib.Path) -> None:
    """The same of a file, which is no link; `OSError` without one."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise Distrusted(f"{path}: is no regular file")
    _check_owner(path, status)


def _check_owner(path: pathlib.Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise Distrusted(f"{path}: belongs to another user")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise Distrusted(f"{path}: other users can write to it; take that away (chmod go-w), or name another folder")


def read(path: pathlib.Path, most: int) -> bytes:
    """The bytes of a file of this user's own.

    Raises `Distrusted` for a link, a pipe, a device, a file that others own or can write, and one of more than `most`
    bytes; `OSError` where there is none.
    """
    try:  # a pipe without a writer would hold a blocking reader for ever
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        if path.is_symlink():
            raise Distrusted(f"{path}: is a link") from None
        raise
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Distrusted(f"{path}: is no regular file")
        _check_owner(path, status)
        if status.st_size > most:
            raise Distrusted(f"{path}: has {status.st_size} bytes, more than {most}")
        data = file.read()
        with contextlib.suppress(OSError):  # the time of last use, which eviction goes by
            os.utime(handle)
    return data


def write(path: pathlib.Path, data: bytes, mode: int = 0o600) -> None:
    """Writes beside the place and renames into it, so that a reader sees all of it or nothing. Raises `OSError`."""
    beside = path.with_name(f".write-{secrets.token_hex(8)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
