# SPDX-License-Identifier: Apache-2.0
"""Steps as data: records and their text, the schedule in force, completion of partial ones, refusals by line."""

import inspect

import pytest
import strategies
import torch

import lacis
from lacis import steps
from lacis.capture import capture_einsum
from lacis.emit import emit
from lacis.formats import decompose
from lacis.runtime.kernels import compile_kernel
from lacis.schedule.steps import parse

RECORDS = [
    steps.Split("i", 32),
    steps.Fuse("i", "j"),
    steps.Reorder("b", "i"),
    steps.Relayout("x"),
    steps.Relayout("x", "(b, j) -> (b floordiv 4 : dense, j : dense, b mod 4 : dense)"),
    steps.Parallel("i"),
    steps.Bind("i0", "block.x"),
    steps.Vectorize("b1", 8),
    steps.Jam("i1"),
    steps.Unroll("j"),
    steps.Unroll("j", 4),
    steps.HorizontalFuse(),
    steps.Apart("rest"),
    steps.HorizontalFuse("ell", "rest"),
    steps.Walk("w", "i", "j"),
    steps.Specialize(b=128, i=3),
]


@pytest.mark.parametrize("step", RECORDS, ids=lambda step: step.describe())
def test_text_to_record_to_text_is_exact(step):
    read = parse(step.text())
    assert read == step and type(read) is type(step) and read.text() == step.text()
    assert step.location[0] == __file__ and read.location is None


def test_fields_come_in_any_order_and_defaults_are_left_out():
    assert parse('#lacis.split<factor = 32, loop = "i">') == steps.Split(factor=32, loop="i")
    assert steps.Unroll("j").text() == '#lacis.unroll<loop = "j">'
    assert steps.Walk(operand="w", axes=("i",)) == steps.Walk("w", "i")
    assert parse("[]") == () and str(parse('[#lacis.jam<loop = "i">]')) == 'jam("i")'


def test_the_loops_of_a_product_of_tiles_are_printed_as_they_are_given():
    assert steps.Tensorize("i1", "b1", "j1", kind="mma").describe() == 'tensorize("i1", "b1", "j1", kind="mma")'
    assert steps.Tensorize("i1", "b1", "j1").describe() == 'tensorize("i1", "b1", "j1")'


