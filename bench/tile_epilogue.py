# SPDX-License-Identifier: Apache-2.0
"""Bias, activation and residual fused into the forward's tile kernel, as tiles by hand."""

from __future__ import annotations

import dataclasses

import torch

from .tiles import BLOCK128, Layer, Layout, blocked

RELU = "%active = arith.maximumf %raw, %zero : f32"
# erf by Abramowitz and Stegun 7.1.26, to 1.5e-7: 1 - t (a1 + t (a2 + ...)) exp(-z z) where t = 1 / (1 + p z).
GELU = """%one = arith.constant 1.0 : f32
                  %half = arith.constant 0.5 : f32
                  %root = arith.constant 0.70710678 : f32
                  %slope = arith.constant 0.3275911 : f32
                  %a1 = arith.constant 0.254829592 : f32
                  %a2 = arith.constant -0.284496736 : f32
                  %a3 = arith.constant 1.421413741 : f32
                  %a4 = arith.constant -1.453152027 : f32
                  %a5 = arith.constant 1.061405429 : f32
                  %size = math.absf %raw : f32
                  %z = arith.mulf %size, %root : f32
                  %below = math.fma %slope, %z, %one : f32
                  %t = arith.divf %one, %below : f32
                  %s4 = math.fma %a5, %t, %a4 : f32
                  %s3 = math.fma %s4, %t, %a3 : f32
                  %s2 = math.fma %s3, %t, %a2 : f32
                  %s1 = math.fma %s2, %t, %a1 : f32
                  %s0 = arith.mulf %s1, %t : f32
                  %minus = arith.negf %z : f32
                  %square = arith.mulf %minus, %z : f32
                  %power = math.exp %square : f32
                  %rest = arith.mulf %s0, %power : f32
                  %erf = arith.subf %one, %rest : f32
                  %signed = math.copysign %erf, %raw : f32
                  %twice = arith.addf %signed, %one : f32
                  %weight = arith.mulf %twice, %half : f32
                  %active = arith.mulf %raw, %weight : f32"""
SILU = """%one = arith.constant 1.0 : f32
                  %minus = arith.negf %raw : f32
                  %power = math.exp %minus : f32
                  %below = arith.addf %power, %one : f32
                  %active = arith.divf %raw, %below : f32"""
EPILOGUES = {
    name: dataclasses.replace(BLOCK128, file="epilogue128", edits=((RELU, text),))
    for name, text in (("relu", RELU), ("gelu", GELU), ("silu", SILU))
}


def operands(rows: int, columns: int, tokens: int, dtype=torch.bfloat16) -> list[torch.Tensor]:
    """x, bias and residual."""
    return [torch.randn(*size, device="cuda").to(dtype) for size in ((tokens, columns), (rows,), (tokens, rows))]


def check(name: str, rows: int, columns: int, tokens: int, sparsity: float, dtype=torch.bfloat16) -> float:
    """The relative error against torch in float64."""
    layout: Layout = dataclasses.replace(EPILOGUES[name], dtype=dtype)
    weight = blocked(rows, columns, layout.block, sparsity, dtype)
    x, bias, residual = operands(rows, columns, tokens, dtype)
    got = Layer(layout, weight, tokens)(x, bias, residual)
    raw = x.double() @ weight.double().T + bias.double()
    want = getattr(torch.nn.functional, name)(raw) + residual.double()
    error = ((got.double() - want).norm() / want.norm()).item()
    if not error < 6e-3:
        raise AssertionError(f"{name} {rows}x{columns}, {tokens} tokens, {sparsity}: error {error}")
    return error
