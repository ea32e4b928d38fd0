# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels through the disk cache and keeps one object a kernel in the process."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
import pathlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from lacis import knobs
from lacis.errors import CompileError, DataError
from lacis.patterns.derivation import Derivation
from lacis.runtime import keys, library, ptxas, sealed
from lacis.runtime.cache import Cache, CacheError
from lacis.runtime.log import LOG, configure
from lacis.runtime.targets import device_number, resolve_target, runs_here

_STORAGE = ("storage", "storage_dim")
_SAVED = b"LACISK01"  # lib/Runtime/KernelFile.cpp reads it


@dataclasses.dataclass(frozen=True)
class Derived:
    """An array that a kernel walks beside the operand's own storage, and the step that makes it."""

    part: str
    step: Derivation
    name: str


@dataclasses.dataclass(frozen=True)
class Request:
    """What to compile: the text of one kernel, for one target."""

    text: str
    target: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def key(self) -> str:
        return keys.kernel_key(self.text, self.target, self.options)


class LoadedKernel:
    """A compiled kernel, shared by all layers whose text is the same.

    `storage` and `derived` say, in order, which arrays of the packed operand a call expects.
    """

    def __init__(self, request: Request, key: str, artifact: bytes, stages: Mapping[str, str], cached: bool):
        from lacis import _core

        self.key = key
        self.request = request
        self.artifact = artifact
        self.cached = cached
        self.info: dict = _core.artifact_info(artifact)
        self._stages = dict(stages)
        self._keys, self._devices = [key], set()  # it is loaded under each key on each device
        self.storage, self.derived = _arrays(self.info["args"], self.info.get("derived", []))

    @property
    def target(self) -> str:
        return self.request.target

    @property
    def stages(self) -> dict[str, str]:
        """Every stage's text, by name; compiled again where the kernel came from the cache."""
        if not self._stages:
            self._stages = dict(_compile(self.request, self.key, stages=True).stages)
        return self._stages

    @property
    def code(self) -> bytes:
        """The object file, PTX or cubin."""
        from lacis import _core

        return _core.artifact_code(self.artifact)

    def load(self, device: torch.device | int | None = None) -> LoadedKernel:
        """Makes the kernel ready on a device.

        A launch under CUDA graph capture needs that done before.
        """
        from lacis import _core

        library.register()
        number = device_number(self.target, device)
        self._devices.add(number)
        for key in self._keys:
            _core.load(key, self.artifact, number)
        return self

    def name_also(self, key: str) -> None:
        """Makes the kernel ready under one more key, wherever it is or will be ready under its own."""
        from lacis import _core

        self._keys.append(key)
        for number in self._devices:
            _core.load(key, self.artifact, number)

    def __call__(self, operands, storage, shape, packed_shape=()) -> torch.Tensor:
        """Runs on dense operands, on `storage` followed by `derived`, into a new tensor of `shape`."""
        return library.einsum(operands, storage, shape, self.key, packed_shape)

    def __repr__(self) -> str:
        return f"LoadedKernel({self.key[:12]}, {self.target})"


def _arrays(args: Sequence[Mapping], steps: Sequence[Mapping]) -> tuple[list[str], list[Derived]]:
    """The arrays a kernel reads, in the order of first mention: the operand's own, then derived ones."""
    storage: dict[str, None] = {}
    derived: dict[Derived, None] = {}
    for arg in args:
        if "derived" in arg:
            number = arg["derived"]
            derived.setdefault(Derived(_part(steps, number), Derivation.of(steps, number), arg["name"]))
        elif arg["kind"] in _STORAGE:
            storage.setdefault(arg["name"])
    return list(storage), list(derived)


def _part(steps: Sequence[Mapping], number: int) -> str:
    """The part that a step is made from, over those before it; "" of a tensor that is no sum."""
    source = steps[number]["source"]
    return source["part"] if isinstance(source, Mapping) else _part(steps, source)


@functools.lru_cache(maxsize=4)
def open_cache(directory: str) -> Cache | None:
    """The cache of this process in a folder; None, said once, where the folder cannot be used."""
    try:
        return Cache(directory)
    except CacheError as error:
        LOG.warning("lacis: kernels are not cached: %s", error)
        return None


def _override(request: Request) -> Request:
    """The request, or the dumped stage that the user put into `LACIS_OVERRIDE_DIR` in its place.

    The file keeps the folder and name that `LACIS_DUMP_DIR` gave it; the stage nearest to the end wins.
    """
    if not knobs.override_dir:
        return request
    folder = pathlib.Path(knobs.override_dir) / request.key[:16]
    for stage in ("target", "buffers", "tiles", "loops", "lacis"):
        for path in sorted(folder.glob(f"*.{stage}.mlir")):
            LOG.info("lacis: kernel %s starts from %s", request.key[:12], path)
            return Request(path.read_text(), request.target, {**request.options, "from": stage})
    return request


