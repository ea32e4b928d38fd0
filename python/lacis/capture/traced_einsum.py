# SPDX-License-Identifier: Apache-2.0
"""Einsum inside of a function that is traced."""

from __future__ import annotations

from ..errors import DataError
from .chain import Expression, Read, Trace
from .expression import parse_statement
from .traced import Argument, Traced


def traced_einsum(expression: str, operands) -> Traced:
    """`lacis.einsum` inside of a function that is traced."""
    terms, output = parse_statement(expression)
    if len(terms) != len(operands):
        raise DataError(f"einsum: '{expression}' names {len(terms)} operands, {len(operands)} are given")
    trace = next(o for o in operands if isinstance(o, Traced)).trace
    again = trace.pattern if any(isinstance(o, Argument) and o.is_pattern for o in operands) else None
    global_letter = dict(zip(output, again[1])) if again and len(again[1]) == len(output) else {}
    for term, operand in zip(terms, operands):
        if not isinstance(operand, Traced):
            raise DataError(
                f"kernel: {type(operand).__name__} in '{expression}'; give tensors as arguments of the function"
            )
        if len(term) != len(operand.shape):
            raise DataError(
                f"einsum: '{''.join(term)}' in '{expression}' names {len(term)} axes of {len(operand.shape)}"
            )
        for letter, known in zip(term, operand.letters):
            if global_letter.setdefault(letter, known) != known:
                raise DataError(
                    f"kernel: '{letter}' in '{expression}' is '{known}' and '{global_letter[letter]}' before"
                )
    for term, operand in zip(terms, operands):
        before = operand.used or (None,) * len(term)
        for letter, size, known in zip(term, operand.shape, before):
            if letter not in global_letter:
                again = known is not None and known not in global_letter.values()
                global_letter[letter] = known if again else trace.letter(letter, size)
            if trace.sizes[global_letter[letter]] != size:
                other = trace.sizes[global_letter[letter]]
                raise DataError(f"einsum: '{letter}' in '{expression}' has size {size} and {other}")
    named = lambda letters: tuple(global_letter[letter] for letter in letters)
    for term, operand in zip(terms, operands):
        if isinstance(operand, Argument):
            operand.used = operand.used or named(term)
    return _product(trace, expression, [named(term) for term in terms], operands, named(output))


def _product(trace: Trace, expression: str, terms, operands, output) -> Traced:
    patterns = [(o.name, term) for o, term in zip(operands, terms) if isinstance(o, Argument) and o.is_pattern]
    for name, own in patterns:
        wanted = (name, (*(letter for letter in output if letter not in own), *own))
        if not set(own) <= set(output) or output != wanted[1]:
            raise DataError(
                f"kernel: '{expression}' samples on a pattern, whose letters, behind those of a batch, are the output's"
            )
        if trace.pattern not in (None, wanted):
            raise DataError(f"kernel: '{expression}' is on another pattern; the statements of a chain share one")
        trace.pattern = wanted
    divisor, reads, on_pattern = None, [], bool(patterns)
    for operand, term in zip(operands, terms):
        if isinstance(operand, Argument):
            if not operand.is_pattern:
                reads.append(Read(operand.name, term))
            continue
        on_pattern |= operand.sampled
        if operand.divisor and divisor is None and set(operand.divisor.letters) <= set(output):
            divisor, operand = (
                operand.divisor,
                Traced(trace, operand.reads, operand.body, operand.letters, operand.sampled),
            )
        reads.append(operand.read())
    if not reads:
        raise DataError(f"kernel: '{expression}' has no values; give it a dense operand")
    sampled = on_pattern and trace.pattern is not None and output == trace.pattern[1]
    if on_pattern and not sampled and set(trace.pattern[1]) <= set(output):
        raise DataError(f"kernel: '{expression}' spreads entries over a dense result, for which a chain has no code")
    body: Expression = ("read", 0)
    for number in range(1, len(reads)):
        body = ("mul", body, ("read", number))
    loops = {letter for read in reads for letter in read.letters}
    reduce = "add" if loops - set(output) else None
    return Traced.of(trace, trace.add("s" if sampled else "a", output, reads, body, sampled, reduce), sampled, divisor)
