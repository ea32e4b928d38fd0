# SPDX-License-Identifier: Apache-2.0
"""One einsum on given operands: its kernels, what they are launched with, and what their results become."""

from __future__ import annotations

import dataclasses
import functools

import torch

from ..capture import (
    Epilogue,
    KernelSpec,
    capture_einsum,
    check_epilogue,
    check_operands,
    output_dtype,
    packed_operand,
    parse_statement,
    wide,
)
from ..formats import Sum
from ..nn.recorded import takes_part
from ..packing import PackedTensor
from ..patterns import Pattern
from ..patterns.transforms import is_transformed
from ..schedule.steps import Step
from ..schedule.steps.tensorize import refuse_tiles
from .autocast import in_region
from .batch_letters import under_batch_letters
from .fitted import fitted
from .forward_only import forward_only
from .reference import finish, total


class Call:
    """An einsum, captured. `pieces` has a specification and operands for each kernel, by name.

    There is one kernel, named "", save where the output has all letters of a packed sum: then one for each part. A
    kernel needs an axis to run over; where the output has none it keeps one of the packed operand, which is summed up
    afterwards. Where it does not make the whole result (`fused`), the epilogue follows in torch's own operators.
    `kind` is the kind of device that the kernels are for, by default that of the operands. `is_cast`: the operands are
    in the dtype of an autocast region, because the `asked` dtype of the result is not that of the region's kernels.
    """

    def __init__(
        self,
        expression,
        operands,
        location=None,
        steps=(),
        semiring="plus_times",
        epilogue: Epilogue | None = None,
        deterministic: bool = True,
        strict: bool = False,
        kind: str | None = None,
        out_dtype: torch.dtype | None = None,
    ):
        if strict:
            refuse_tiles(steps)
        check_operands(operands, kind)
        given, self.asked = operands, out_dtype
        if operands and out_dtype is not None:  # else a kernel of an autocast region's dtype answers in that
            operands, epilogue = in_region(operands, epilogue)
        self.is_cast = operands is not given
        self.expression = expression
        expression, operands = under_batch_letters(expression, operands)
        self.operands = operands
        self.semiring = semiring
        self.epilogue = epilogue
        self.deterministic = deterministic
        self.strict = strict
        self.terms, self.output = parse_statement(expression)
        self.packed = packed_operand(operands)
        own = self.terms[self.packed]
        kept = self.output or (own[self._first_axis()],)
        self.by_entry = set(own) == set(kept)
        self.scattered = set(own) < set(kept)
        self.fused = bool(self.output) and not self.scattered
        self._plain = (expression, operands, location, (), semiring)
        self.pieces: dict[str, tuple[KernelSpec, list]] = {}
        statement = expression if self.fused else f"{expression.partition('->')[0]}->{''.join(kept)}"
        steps = steps if isinstance(steps, (Step, str)) else tuple(steps)
        said = (steps, statement, location, self.fused, semiring, kind, out_dtype, deterministic, strict)
        for name, mine in self._parts().items():
            capture = functools.partial(self._captured, mine, epilogue, *said)
            spec, self.sizes = capture() if epilogue is not None else fitted(said, mine, self.packed, capture)
            self.pieces[name] = spec, mine
        self.out_dtype = output_dtype(self.dtype, out_dtype)
        if epilogue is not None and not self.fused:
            check_epilogue(epilogue, self.output, own, self.sizes, semiring, self.dtype, self.device)

    @staticmethod
    def _captured(
        operands, epilogue, steps, statement, location, fused: bool, semiring, kind, out_dtype, deterministic, strict
    ) -> tuple[KernelSpec, dict[str, int]]:
        """The specification of a piece, and the size of each letter."""
        if fused:
            given = (location, steps, semiring, epilogue, kind, out_dtype)
            spec, sizes = capture_einsum(statement, operands, *given)
        else:
            spec, sizes = capture_einsum(statement, operands, location, steps, semiring, kind=kind)
            spec = dataclasses.replace(spec, output=dataclasses.replace(spec.output, dtype=wide(spec.dtype)))
        return dataclasses.replace(spec, deterministic=deterministic, plain=strict), sizes

    @property
    def sampled(self) -> bool:
        """Is the result packed, on the pattern of the packed operand?"""
        return self.by_entry and bool(self.output)

    @property
    def pattern(self) -> Pattern:
        """The pattern of the packed operand."""
        operand = self.operands[self.packed]
        return operand if isinstance(operand, Pattern) else operand.pattern

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the operands, and of the result where no other one was asked for; a pattern has none."""
        return next(operand for operand in self.operands if not isinstance(operand, Pattern)).dtype

    @property
    def device(self) -> torch.device:
        return self.operands[self.packed].device

    def without_epilogue(self) -> Call:
        """The sum alone, by its default schedule."""
        return Call(*self._plain, strict=self.strict, out_dtype=self.asked)

    def by_part(self) -> list[Call]:
        """The sum alone as one call for each part of the packed operand; their results add up to it."""
        expression, _, location, steps, semiring = self._plain
        known = {"location": location, "steps": steps, "semiring": semiring, "strict": self.strict}
        known["out_dtype"] = self.asked
        return [Call(expression, operands, **known) for operands in self._split().values()]

    @property
    def has_dense_gradients(self) -> bool:
        """Is there a gradient with all letters of a packed sum? Its kernels run on one part each."""
        own = set(self.terms[self.packed])
        found = [o for term, o in zip(self.terms, self.operands) if own <= set(term) and isinstance(o, torch.Tensor)]
        return isinstance(self.pattern.format, Sum) and any(map(takes_part, found))

    def _first_axis(self) -> int:
        """The axis of the packed operand that its levels run over first; of a binding the first axis."""
        format = next(iter(self.pattern.parts.values())).format
        first = format.levels[0].digits[0].axis
        return first if first < format.rank else 0

    def _parts(self) -> dict[str, list]:
        whole = not (self.by_entry or self.scattered) or not isinstance(self.pattern.format, Sum)
        return {"": list(self.operands)} if whole else self._split()

    def _split(self) -> dict[str, list]:
        """The operands with each part of a packed sum in its place."""
        operand, parts = self.operands[self.packed], {}
        for name in self.pattern.parts:
            parts[name] = list(self.operands)
            parts[name][self.packed] = operand.of_part(name)
        return parts

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All tensors that may require a gradient: dense operands, values, and those of the epilogue."""
        found = [] if self.epilogue is None else list(self.epilogue.tensors)
        for operand in self.operands:
            if isinstance(operand, PackedTensor):
                found += operand.values_by_part.values()
            elif not isinstance(operand, Pattern):
                found.append(operand)
        return found

    def launch(self, kernels) -> torch.Tensor | PackedTensor:
        """Launch a kernel for each piece; `kernels` maps the names of the pieces to them."""
        results = {name: self._launch(kernels[name], spec, operands) for name, (spec, operands) in self.pieces.items()}
        if self.sampled:
            return self.packed_result(results)
        if self.fused:
            return results[""]
        if self.scattered:
            return finish(self, sum(results.values()))
        if self.by_entry:
            results[""] = torch.cat([values.reshape(-1)[self._entries(name)] for name, values in results.items()])
        return finish(self, total(results[""], self.semiring))

    def _entries(self, part: str) -> torch.Tensor:
        return self.pattern.part(part).coordinates()[1]

    def packed_result(self, values: dict[str, torch.Tensor]) -> PackedTensor:
        """Values at the entries as a tensor with the letters of the output in the order that was asked for."""
        own = next(iter(self.pieces.values()))[0].output.indices
        order = [own.index(letter) for letter in self.output]
        result = PackedTensor(self.pattern, values)
        return result if order == sorted(order) else result.transpose(*order)

    def _launch(self, kernel, spec: KernelSpec, operands) -> torch.Tensor:
        packed = operands[self.packed]
        dense = [operand for n, operand in enumerate(operands) if n != self.packed]
        dense += self.epilogue.tensors if self.epilogue is not None and self.fused else []
        if spec.sampled:
            shape = (packed if isinstance(packed, Pattern) else packed.pattern).part().values_shape
        else:
            shape = [self.sizes[letter] for letter in spec.output.indices]
        if spec.dtype != torch.bool:
            return kernel.run(dense, packed, shape)
        # Kernels read bool as bytes.
        if isinstance(packed, PackedTensor):
            packed = packed.with_values(packed.values.view(torch.int8))
        return kernel.run([tensor.view(torch.int8) for tensor in dense], packed, shape).view(torch.bool)


def run(call: Call, compute) -> torch.Tensor | PackedTensor:
    """The result of an einsum, differentiable where its semiring is; `compute(call)` is its forward pass.

    Where a gradient may be asked of an epilogue that is more than one bias, it runs as torch's own operators.
    """
    recording = is_transformed() or torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors)
    if call.semiring != "plus_times":
        with torch.no_grad():
            result = compute(call)
        return forward_only(result, call) if recording else result
    if recording and not (call.by_entry or call.scattered) and call.has_dense_gradients:
        return finish(call, sum(compute(part) for part in call.by_part()))
    after = call.epilogue
    if not recording or after is None or (after.only_bias and not call.sampled) or not call.fused:
        return compute(call)
    return finish(call, compute(call.without_epilogue()))
