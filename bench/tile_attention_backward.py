# SPDX-License-Identifier: Apache-2.0
"""The gradients of attention on stored blocks by hand (test/Tiles), on the GPU, beside the whole backward of SDPA."""

from __future__ import annotations

import dataclasses

import torch
from lacis.runtime import kernels

from .measure import Case, measure
from .tile_attention import HEAD, Attention, Form, compared, random_mask, work_lists
from .tiles import processors

TITLE = "Gradients of block-sparse attention on tensor cores, 32 heads of 128, 8192 tokens, bf16"


@dataclasses.dataclass(frozen=True)
class Inputs:
    """q, k, v and dy of [heads, tokens, 128], with the logarithm of each row's sum of exponentials, and delta."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    dy: torch.Tensor
    lse: torch.Tensor
    delta: torch.Tensor

    @property
    def flat(self) -> list[torch.Tensor]:
        return [x.reshape(-1, HEAD) for x in (self.q, self.k, self.v, self.dy)]

    @property
    def by_row(self) -> list[torch.Tensor]:
        return [*self.flat, self.lse.reshape(-1), self.delta.reshape(-1)]

    @property
    def by_column(self) -> list[torch.Tensor]:
        """k and v in one tensor; in the place of the two vectors what the sums of products begin at."""
        q, k, v, dy = self.flat
        return [q, torch.cat([k, v]), dy, -self.lse.reshape(-1) * HEAD**0.5, -self.delta.reshape(-1)]


class GradQuery(Attention):
    """The gradient with respect to q."""

    def arguments(self, x: Inputs) -> list[torch.Tensor]:
        return x.by_row

    def __call__(self, arguments: list[torch.Tensor]) -> torch.Tensor:
        """Of [heads * tokens, 128]."""
        return self.kernel(arguments, self.storage, list(arguments[0].shape), self.shape)


class GradKeyValue:
    """The gradients with respect to k and v, which walk the transposed index of the pattern."""

    def __init__(self, form: Form, mask: torch.Tensor, heads: int, device="cuda", target: str = "cuda:sm_90a"):
        self.shape = [size * form.block for size in mask.shape]
        self.kernel = kernels.compile_kernel(form.text, target)
        counts = mask.sum(0)
        turned = {"pos1": torch.cat([torch.zeros(1), counts.cumsum(0)]), "crd1": mask.T.nonzero()[:, 1]}
        lists = work_lists(counts.tolist(), heads, form.groups, processors(torch.device(device)))
        assert not self.kernel.storage, "the kernel walks what is derived of the pattern alone"
        arrays = [(turned if array.step.function == "index" else lists)[array.name] for array in self.kernel.derived]
        self.storage = [array.int().to(device) for array in arrays]

    def arguments(self, x: Inputs) -> list[torch.Tensor]:
        return x.by_column

    def __call__(self, arguments: list[torch.Tensor]) -> torch.Tensor:
        """Of [2 * heads * tokens, 128]: the rows of dk before those of dv."""
        return self.kernel(arguments, self.storage, list(arguments[1].shape), self.shape)


def statistics(q, k, v, dy, mask: torch.Tensor, block: int) -> tuple[Inputs, torch.Tensor, torch.Tensor]:
    """In float64: the inputs, the gradient with respect to q, then those with respect to k and to v."""
    kept = mask.to(q.device).repeat_interleave(block, 0).repeat_interleave(block, 1)
    found = []
    for head in range(len(q)):  # one after the other: a matrix of scores is large
        query, key, value, slope = (x[head].double() for x in (q, k, v, dy))
        scores = (query @ key.T / HEAD**0.5).masked_fill(~kept, -torch.inf)
        weights, slopes = scores.softmax(1).nan_to_num(0.0), slope @ value.T
        delta = (weights * slopes).sum(1)
        ds = weights * (slopes - delta[:, None]) / HEAD**0.5
        found.append((scores.logsumexp(1).float(), delta.float(), ds @ key, ds.T @ query, weights.T @ slope))
    lse, delta, dq, dk, dv = (torch.stack(each) for each in zip(*found))
    return Inputs(q, k, v, dy, lse, delta), dq, torch.stack([dk, dv])


def check(
    form: Form, tokens: int, heads: int, kept: float, device="cuda", target="cuda:sm_90a", repeats: int = 3
) -> float:
    """The relative error of a few runs on fresh numbers, which must agree bit by bit; a row and a column are empty."""
    q, k, v, dy = (torch.randn(heads, tokens, HEAD, device=device).bfloat16() for _ in range(4))
    mask = random_mask(tokens // form.block, tokens // form.block, kept)
    mask[-1] = mask[:, -1] = False
    x, of_query, of_others = statistics(2 * q, k, v, dy, mask, form.block)
    kind = kind_of(form)
    want = of_query if kind is GradQuery else of_others
    gradient = kind(form, mask, heads, device, target)
    arguments, what = gradient.arguments(x), f"{form.file}, {tokens} tokens, {heads} heads, {kept}"
    first, error = compared(lambda: gradient(arguments).view(want.shape), want, what, repeats)
    if first[want == 0].any():
        raise AssertionError(f"{what}: rows or columns without blocks are not 0")
    return error


def peer(q, k, v, dy):
    """The peer computes all gradients: five products, all dense."""
    inputs = [x.unsqueeze(0).requires_grad_() for x in (q.clone(), k.clone(), v.clone())]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        y = torch.nn.functional.scaled_dot_product_attention(*inputs)
    return lambda: torch.autograd.grad(y, inputs, dy.unsqueeze(0), retain_graph=True)


def case(forms: tuple[Form, ...], zeros: float, tokens: int = 8192, heads: int = 32) -> Case:
    """One kernel, or several, one after the other."""
    q, k, v, dy = (torch.randn(heads, tokens, HEAD, device="cuda").bfloat16() for _ in range(4))
    rows = tokens // forms[0].block
    mask = random_mask(rows, rows, 1 - zeros)
    lse, delta = torch.full((heads, tokens), 9.0, device="cuda"), torch.randn(heads, tokens, device="cuda")
    gradients = [kind_of(form)(form, mask, heads) for form in forms]
    calls = [(gradient, gradient.arguments(Inputs(q, k, v, dy, lse, delta))) for gradient in gradients]
    times = measure(
        {
            "lacis": lambda: [gradient(arguments) for gradient, arguments in calls],
            "torch dense, all gradients": peer(q, k, v, dy),
        },
        "cuda",
        rounds=20,
        flush=True,
    )
    return Case(f"{', '.join(form.file for form in forms)}, {zeros:.0%} zeros", times)


SERIAL = Form("grad-query64", 64, 2), Form("grad-query128", 128, 1)
WHOLE64 = Form("grad-query64-skew", 64, 2), Form("grad-key-value64", 64, 2)
WHOLE128 = Form("grad-query128-skew", 128, 1), Form("grad-key-value128", 128, 1)
FORMS = (*SERIAL, *WHOLE64, *WHOLE128)


def kind_of(form: Form) -> type:
    return GradQuery if form.file.startswith("grad-query") else GradKeyValue


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    for form in FORMS:
        check(form, 2048, 3, 0.3)
    cases = [(form,) for form in FORMS] + [WHOLE64, WHOLE128]
    return [case(forms, zeros) for forms in cases for zeros in (0.75, 0.9)]
