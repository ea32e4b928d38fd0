# SPDX-License-Identifier: Apache-2.0
"""Formats mean their loops: the form in which levels own the output, what it computes, and what is refused."""

import pytest
import torch
from expressions import limit
from strategies import mostly_long

import lacis
from lacis import steps

# Rows of blocks are listed too; so are pairs of coordinates.
BLOCKS = "(i, j) -> (i floordiv 4 : compressed, j : compressed, i mod 4 : dense)"
NEST = (
    "(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, "
    "i mod 16 : compressed<unique=false>, j mod 16 : singleton)"
)
CSB = "(i, j) -> (i floordiv 5 : dense, j floordiv 3 : dense, (i mod 5, j mod 3) : compressed)"
PAIRS = "(i, j, k) -> ((i, j) : compressed, k : compressed)"
LINEAR = "ij,bj->bi"


def sparse(*shape, rows=0.4, density=0.3, seed=0):
    """A random matrix some of whose rows have entries, and which of its places are entries."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < density
    mask &= torch.rand(shape[0], generator=generator)[(...,) + (None,) * (len(shape) - 1)] < rows
    return torch.where(mask, torch.randn(shape, generator=generator), 0), mask


def owned(kernel) -> tuple[str, str]:
    """The form that a kernel tells, and why."""
    found = [step for step in kernel.steps if isinstance(step, steps.Own)]
    return (found[0].form, found[0].why) if found else ("locate", "")


FORMS = {
    "csr": (lacis.Csr, "locate", ""),
    "ell": (lacis.Ell, "locate", ""),
    "dcsr": (lacis.Dcsr, "list", "level 0 lists each i once"),
    "csc": (lacis.Csc, "companion", "a sum in registers is faster than one in the output"),
    "nest": (lacis.Format.parse(NEST), "companion", "a sum in registers is faster than a tile in memory"),
}


OTHERS = [
    (
        "(i, j) -> (i : compressed<unique=false>, j : singleton)",
        "companion",
        "shares of entries are for a CPU where most i have none",
    ),
    (
        "(i, j) -> ((i, j) : compressed)",
        "companion",
        "shares of entries are for a CPU where most (i, j) have none",
    ),
    ("(i, j) -> (i floordiv 4 : dense, j : compressed, i mod 4 : dense)", "locate", ""),
    (
        "(i, j) -> (i floordiv 4 : compressed, j : compressed, i mod 4 : compressed)",
        "companion",
        "a sum in registers is faster than one in the output",
    ),
    (str(lacis.Dia()), "locate", ""),
    (str(lacis.Sell(4, 8)), "permute", "a binding has its rows in another order"),
    (CSB, "companion", "a sum in registers is faster than a tile in memory"),
]


@pytest.mark.parametrize("text, form, why", mostly_long(OTHERS))
def test_the_form_of_a_format(text, form, why):
    packed = lacis.pack(sparse(17, 23)[0], lacis.Format.parse(text))
    assert owned(lacis.compile("ij,j->i", packed, torch.randn(23), target="cuda:sm_90a")) == (form, why)


# The form that the levels of a format have of their own; `own` asks for those that are not the fastest.
LOOPS = {
    "csr": (lacis.Csr, "locate"),
    "dcsr": (lacis.Dcsr, "list"),
    "nest": (lacis.Format.parse(NEST), "push"),
    "coo": (lacis.Coo, "share"),
    "csc": (lacis.Csc, "push"),
    "ell": (lacis.Ell, "locate"),
    "csb": (lacis.Format.parse(CSB), "push"),
    "group coo": (lacis.GroupCoo(4), "share"),
    "pairs": (lacis.Format.parse("(i, j) -> ((i, j) : compressed)"), "share"),
}
RUNS = [("cpu", 4), ("cpu", len(LOOPS)), ("cuda:sm_90a", len(LOOPS))]


@pytest.mark.parametrize("target, count", mostly_long(RUNS, RUNS[0]))
def test_formats_mean_their_loops(target, count):
    """Each format has a kernel that no other has, and none of them needs an index."""
    dense, _ = sparse(17, 23)
    x, codes = torch.randn(3, 23), set()
    for name, (format, form) in list(LOOPS.items())[:count]:
        asked = [steps.Own("0", form)] if form in ("push", "share") else []
        kernel = lacis.compile(LINEAR, lacis.pack(dense, format), x, target=target, steps=asked)
        assert owned(kernel)[0] == form, name
        assert "lacis.walk" not in kernel.asm["loops"]
        codes.add(kernel.asm["asm" if target == "cpu" else "ptx"])
    assert len(codes) == count


@pytest.mark.parametrize("format, form, why", mostly_long(list(FORMS.values()), FORMS["dcsr"]))
def test_the_form_is_told_with_its_reason(format, form, why):
    kernel = lacis.compile(LINEAR, lacis.pack(sparse(17, 23)[0], format), torch.randn(3, 23))
    assert owned(kernel) == (form, why)


ROWS = [((17, 23), 0.4), ((33, 9), 0.0), ((0, 5), 1.0), ((5, 0), 1.0), ((41, 3), 1.0)]


@pytest.mark.parametrize("activation", mostly_long([None, "gelu"], "gelu"))
@pytest.mark.parametrize("shape, rows", mostly_long(ROWS, ROWS[0]))
def test_rows_that_are_not_listed_are_finished_too(shape, rows, activation):
    dense, mask = sparse(*shape, rows=rows)
    bias = torch.randn(shape[0])
    packed, epilogue = lacis.pack(dense, lacis.Dcsr, mask), lacis.Epilogue(bias=bias, activation=activation)
    for batch in (3, 33):
        x = torch.randn(batch, shape[1])
        expected = x.double() @ dense.double().T + bias
        expected = torch.nn.functional.gelu(expected) if activation else expected
        y = lacis.einsum(LINEAR, packed, x, epilogue=epilogue)
        torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)


LISTED = [("ij,j->i", BLOCKS), (LINEAR, BLOCKS), ("ijk,k->ij", PAIRS)]


@pytest.mark.parametrize("expression, format", mostly_long(LISTED, LISTED[2]))
def test_blocks_and_pairs_of_coordinates_are_listed(expression, format):
    letters = expression.split(",")[0]
    dense, mask = sparse(*({"i": 18, "j": 11, "k": 5}[x] for x in letters))
    term = expression.split(",")[1].split("->")[0]
    x = torch.randn([{"b": 7, "j": 11, "k": 5}[letter] for letter in term])
    packed = lacis.pack(dense, lacis.Format.parse(format), mask)
    kernel = lacis.compile(expression, packed, x, steps=[steps.Own("0", "list")])
    error = (kernel(packed, x).double() - torch.einsum(expression, dense.double(), x.double())).abs()
    assert bool((error <= limit(expression, [dense, x], dict(zip(letters, dense.shape)), torch.float32)).all())
    assert "lacis.walk" not in kernel.asm["loops"]


@pytest.mark.parametrize("activation", mostly_long([None, "gelu"], "gelu"))
@pytest.mark.parametrize("format", mostly_long(["nest", "csb"], "nest"))
@pytest.mark.parametrize("shape", [(17, 23), *(pytest.param(s, marks=pytest.mark.long) for s in ((0, 5), (33, 9)))])
def test_digits_below_their_owner_are_pushed_to_a_tile(shape, format, activation):
    dense, mask = sparse(*shape, rows=1.0)
    bias, packed = torch.randn(shape[0]), lacis.pack(dense, lacis.Format.parse(NEST if format == "nest" else CSB), mask)
    for batch in (3, 33):
        x = torch.randn(batch, shape[1])
        expected = x.double() @ dense.double().T + bias
        expected = torch.nn.functional.gelu(expected) if activation else expected
        epilogue = lacis.Epilogue(bias=bias, activation=activation)
        y = lacis.einsum(LINEAR, packed, x, epilogue=epilogue, steps=[steps.Own("0", "push")])
        torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("expression", ["ij,j->i", "ij,bjk->bik", "ij,jk->ik"])
def test_tiles_of_other_outputs(expression):
    """Vectors, batches, columns; of lanes and of the rows that a jam runs at once each has its own."""
    dense, mask = sparse(17, 23, rows=1.0)
    x = torch.randn([{"b": 3, "j": 23, "k": 6}[letter] for letter in expression.split(",")[1].split("->")[0]])
    packed, expected = lacis.pack(dense, lacis.Format.parse(CSB), mask), torch.einsum(expression, dense, x)
    for more in ([], [steps.Split("k", 3), steps.Jam("k1")] if "k" in expression else []):
        kernel = lacis.compile(expression, packed, x, steps=[steps.Own("0", "push"), *more])
        torch.testing.assert_close(kernel(packed, x), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_a_tile_keeps_the_largest_of_its_semiring():
    dense, mask = sparse(17, 23, rows=0.5)
    x, packed = torch.randn(3, 23), lacis.pack(dense, lacis.Format.parse(NEST), mask)
    y = lacis.einsum(LINEAR, packed, x, semiring="max_plus", steps=[steps.Own("0", "push")])
    expected = torch.where(mask, dense + x[:, None], -torch.inf).amax(-1)
    torch.testing.assert_close(y, expected)


@pytest.mark.long
def test_what_is_not_stored_stays_with_its_row():
    dense, mask = sparse(17, 23, rows=0.5)
    x = torch.randn(3, 23)
    x[1] = torch.nan
    for format, form in ((lacis.Dcsr, "list"), (lacis.Format.parse(NEST), "push")):
        y = lacis.einsum(LINEAR, lacis.pack(dense, format, mask), x, steps=[steps.Own("0", form)])
        assert bool((y[1].isnan() == mask.any(1)).all()) and not y[0].isnan().any()


@pytest.mark.long
def test_a_list_is_not_taken_where_it_is_slower():
    """Hints say so, with which a kernel runs on other patterns as well."""
    dense, _ = sparse(17, 400)
    dense[3] = 1.0
    for format, why in (
        (lacis.Dcsr, "some i have far more entries than most, and it has equal shares"),
        (lacis.Format.parse(BLOCKS), "tiles are made of blocks in the order of all i"),
    ):
        packed = lacis.pack(dense, format)
        assert owned(lacis.compile("ij,j->i", packed, torch.randn(400), target="cuda:sm_90a")) == ("companion", why)
    few, many = (lacis.pack(sparse(2048, 8, rows=rows, density=1.0)[0], lacis.Dcsr) for rows in (0.1, 1.0))
    v = torch.randn(8)
    form, why = owned(lacis.compile("ij,j->i", many, v))
    assert form == "companion" and why == "level 0 lists most i"
    kernel = lacis.compile("ij,j->i", few, v)
    assert owned(kernel)[0] == "list"
    torch.testing.assert_close(kernel(many, v), many.to_dense() @ v)


GIVEN = [(lacis.Dcsr, []), (lacis.Format.parse(NEST), [steps.Own("0", "push")])]


@pytest.mark.parametrize("format, asked", mostly_long(GIVEN, GIVEN[0]))
def test_the_form_is_the_same_given_back(format, asked):
    dense, _ = sparse(17, 23)
    packed, x = lacis.pack(dense, format), torch.randn(3, 23)
    kernel = lacis.compile(LINEAR, packed, x, steps=asked)
    again = lacis.compile(LINEAR, packed, x, steps=kernel.steps)
    assert again.loaded.code == kernel.loaded.code and again.steps == kernel.steps
    first = kernel(packed, x)
    assert all(torch.equal(kernel(packed, x), first) for _ in range(20))


@pytest.mark.parametrize("format", mostly_long(["dcsr", "blocks"], "dcsr"))
def test_gradients_of_listed_rows(format):
    dense, mask = sparse(9, 7, rows=0.6)
    packed = lacis.pack(dense.double(), lacis.Dcsr if format == "dcsr" else lacis.Format.parse(BLOCKS), mask)
    values, x = packed.values.clone().requires_grad_(), torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    product = lambda values, x: lacis.einsum(LINEAR, packed.with_values(values), x)
    assert torch.autograd.gradcheck(product, (values, x))


RELAYOUT = (
    "relayout: rows that an operand lists are written where they lie in 'out'; "
    "own of the operand with 'companion' runs over all rows"
)
COLUMNS, MEET = [steps.Own("0", "push"), steps.Split("j", 4)], "meet in one element of the output, one after another"
REFUSED = {
    "no form": (lacis.Dcsr, [steps.Own("0", "lists")], "own: no form 'lists'; there are 'list'"),
    "not listed": (lacis.Csr, [steps.Own("0", "list")], "has no form 'list': level 0 stores no list of i"),
    "repeats": (lacis.Coo, [steps.Own("0", "list")], "level 0 may list one i more than once"),
    "below": (
        "(i, j) -> (i floordiv 4 : compressed, j : compressed, i mod 4 : compressed)",
        [steps.Own("0", "list")],
        "a level below finds i of the output too",
    ),
    "of a sum": (
        lacis.Format.parse(f"#lacis.sum<a = {lacis.Dcsr()} when nnz(i) lt 3, b = {lacis.Dcsr()}>"),
        [steps.Own("0", "list")],
        "'0' is a sum, each of whose parts meets every element of the output",
    ),
    "located": (lacis.Csr, [steps.Own("0", "push")], "its levels are located, and push nothing"),
    "bound": (lacis.Dia, [steps.Own("0", "list")], "its levels have no loops of their own"),
    "in order": (
        "(i, j) -> (j : var*delta<8>, i : compressed)",
        [steps.Own("0", "push")],
        "level 0 is walked in order, so that no loop has its positions",
    ),
    "vectors": (lacis.Csc, [*COLUMNS, steps.Vectorize("j1", 4)], f"vectorize: iterations of loop 'j1' {MEET}"),
    "jam": (lacis.Csc, [*COLUMNS, steps.Jam("j1")], f"jam: iterations of loop 'j1' {MEET}"),
    "other letters": (lacis.Csc, [steps.Own("0", "list")], "level 0 is of j, and the output does not have all of that"),
    "no strategy": (lacis.Csc, [*COLUMNS, steps.Parallel("j0")], "race: .* here would do 'private'"),
    "timing": (
        lacis.Csc,
        [*COLUMNS, steps.Race("j0", "atomic")],
        "depends on which part arrives first, and only deterministic=False allows that; 'private' would do",
    ),
    "order": (lacis.Csc, [*COLUMNS, steps.Race("j0", "order")], "'order' is for shares of entries"),
    "copies of copies": (
        lacis.Csc,
        [*COLUMNS, steps.Race("j0", "private"), steps.Race("j1", "private")],
        "another loop around has copies of its own already",
    ),
    "no order": (lacis.Csr, [steps.Own("0", "permute")], "no binding has an axis of the output in another order"),
    "walk": (lacis.Dcsr, [steps.Walk("0", "i"), steps.Own("0", "list")], "walk says already how operand '0' is walked"),
    "relayout": (lacis.Dcsr, [steps.Relayout("out")], RELAYOUT),
}


@pytest.mark.parametrize("format, asked, said", REFUSED.values(), ids=REFUSED)
def test_a_form_that_the_levels_do_not_have_is_refused(format, asked, said):
    packed = lacis.pack(sparse(17, 23)[0], lacis.Format.parse(format) if isinstance(format, str) else format)
    with pytest.raises(lacis.CompileError, match=said.replace("(", r"\(")):
        lacis.compile(LINEAR, packed, torch.randn(3, 23), steps=asked)


def test_entries_own_an_output_that_has_all_letters():
    packed = lacis.pack(sparse(17, 23)[0], lacis.Dcsr)
    with pytest.raises(lacis.CompileError, match="own: the output has every letter of operand '0'"):
        lacis.compile("ij,k->ijk", packed, torch.randn(5), steps=[steps.Own("0", "list")])


def test_an_order_of_rows_owns_no_other_axis():
    format = lacis.Format.parse("(i, j, k) let r = rank(i by nnz) -> (r : dense, k : compressed, j : dense)")
    packed = lacis.pack(torch.ones(3, 4, 5), format)
    with pytest.raises(lacis.CompileError, match="has no form 'permute': a level finds k of the output"):
        lacis.compile("ijk,j->ik", packed, torch.ones(4), steps=[steps.Own("0", "permute")])
