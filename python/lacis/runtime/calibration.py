# SPDX-License-Identifier: Apache-2.0
"""Measures this CPU for the cost model, once for each dtype and number of threads; the cache folder keeps the rates."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import statistics
import threading
import time

import torch

from .. import knobs
from ..capture.cost import Work
from ..capture.rates import DTYPES, CpuRates, fitted, usual
from ..formats import Csr
from ..nn import SparseModule, weight_module
from ..packing import pack
from . import sealed
from .autocast import outside
from .compile import load_kernel
from .kernels import open_cache
from .log import LOG

_SIDE = 1024
# Tokens and share of what is stored of sparse layers: they tell a stored value from its products, and both from the
# vectors. Tokens of dense layers: on both sides of where torch changes its code, and more than there are rates, so that
# a time that is none does not fit.
_SPARSE = ((16, 0.05), (16, 0.3), (128, 0.05), (128, 0.3))
_DENSE = (1, 8, 16, 64, 128)
_TINY = 128  # side of the layer whose time is that of a call
_FAR = 16 * 2**20  # bytes of a weight that does not fit into caches

# Rounds go on for so many seconds, or until there are enough of them; each takes about 20 ms on 2 threads.
_SECONDS, _FEWEST, _ENOUGH = 0.7, 3, 20
_CALLS = 3  # of each problem in a round, whose median counts
# Where the median of the rounds is more than this many times their least, others used the machine.
_QUIET = 1.5
# Rates that miss a time by more than this factor, or a call of a tiny layer of more than so many seconds, say that
# threads waited for a turn (4 to 16 ms on Linux): such times are no rates. A call takes 4 to 30 us.
_NEAR, _LONGEST_CALL = 2.0, 1e-3

_VERSION = 1  # of the file
_MOST = 4096  # bytes of the file

_lock = threading.Lock()
_known: dict[str, CpuRates | None] = {}


@dataclasses.dataclass(frozen=True)
class Measured:
    """Pairs of a `Work` and seconds, of sparse and dense layers, tiny ones first; did nobody else use the machine?"""

    loops: list[tuple[Work, float]]
    dense: list[tuple[Work, float]]
    quiet: bool


def rates(dtype: torch.dtype) -> CpuRates | None:
    """The rates of this CPU on as many threads as torch has; None for a dtype that has no prediction.

    From this process, or the file of an earlier one, or measured now, in about a second. Without `knobs.calibrate`, for
    checked kernels, and where the machine is too busy to be measured, those of a table.
    """
    if not knobs.calibrate or knobs.debug or dtype not in DTYPES:
        return usual(dtype, torch.get_num_threads())
    about = identity(dtype)
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]
    with _lock:
        if key not in _known:
            _known[key] = _read(key, about) or _made(key, about, dtype)
        return _known[key]


def identity(dtype: torch.dtype) -> dict:
    """What the rates depend on."""
    from lacis import _core

    return {
        "version": _VERSION,
        "processor": hashlib.sha256(_core.host_cpu().encode()).hexdigest()[:32],
        "compiler": _core.compiler_fingerprint(),
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "dtype": str(dtype).removeprefix("torch."),
    }


def path(key: str):
    """The file of rates; None where there is no cache."""
    cache = open_cache(knobs.cache_dir)
    return None if cache is None else cache.directory / f"cpu-{key}.json"


def _read(key: str, about: dict) -> CpuRates | None:
    place = path(key)
    if place is None:
        return None
    try:
        return _checked(json.loads(sealed.read(place, _MOST)), about)
    except FileNotFoundError:
        return None
    except (OSError, sealed.Distrusted, ValueError, RecursionError) as error:
        LOG.warning("lacis: the rates of this CPU are measured again: %s", error)
        return None


def _checked(content, about: dict) -> CpuRates:
    names = {field.name for field in dataclasses.fields(CpuRates)}
    found = content.get("rates") if isinstance(content, dict) else None
    if not isinstance(found, dict) or set(found) != names or content.get("about") != about:
        raise ValueError("the file is damaged, or another CPU's")
    if not all(isinstance(rate, float) and math.isfinite(rate) and rate >= 0 for rate in found.values()):
        raise ValueError("the file has rates that are none")
    return CpuRates(**found)


def _made(key: str, about: dict, dtype: torch.dtype) -> CpuRates | None:
    start = time.perf_counter()
    measured = measure(dtype)
    found = fitted(measured.loops, measured.dense)
    usable = _fits(found, measured)
    state = "" if usable and measured.quiet else ", while others used it: the next process measures it again"
    LOG.info("lacis: this CPU was measured in %s in %.1f s%s", dtype, time.perf_counter() - start, state)
    if not state:
        _write(key, {"about": about, "rates": dataclasses.asdict(found)})
    return found if usable else usual(dtype, about["threads"])


def _fits(found: CpuRates, measured: Measured) -> bool:
    pairs = [(found.loops(work), seconds) for work, seconds in measured.loops]
    pairs += [(found.dense(work), seconds) for work, seconds in measured.dense]
    near = all(seconds / _NEAR <= predicted <= seconds * _NEAR for predicted, seconds in pairs)
    return near and max(measured.loops[0][1], measured.dense[0][1]) <= _LONGEST_CALL


def _write(key: str, content: dict) -> None:
    place = path(key)
    if place is None:
        return
    try:
        sealed.write(place, json.dumps(content).encode())
    except OSError as error:
        LOG.warning("lacis: the rates of this CPU cannot be written: %s", error)


@torch.inference_mode()
def measure(dtype: torch.dtype) -> Measured:
    """Time the fixed problems in turns; of each the least of the rounds' medians, for others only add to a time."""
    with outside("cpu"):
        loops, dense = _problems(dtype)
        problems, taken = [*loops, *dense], []
        end = time.perf_counter() + _SECONDS
        while len(taken) < _FEWEST or (len(taken) < _ENOUGH and time.perf_counter() < end):
            taken.append([_median(function) for _, function in problems])
    each = list(zip(*taken))
    quiet = all(statistics.median(times) <= _QUIET * min(times) for times in each)
    found = [(work, min(times)) for (work, _), times in zip(problems, each)]
    return Measured(found[: len(loops)], found[len(loops) :], quiet)


