# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark and writes the page: `python -m bench [name...] [--write docs/benchmarks.md]`."""

from __future__ import annotations

import argparse
import importlib
import math
import pathlib
import platform
import statistics

import torch

from .measure import Case

NAMES = [
    "cpu_csr",
    "cpu_attention",
    "fused_attention",
    "flex_attention",
    "warp_attention",
    "unfused_attention",
    "decode",
    "dynamic_attention",
    "owner_forms",
    "batch",
    "build",
    "pack",
    "updates",
    "update_steps",
    "cuda_csr",
    "graphs",
    "hybrid",
    "host_time",
    "eager_training",
    "few_tokens",
    "tiles",
    "tile_schedules",
    "tile_gradients",
    "tile_training",
    "epilogues",
    "tile_variants",
    "tile_orders",
    "uneven",
    "sums_of_tiles",
    "real_layers",
    "cost_model",
]


def table(title: str, cases: list[Case]) -> str:
    peers = list(dict.fromkeys(peer for case in cases for peer in case.times))
    head = ["case", *(f"{peer} ({cases[0].unit})" for peer in peers), *(f"× {peer}" for peer in peers[1:]), "must"]
    lines = [f"## {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for case in cases:
        cells = [case.name, *(f"{case.times[peer]:.3f}" if peer in case.times else "" for peer in peers)]
        cells += [f"{case.ratio(peer):.2f}" if peer in case.times else "" for peer in peers[1:]] + [case.must]
        lines.append(f"| {' | '.join(cells)} |")
    means = [geometric_mean([case.ratio(peer) for case in cases if peer in case.times]) for peer in peers[1:]]
    cells = ["geometric mean", *("" for _ in peers), *(f"{mean:.2f}" for mean in means), ""]
    return "\n".join([*lines, f"| {' | '.join(cells)} |"])


def geometric_mean(ratios: list[float]) -> float:
    return statistics.geometric_mean(ratios) if ratios else math.nan


def machine() -> str:
    words = [
        platform.processor() or platform.machine(),
        f"{torch.get_num_threads()} threads",
        f"torch {torch.__version__}",
    ]
    if torch.cuda.is_available():
        words.append(torch.cuda.get_device_name())
    return ", ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--write", type=pathlib.Path, help="the page to write")
    options = parser.parse_args()
    page = [
        "# Benchmarks",
        (
            "Written by `python -m bench`; medians, peers measured in turns in the same run on fresh random data. "
            "A ratio above 1 means that Lacis is faster."
        ),
        machine(),
    ]
    for name in options.names:
        module = importlib.import_module(f"bench.{name}")
        cases = module.run()
        text = table(module.TITLE, cases) if cases else f"## {module.TITLE}\n\nNot measured: no GPU."
        print(text + "\n", flush=True)
        page.append(text)
    if options.write:
        options.write.write_text("\n\n".join(page) + "\n")


if __name__ == "__main__":
    main()
