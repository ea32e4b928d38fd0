# SPDX-License-Identifier: Apache-2.0
"""A schedule as a tree: the modules on the way to each scheduled parameter or activation, with its verbs."""

from __future__ import annotations

from ..errors import FormatError, ScheduleError, format_location


def tree(schedule) -> str:
    """What `print(s)` shows. Modules without a scheduled parameter or edge are counted, not listed."""
    modules = schedule.names.modules
    children: dict[str, list[str]] = {}
    for path in modules:
        if path:
            children.setdefault(path.rpartition(".")[0], []).append(path)
    scheduled: dict[str, list] = {}
    for site in schedule.sites:
        for name in site.names:
            scheduled.setdefault(name.rpartition(".")[0], []).append((name, site))
    for site in schedule.edges:
        scheduled.setdefault(site.name.partition(":")[0], []).append((site.name, site))
    for site in schedule.modules:
        scheduled.setdefault(site.name, []).append((f"{site.name}:attention", site))
    busy = {""}
    for owner in scheduled:
        while owner:
            busy.add(owner)
            owner = owner.rpartition(".")[0]
    lines = [f"{modules['']}  (target {schedule.target})"]
    _branch("", "", children, scheduled, busy, modules, lines)
    return "\n".join(lines)


def _branch(path, indent, children, scheduled, busy, modules, lines) -> None:
    below = children.get(path, [])
    idle = sum(child not in busy for child in below)
    items = [("site", name, site) for name, site in scheduled.get(path, [])]
    items += [("module", child, None) for child in below if child in busy]
    items += [("idle", f"({idle} modules as they are)" if idle > 1 else "(1 module as it is)", None)] if idle else []
    for n, (kind, name, site) in enumerate(items):
        last = n + 1 == len(items)
        head, tail = ("└─ ", "   ") if last else ("├─ ", "│  ")
        if kind == "idle":
            lines.append(f"{indent}{head}{name}")
        elif kind == "module":
            lines.append(f"{indent}{head}{name.rpartition('.')[2]}: {modules[name]}")
            _branch(name, indent + tail, children, scheduled, busy, modules, lines)
        else:
            lines += [indent + (head if not k else tail) + line for k, line in enumerate(_site(name, site))]


def _site(name, site) -> list[str]:
    edge = name.partition(":")[2]
    tied = f"  = {site.name}" if name not in (site.name, f"{site.name}:{edge}") else ""
    lines = [f":{edge}" if edge else f"{name.rpartition('.')[2]} {list(site.shape)}{tied}"]
    if tied:
        return lines
    lines += [f"  .{step.describe()}  {format_location(step.location)}" for step in site.steps]
    for key, steps in site.gradients.items():
        what = "grad" if key == "values" else f"{key}.grad"
        lines += [f"  {what}.{step.describe()}  {format_location(step.location)}" for step in steps]
    if not site.is_packed:
        return lines
    try:
        lines.append(f"  = {site.format()}")
    except (FormatError, ScheduleError) as error:
        lines.append(f"  ! {error.message}")
    return lines