REFUSED = {
    '#lacis.splt<loop = "i">': "no verb 'splt'",
    '#lacis.split<loop = "i", by = 2>': "'by'",
    '#lacis.split<loop = "i"': "expected ','",
    '#lacis.split<loop = "i">': "factor",
    '[#lacis.jam<loop = "i">': "expected ','",
    '#lacis.walk<axes = ["i"]>': "argument 'operand' is missing",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_step_is_refused(text):
    with pytest.raises(lacis.ScheduleError, match=REFUSED[text]):
        parse(text)


def problem(format=lacis.Csr, shape=(32, 48), batch=5, dtype=torch.float32):
    w = strategies.sparse(*shape, dtype=dtype)
    return lacis.pack(w, format), torch.randn(batch, shape[1]).to(dtype), w


def both_targets(expression, *operands, steps=()):
    spec, _ = capture_einsum(expression, operands, None, steps)
    return [compile_kernel(emit(spec), target) for target in ("cpu", "cuda:sm_90a")]


GIVEN = strategies.PREDEFINED[:-1] + [strategies.NEST]


@pytest.mark.parametrize("format", strategies.mostly_long(GIVEN), ids=str)
def test_the_default_given_back_is_the_same_kernel(format):
    packed, x, _ = problem(format)
    for before in both_targets("ij,bj->bi", packed, x):
        given = parse(f"[{', '.join(before.info['steps'])}]")
        after = compile_kernel(emit(capture_einsum("ij,bj->bi", [packed, x], None, given)[0]), before.target)
        assert after.info["steps"] == before.info["steps"], "complete of a complete schedule adds nothing"
        assert after.code == before.code


@pytest.mark.long
def test_a_sum_given_back_is_the_same_kernel():
    test_the_default_given_back_is_the_same_kernel(decompose(a=lacis.Ell(2), rest=lacis.Coo(2)))


def test_steps_in_force_print_one_a_line():
    packed, x, w = problem()
    kernel = lacis.compile("ij,j->i", packed, x[0])
    assert str(kernel.steps) == 'unroll("j", 4, 4)\nparallel("i")'
    assert kernel.steps == (steps.Unroll("j", 4, 4), steps.Parallel("i"))
    torch.testing.assert_close(lacis.einsum("ij,j->i", packed, x[0], steps=kernel.steps), w @ x[0])


PARTIAL = {
    "a vector alone": [steps.Split("b", 4), steps.Vectorize("b1", 4)],
    "an order": [steps.Reorder("i", "b")],
    "tiles": [steps.Split("b", 4), steps.Split("i", 8), steps.Reorder("b0", "i0", "i1", "b1")],
    "a copy": [steps.Relayout("1")],
    "a copy of the output": [steps.Relayout("out")],
    "rounds": [steps.Unroll("j", 2)],
    "a jam": [steps.Split("b", 2), steps.Reorder("i", "b0", "b1"), steps.Jam("b1")],
    "a pair": [steps.Fuse("b", "i"), steps.Split("b_i", 16)],
}


@pytest.mark.parametrize("case", strategies.mostly_long(PARTIAL, "tiles"))
def test_partial_schedules_are_completed(case):
    packed, x, w = problem(batch=7)
    given = PARTIAL[case]
    cpu, cuda = both_targets("ij,bj->bi", packed, x, steps=given)
    found = parse(f"[{', '.join(cpu.info['steps'])}]")
    assert [step for step in found if step in given] == list(given), "the user's steps stand as they are"
    assert any(step.mnemonic == "parallel" for step in found)
    assert any(step.mnemonic == "bind" and step.unit != "block.x" for step in map(parse, cuda.info["steps"]))
    kernel = lacis.compile("ij,bj->bi", packed, x, steps=given)
    torch.testing.assert_close(kernel(packed, x), x @ w.T)


def test_a_refusal_names_the_line_what_was_asked_and_the_loops():
    packed, x, _ = problem()
    line = inspect.currentframe().f_lineno
    wrong = [
        steps.Split("b", 4),
        steps.Split("c", 4),
    ]
    with pytest.raises(lacis.CompileError) as caught:
        lacis.compile("ij,bj->bi", packed, x, steps=wrong)
    first, second = caught.value.message.strip().splitlines()
    assert first == f"{__file__}:{line + 3}:0: error: split: no loop named 'c'"
    assert second.endswith("""asked for #lacis.split<loop = "c", factor = 4>; loops here are 'b0', 'b1', 'i', 'j'""")


def test_lines_are_no_part_of_the_key():
    packed, x, _ = problem()
    first = capture_einsum("ij,bj->bi", [packed, x], None, [steps.Split("b", 4)])[0]
    second = capture_einsum("ij,bj->bi", [packed, x], None, [steps.Split("b", 4, location=None)])[0]
    assert first == second and emit(first) != emit(second)
    assert compile_kernel(emit(first), "cpu") is compile_kernel(emit(second), "cpu")


def test_a_step_that_is_not_built_says_so(monkeypatch):
    packed, x, _ = problem()
    handle = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(48, 32)))["0.weight"]
    monkeypatch.setattr(steps.Precompute, "ready", False)
    with pytest.raises(NotImplementedError, match="'precompute' is not built yet"):
        lacis.einsum("ij,bj->bi", packed, x, steps=[steps.Precompute("rest")])
    with pytest.raises(NotImplementedError, match="'precompute' is not built yet"):
        handle.precompute("rest")


def test_the_verbs_of_a_handle_reach_the_kernel():
    model = torch.nn.Sequential(torch.nn.Linear(48, 32)).eval()
    x = torch.randn(5, 48)
    expected = model(x)
    s = lacis.create_schedule(model)
    handle = s["0.weight"].set_format(lacis.Csr).split("b", 8).vectorize("b1", 8).parallel("i")
    assert repr(handle).endswith('.split("b", 8).vectorize("b1", 8).parallel("i")')
    with torch.no_grad():
        torch.testing.assert_close(s.build()(x), expected, rtol=1e-4, atol=1e-5)
    assert handle.kernel.steps[:3] == (steps.Split("b", 8), steps.Vectorize("b1", 8), steps.Parallel("i"))


WALKS = {
    "columns by rows": (lacis.Csc, "ij,bj->bi", ("i",)),
    "rows by rows": (lacis.Csr, "ij,bj->bi", ("i", "j")),
    "rows by columns": (lacis.Csr, "ij,bi->bj", ("j",)),
    "blocks by columns": (lacis.Bsr(4, 8), "ij,bi->bj", ("j",)),
}


@pytest.mark.parametrize("case", strategies.mostly_long(WALKS))
def test_walks(case):
    format, expression, axes = WALKS[case]
    packed, _, w = problem(format)
    x = torch.randn(5, w.shape[0 if "bi->" in expression else 1])
    y = lacis.einsum(expression, packed, x, steps=[steps.Walk("0", *axes)])
    torch.testing.assert_close(y, torch.einsum(expression, w, x))


SUNK = [(lacis.Csr, torch.float32), (lacis.Ell, torch.float16), (lacis.Dcsr, torch.float64), (lacis.Csc, torch.float32)]