def _median(function) -> float:
    times = []
    for _ in range(_CALLS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _problems(dtype: torch.dtype) -> tuple[list, list]:
    """Sparse and dense layers: pairs of the work and a call that does it."""
    generator = torch.Generator().manual_seed(0)
    random = lambda *size: torch.rand(size, generator=generator, device="cpu").to(dtype)
    layers = {kept: _layer(_SIDE, kept, dtype, random) for kept in {kept for _, kept in _SPARSE}}
    inputs = {tokens: random(tokens, _SIDE) for tokens in {*_DENSE, *(tokens for tokens, _ in _SPARSE)}}
    tiny, tiny_weight, vector = _layer(_TINY, 0.05, dtype, random), random(_TINY, _TINY), random(1, _TINY)
    weight, far = random(_SIDE, _SIDE), torch.ones(_FAR // dtype.itemsize // _SIDE, _SIDE, dtype=dtype, device="cpu")
    loops = [_sparse(tiny, vector), *(_sparse(layers[kept], inputs[tokens]) for tokens, kept in _SPARSE)]
    dense = [_dense(tiny_weight, vector), *(_dense(weight, inputs[tokens]) for tokens in _DENSE)]
    return loops, [*dense, _dense(far, inputs[1])]


def _layer(side: int, kept: float, dtype: torch.dtype, random) -> SparseModule:
    """A built linear layer of a random pattern, without bias."""
    dense = random(side, side)
    packed = pack(dense, Csr, mask=random(side, side) < kept)
    module = torch.nn.Linear(side, side, bias=False, dtype=dtype, device="meta").eval()
    with torch.inference_mode(False):
        layer = SparseModule(module, "linear", weight_module(packed, False), "cpu", load_kernel)
        layer.bind()
    return layer.eval()


def _sparse(layer: SparseModule, x: torch.Tensor):
    values = layer.weight.values
    work = Work(*layer.weight.shape, len(x), values.numel(), (1, 1), values.dtype)
    return work, functools.partial(layer, x)


def _dense(weight: torch.Tensor, x: torch.Tensor):
    work = Work(*weight.shape, len(x), weight.numel(), (1, 1), weight.dtype)
    return work, functools.partial(torch.nn.functional.linear, x, weight)