def _compile(request: Request, key: str, stages: bool):
    from lacis import _core

    options = {**request.options, "stages": stages}
    assembler = ptxas.find() if request.target.startswith("cuda") else None
    if assembler:
        options.setdefault("ptxas", assembler)
    if knobs.dump_dir:
        options["dump_dir"] = os.path.join(knobs.dump_dir, key[:16])
    try:
        return _core.compile(request.text, request.target, options)
    except CompileError as error:
        if not assembler or assembler not in error.message or "ptxas" in request.options:
            raise
        LOG.warning("lacis: kernel %s is left to the driver: %s", key[:12], error.message)
        return _core.compile(request.text, request.target, {**options, "ptxas": ""})


def _cache_key(request: Request) -> str:
    from lacis import _core

    cuda = request.target.startswith("cuda")
    return keys.cache_key(
        request.key,
        fingerprint=_core.compiler_fingerprint(),
        host="" if cuda else _core.host_cpu(),
        ptxas=ptxas.version(ptxas.find()) if cuda else "",
    )


def _make(request: Request) -> LoadedKernel:
    """From the cache, or compiled; dumping compiles, for the cache holds no stages."""
    configure()
    key, start = request.key, time.perf_counter()
    actual = _override(request)
    cache = open_cache(knobs.cache_dir)
    cache_key = _cache_key(actual)
    if cache and not knobs.always_compile and not knobs.dump_dir:
        artifact = cache.get(cache_key)
        if artifact is not None:
            try:
                kernel = LoadedKernel(actual, key, artifact, {}, cached=True)
                LOG.debug("lacis: kernel %s for %s is from the cache", key[:12], request.target)
                return kernel
            except CompileError as error:
                cache.remove(cache_key, f"{cache.path(cache_key)}: {error.message}")
    compiled = _compile(actual, key, stages=bool(knobs.dump_dir))
    LOG.info(
        "lacis: kernel %s for %s compiled in %.0f ms",
        key[:12],
        request.target,
        (time.perf_counter() - start) * 1e3,
    )
    if cache:
        cache.put(cache_key, compiled.artifact)
    return LoadedKernel(actual, key, compiled.artifact, compiled.stages, cached=False)


_lock = threading.Lock()
_kernels: dict[str, concurrent.futures.Future] = {}


def _shared(request: Request) -> LoadedKernel:
    """The one object of a kernel; a second thread waits for the first that asked."""
    with _lock:
        future = _kernels.get(request.key)
        mine = future is None
        if mine:
            future = _kernels[request.key] = concurrent.futures.Future()
    if mine:
        try:
            future.set_result(_make(request))
        except BaseException as error:
            with _lock:
                del _kernels[request.key]
            future.set_exception(error)
    return future.result()


def compile_kernel(
    text: str, target: str, *, options: Mapping | None = None, device: torch.device | int | None = None
) -> LoadedKernel:
    """Compiles the text of one kernel, or finds it, and makes it ready to launch.

    A CUDA kernel is compiled, but not loaded, on a machine without a GPU of its family.
    """
    kernel = _shared(Request(text, target, dict(options or {})))
    if runs_here(target, device):
        kernel.load(device)
    return kernel


def compile_on(text: str, device: torch.device) -> LoadedKernel:
    """The same for the machine that a device is: a kernel that is called with tensors there."""
    library.register()
    return compile_kernel(text, resolve_target("cpu" if device.type == "cpu" else "cuda", device), device=device)


def compile_many(requests: Iterable[Request], *, device: torch.device | int | None = None) -> list[LoadedKernel]:
    """Compiles in parallel threads; the kernels come back in the order of the requests."""
    wanted = list(requests)
    distinct = {request.key: request for request in wanted}
    workers = max(1, min(len(distinct), os.cpu_count() or 1))
    with concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="lacis-compile") as pool:
        futures = {
            key: pool.submit(compile_kernel, r.text, r.target, options=r.options, device=device)
            for key, r in distinct.items()
        }
    return [futures[request.key].result() for request in wanted]


def save(kernels: Mapping[str, LoadedKernel], path: str | os.PathLike) -> None:
    """Writes kernels, by the keys of calls, where `LACIS_KERNEL_PATH` lets another process find them.

    Raises `DataError` for a folder that other users can fill: no process would load kernels from there.
    """
    folder = pathlib.Path(path)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    try:
        sealed.check_folder(folder)
    except sealed.Distrusted as error:
        raise DataError(f"save_kernels: {error}") from None
    for key, kernel in kernels.items():
        sealed.write(folder / f"{key}.lacis", sealed.sealed(_SAVED, key, kernel.artifact), mode=0o644)
