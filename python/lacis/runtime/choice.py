# SPDX-License-Identifier: Apache-2.0
"""Which way a built layer takes, what the cost model says of it, and where that lets the dense product run instead."""

from __future__ import annotations


from ..capture.cost import Work, predict
from ..operators import OPERATORS
from .calibration import rates
from .example import run_example
from .targets import resolve_target

_KNOWN_STATEMENT = "ij,bj->bi"  # the one product that the cost model is fitted to

USUAL_TOKENS = 1024
"""What the choice is made for where `build` got no example."""


def work_of(layer, tokens: int) -> Work:
    """The product of a built linear layer; a sum is taken for its first part's blocks."""
    parts = layer.weight._parts()
    tile = [size for size in parts[0].values.shape[1:]] or [1]
    block = (tile[0], tile[-1]) if len(tile) > 1 else (1, tile[0])
    stored = sum(part.values.numel() for part in parts)
    return Work(*layer.weight.packed_shape, tokens, stored, block, layer.weight.dtype)


def path_of(layer, tokens: int | None) -> str:
    """`dense`, `few` (on a GPU a nest of its own for few tokens), `tiles` (tensor cores), `loops`, or `eager`.

    `slices`: a kernel runs on one matrix of a stack at a time.
    """
    if layer.runs_dense:
        return "dense"
    if layer.target == "eager":
        stack = OPERATORS[layer.operator].stacks and layer.weight._products.recipe.target != "eager"
        return "slices" if stack else "eager"
    steps = layer.family().kernel.steps
    on_gpu = layer.weight.device.type == "cuda"  # on a CPU few tokens run in narrower panels of the same loops
    if on_gpu and tokens is not None and any(step.mnemonic == "upto" and tokens <= step.most for step in steps):
        return "few"
    return "tiles" if any(step.mnemonic == "tensorize" and step.kind is None for step in steps) else "loops"


def why_of(layer) -> str:
    """What the default schedule of the layer's kernel would have taken, and why it did not; see `Kernel.remarks`."""
    own = not layer.runs_dense and layer.target != "eager"
    return "; ".join(layer.family().kernel.remarks) if own else ""


def predictions(layer, tokens: int | None) -> tuple[float | None, float | None]:
    """Milliseconds of the layer as it runs and of the dense one, None where the model knows nothing of the kind."""
    if tokens is None or OPERATORS[layer.operator].statement != _KNOWN_STATEMENT:
        return None, None
    target = resolve_target(layer.target, layer.weight.device)
    work = work_of(layer, tokens)
    cpu = rates(work.dtype) if target == "cpu" else None
    return predict(work, target, path_of(layer, tokens), cpu), predict(work, target, "dense", cpu)


def choose_dense(built, tokens: dict[int, int]) -> None:
    """Let those layers run dense of which the model says that this is faster; `tokens` by the replaced module's id."""
    for each in built:
        for original, layer in () if each.forwards else each.modules:
            own, dense = predictions(layer, tokens.get(id(original), USUAL_TOKENS))
            layer.runs_dense = own is not None and dense is not None and dense < own


def tokens_seen(model, built, args: tuple, kwargs: dict) -> dict[int, int]:
    """How many tokens each module that will be replaced gets when the model runs on an example: the most, if often."""
    seen: dict[int, int] = {}
    if not args and not kwargs:
        return seen

    operators = {id(original): OPERATORS[layer.operator] for each in built for original, layer in each.modules}

    def note(module, inputs) -> None:
        tokens = operators[id(module)].tokens(module, *inputs) if inputs else None  # else the call is by keyword
        if tokens is not None:
            seen[id(module)] = max(seen.get(id(module), 0), tokens)

    run_example(model, {original: note for each in built for original, _ in each.modules}, args, kwargs)
    return seen
