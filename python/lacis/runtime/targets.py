# SPDX-License-Identifier: Apache-2.0
"""Which target kernels are compiled for, and which device they run on."""

from __future__ import annotations

import re

import torch

from ..capture import kind_of
from ..errors import DataError, ScheduleError
from ..schedule.schedule import check_target

ELSEWHERE = "lacis.compile and compile_only() of a schedule compile for 'cuda:sm_90a' wherever tensors lie"


def refuse_meta(device: torch.device, what: str, location=None) -> None:
    """Raise `DataError` for a tensor without values."""
    if device.type == "meta":
        raise DataError(f"{what} is on meta and has no values; load them first; {ELSEWHERE}", location=location)


def resolve_target(target: str, device: torch.device, what: str = "target", location=None) -> str:
    """The target for tensors on a device: `auto` is where they lie, `cuda` the device's own architecture."""
    check_target(target)
    if target == "eager":
        return target
    refuse_meta(device, what, location)
    if target == "auto":
        target = device.type
    if kind_of(target) != device.type:
        other = f"; {ELSEWHERE}" if target.startswith("cuda") else ""
        raise ScheduleError(
            f"{what} is on {device}, the target is '{target}'; move it, or take target='auto'{other}",
            location=location,
        )
    if target == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        if (major, minor) < (7, 5):
            raise ScheduleError(
                f"{what}: kernels need compute capability 7.5, {device} has {major}.{minor}",
                location=location,
            )
        return f"cuda:sm_{major}{minor}" + ("a" if (major, minor) == (9, 0) else "")
    return target


def target_anywhere(target: str, device: torch.device, what: str = "target", location=None) -> str:
    """As `resolve_target`; but one that names an architecture, or the CPU for tensors without values, stands."""
    check_target(target)
    if target.startswith("cuda:") or (target == "cpu" and device.type == "meta"):
        return target
    return resolve_target(target, device, what, location)


def require_devices(target: str, tensors) -> None:
    """Raise `DataError` unless the tensors of a call lie where kernels of this target run."""
    kind = kind_of(target)
    for n, tensor in enumerate(tensors):
        device = getattr(tensor, "device", None)
        if device is None:  # no tensor, which is said elsewhere
            continue
        if device.type != kind:
            other = "a GPU of that architecture" if kind == "cuda" else "the CPU"
            raise DataError(
                f"kernel: it was compiled for '{target}', operand {n} is on {device}; move the operands to {other}, "
                "or compile with target='auto' for the device that they are on"
            )
        if not runs_here(target, device):
            found = ".".join(map(str, torch.cuda.get_device_capability(device)))
            raise DataError(
                f"kernel: it was compiled for '{target}', {device} has compute capability {found}; compile with "
                "target='auto' for the device that the operands are on"
            )


def runs_here(target: str, device: torch.device | int | None) -> bool:
    """Can a kernel of this target be loaded on the device, the present one by default?"""
    if not target.startswith("cuda"):
        return True
    if not torch.cuda.is_available():
        return False
    major, minor = torch.cuda.get_device_capability(device_number(target, device))
    chip = re.search(r"sm_(\d+)(\d)", target)
    return chip is None or (int(chip[1]), int(chip[2])) <= (major, minor) and int(chip[1]) == major


def device_number(target: str, device: torch.device | int | None) -> int:
    """The number of a device of this target, the present one by default; -1 of the CPU."""
    if not target.startswith("cuda"):
        return -1
    if isinstance(device, int):
        return device
    if device is not None and device.index is not None:
        return device.index
    return torch.cuda.current_device()