@pytest.mark.parametrize("format, dtype", strategies.mostly_long(SUNK))
def test_a_loop_sinks_below_the_walk_of_a_row(format, dtype):
    """Its sums are a tile; what follows a sum is done for each of them, of rows without entries too."""
    w, x = strategies.sparse(19, 48, density=0.2, dtype=dtype), torch.randn(48, 21, dtype=dtype)
    w[[0, 3, 18]] = 0
    bias = torch.randn(19, dtype=dtype)
    follows = lacis.Epilogue(bias=bias, activation="relu")
    given = [steps.Split("k", 8), steps.Reorder("i", "j", "k1"), steps.Vectorize("k1", 8)]
    kernel = lacis.compile("ij,jk->ik", lacis.pack(w, format), x, steps=given, epilogue=follows)
    for matrix in (w, torch.zeros_like(w)):
        y = kernel(lacis.pack(matrix, format), x)
        expected = torch.relu(matrix.double() @ x.double() + bias[:, None].double())
        torch.testing.assert_close(y, expected.to(dtype), rtol=2e-3 if dtype == torch.float16 else 1e-5, atol=1e-4)


def test_axes_of_the_grid():
    packed, x, _ = problem()
    given = [
        steps.Split("i", 4),
        steps.Split("b", 8),
        steps.Reorder("i0", "b0", "i1", "b1"),
        steps.Bind("i0", "block.y"),
        steps.Bind("b0", "block.z"),
        steps.Bind("i1", "thread.y"),
        steps.Bind("b1", "thread.x"),
    ]
    (spec, _) = capture_einsum("ij,bj->bi", [packed, x], None, given)
    kernel = compile_kernel(emit(spec), "cuda:sm_90a")
    (launch,) = kernel.info["launches"]
    assert launch["block"] == [8, 4, 1]
    assert launch["grid"][0] == 1
    assert [size["ceildiv"][1] for size in launch["grid"][1:]] == [4, 8]


SHARES = {
    "alone": [],
    "vectors after": [steps.Split("k", 8), steps.Reorder("i_j0", "k0", "k1"), steps.Vectorize("k1", 8)],
    "shares of shares": [steps.Split("i_j0", 4), steps.Parallel("k")],
    "a copy of the output": [steps.Relayout("out"), steps.Reorder("k", "i_j0")],
    "rounds": [steps.Unroll("j", 2)],
}


SHARED = [lacis.Csr(), lacis.Csc(), lacis.Ell(), lacis.Bsr(4, 8)]
TURNS = [(case, format) for n, case in enumerate(SHARES) for format in strategies.turns(SHARED, n)]
TURNS = strategies.mostly_long(
    TURNS, *(turn for turn in TURNS if turn[0] not in ("rounds", "shares of shares", "vectors after"))
)


@pytest.mark.parametrize("case, format", TURNS, ids=str)
def test_equal_shares_of_entries(case, format):
    """Empty rows, a full one, rows across shares: finished in the order of the entries, on any number of threads."""
    w = strategies.sparse(32, 48, density=0.2)
    w[[0, 3, 10, 11, 31]] = 0
    w[20] = 1.0
    packed, x = lacis.pack(w, format), torch.randn(48, 9)
    blocked = isinstance(format, lacis.Bsr)
    for factor in strategies.turns((1, 7, 500), list(SHARES).index(case)):
        given = [steps.SplitNnz("i_j", factor), *SHARES[case]]
        if blocked:
            given = [parse(step.text().replace("i_j", "i0_j0").replace('"j"', '"j0"')) for step in given]
        kernel = lacis.compile("ij,jk->ik", packed, x, steps=given)
        y = kernel(packed, x)
        torch.testing.assert_close(y, w @ x)
        assert all(torch.equal(y, kernel(packed, x)) for _ in range(5))
    if not SHARES[case]:
        spec, _ = capture_einsum("ij,jk->ik", [packed, x], None, given)
        assert len(compile_kernel(emit(spec), "cuda:sm_90a").info["launches"]) == 2


def test_a_race_needs_a_strategy():
    packed, x, _ = problem()
    shares = steps.SplitNnz("i_j", 32)
    kernel = lacis.compile("ij,j->i", packed, x[0], steps=[shares])
    assert kernel.steps[:3] == (shares, steps.Race("i_j0", "order"), steps.Parallel("i_j0"))
    with pytest.raises(lacis.CompileError, match=r"test_steps.py:\d+:0: error: race: iterations of loop 'i_j0' meet"):
        lacis.compile("ij,j->i", packed, x[0], steps=[shares, steps.Parallel("i_j0")])


def test_special_sizes_are_constants_and_checked():
    packed, x, w = problem(batch=8)
    given = [steps.Specialize(b=8), steps.Reorder("i", "b"), steps.Vectorize("b", 8)]
    kernel = lacis.compile("ij,bj->bi", packed, x, steps=given)
    torch.testing.assert_close(kernel(packed, x), x @ w.T)
    assert "tensor<8x" in kernel.asm["loops"] and kernel.key != lacis.compile("ij,bj->bi", packed, x).key
    with pytest.raises(lacis.DataError, match=r"expected 8 in dimension 0 \('b'\), got 5"):
        kernel(packed, x[:5])
