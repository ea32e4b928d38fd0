# SPDX-License-Identifier: Apache-2.0
"""The gradient of attention on stored blocks by hand (test/Tiles), on the GPU, beside the whole backward of SDPA."""

from __future__ import annotations

import torch

from .measure import Case, measure
from .tile_attention import HEAD, Attention, Form, compared, random_mask

TITLE = "Gradients of block-sparse attention on tensor cores, 32 heads of 128, 8192 tokens, bf16"


class GradQuery(Attention):
    """The gradient with respect to q; rows of `lse` and `delta` as `statistics` gives them."""

    def __call__(self, q, k, v, dy, lse, delta) -> torch.Tensor:
        """Of [heads, tokens, 128] each, `lse` and `delta` of [heads, tokens] in float32."""
        flat = [x.reshape(-1, HEAD) for x in (q, k, v, dy)] + [lse.reshape(-1), delta.reshape(-1)]
        return self.kernel(flat, self.storage, list(flat[0].shape), self.shape).view(q.shape)


def statistics(q, k, v, dy, mask: torch.Tensor, block: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """In float64: the logarithm of each row's sum of exponentials, delta, and the gradient with respect to q."""
    kept = mask.to(q.device).repeat_interleave(block, 0).repeat_interleave(block, 1)
    found = []
    for head in range(len(q)):  # one after the other: a matrix of scores is large
        scores = (q[head].double() @ k[head].double().T / HEAD**0.5).masked_fill(~kept, -torch.inf)
        weights, slopes = scores.softmax(1).nan_to_num(0.0), dy[head].double() @ v[head].double().T
        delta = (weights * slopes).sum(1)
        gradient = (weights * (slopes - delta[:, None])) @ k[head].double() / HEAD**0.5
        found.append((scores.logsumexp(1).float(), delta.float(), gradient))
    return tuple(torch.stack(each) for each in zip(*found))


def check(
    form: Form, tokens: int, heads: int, kept: float, device="cuda", target="cuda:sm_90a", repeats: int = 3
) -> float:
    """The relative error of a few runs on fresh numbers, which must agree bit by bit; a row of blocks is empty."""
    q, k, v, dy = (torch.randn(heads, tokens, HEAD, device=device).bfloat16() for _ in range(4))
    mask = random_mask(tokens // form.block, tokens // form.block, kept)
    mask[-1] = False
    lse, delta, want = statistics(2 * q, k, v, dy, mask, form.block)
    gradient = GradQuery(form, mask, heads, device, target)
    what = f"{form.file}, {tokens} tokens, {heads} heads, {kept}"
    first, error = compared(lambda: gradient(2 * q, k, v, dy, lse, delta), want, what, repeats)
    if first[:, -form.block :].any():
        raise AssertionError(f"{what}: rows without blocks are not 0")
    return error


def case(form: Form, zeros: float, tokens: int = 8192, heads: int = 32) -> Case:
    """The peer computes the gradients of k and v, too: five products, all dense, beside three on a pattern."""
    q, k, v, dy = (torch.randn(heads, tokens, HEAD, device="cuda").bfloat16() for _ in range(4))
    mask = random_mask(tokens // form.block, tokens // form.block, 1 - zeros)
    gradient = GradQuery(form, mask, heads)
    lse = torch.full((heads, tokens), 9.0, device="cuda")
    delta = torch.randn(heads, tokens, device="cuda")
    inputs = [x.unsqueeze(0).requires_grad_() for x in (q.clone(), k.clone(), v.clone())]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        y = torch.nn.functional.scaled_dot_product_attention(*inputs)
    times = measure(
        {
            "lacis": lambda: gradient(q, k, v, dy, lse, delta),
            "torch dense, all gradients": lambda: torch.autograd.grad(y, inputs, dy.unsqueeze(0), retain_graph=True),
        },
        "cuda",
        rounds=20,
        flush=True,
    )
    return Case(f"{form.file}, {zeros:.0%} zeros", times)


FORMS = (Form("grad-query64", 64, 2), Form("grad-query128", 128, 1))


def run() -> list[Case]:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        return []
    for form in FORMS:
        check(form, 2048, 3, 0.3)
    return [case(form, zeros) for form in FORMS for zeros in (0.75, 0.9)]
