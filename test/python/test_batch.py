# SPDX-License-Identifier: Apache-2.0
"""The level kind `batch`: values in copies that share a pattern, in every owner form, sampled, and differentiated."""

import copy
import pickle

import lacis
import pytest
import torch
import user_kinds
from lacis import _core, steps
from lacis.errors import DataError, FormatError
from lacis.formats import Coo, Csc, Csr, Dcsr, Dia, Ell, Sell, companion, decompose, nnz
from lacis.packing import PackedTensor
from lacis.runtime import library, ptxas
from strategies import mostly_long
from torch.autograd import gradcheck

assert user_kinds.MyCsr  # defines the kinds that formats name
H, I, J, K = 3, 19, 23, 5
BLOCKS = "(i, j) -> (i floordiv 4 : dense, j floordiv 2 : compressed, i mod 4 : dense, j mod 2 : dense)"
NEST = "(i, j) -> (i floordiv 4 : dense, j floordiv 2 : compressed, (i mod 4, j mod 2) : bitmap)"
FORMATS = {
    "csr": Csr(),
    "csc": Csc(),
    "coo": Coo(),
    "dcsr": Dcsr(),
    "ell": Ell(),
    "blocks": lacis.Format.parse(BLOCKS),
    "bitmaps": lacis.Format.parse(NEST),
    "push": lacis.Format.parse(
        "(i, j) -> (i floordiv 5 : dense, j floordiv 3 : dense, (i mod 5, j mod 3) : compressed)"
    ),
    "dia": Dia(),
    "sell": Sell(4, 8),
    "user": lacis.Format.parse("(i, j) -> (i : dense, j : @my_csr)"),
    "hash": lacis.Format.parse("(i, j) -> (i : dense, j : @my_hash)"),
    "sum": decompose(short=(Csr, nnz("i") < 4), rest=Coo),
}


def format_of(name):
    return FORMATS[name].batched("h")


def sparse(*shape, density=0.3, seed=0, dtype=torch.float32):
    """A random tensor some of whose rows have no entry, in any copy."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < density
    mask[..., 2::5, :] = False
    return torch.where(mask, torch.randn(shape, generator=generator, dtype=torch.float64), 0).to(dtype)


def dense(*shape, seed=1, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def close(found, expected):
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FORMATS)
def test_it_stores_the_pattern_once(name):
    a = sparse(H, I, J)
    packed = lacis.pack(a, format_of(name)).validate()
    assert torch.equal(packed.to_dense(), a)
    of_one = lacis.Pattern.from_mask((a != 0).any(0), FORMATS[name])
    assert [t.tolist() for t in packed.storage.values()] == [t.tolist() for t in of_one.storage.values()]
    assert all(values.shape[0] == H for values in packed.values_by_part.values()) and packed.nnz == H * of_one.nnz
    assert torch.equal(PackedTensor.from_storage(packed.format, a.shape, packed.tensors).to_dense(), a)
    coo = packed.to(Coo(3))
    for made in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed)), coo, coo.to(packed.format)):
        assert torch.equal(made.to_dense(), a)
    assert torch.equal(packed.transpose(1, 0, 2).to_dense(), a.transpose(0, 1))
    assert torch.equal(packed.map(lambda v, h, i, j: v * (h + 1)).to_dense(), a * torch.arange(1, H + 1)[:, None, None])


@pytest.mark.parametrize("name", FORMATS)
def test_a_pattern_below_a_batch_shares_its_arrays(name):
    pattern = lacis.Pattern.from_mask(sparse(I, J) != 0, FORMATS[name])
    heads = pattern.batched([H], "h")
    shared = {t.data_ptr() for t in pattern.storage.values()}
    assert heads.format == format_of(name) and {t.data_ptr() for t in heads.storage.values()} == shared
    assert pattern.batched([H], "h") is heads and torch.equal(heads.to_mask(), pattern.to_mask().expand(H, I, J))
    if name == "csr":
        inner, outer = pattern.derived(companion(Csr(), [1]).text), heads.derived(companion(heads.format, [2]).text)
        assert [t.data_ptr() for t in outer.values()] == [t.data_ptr() for t in inner.values()]


def test_verbs_axes_and_widths():
    with lacis.iter(dim=4) as (B, G, R, C):
        levels = [R.level(), C.compress().level()]
    a = sparse(2, 3, 4, 5)
    assert torch.equal(lacis.pack(a, lacis.Format.of([B.batch().level(), G.batch().level(), *levels])).to_dense(), a)
    two = lacis.pack(a, "(b, g, r, c) -> (g : batch, b : batch, r : dense, c : compressed)")
    assert two.values.shape[:2] == (3, 2) and torch.equal(two.to_dense(), a)
    assert lacis.pack(torch.zeros(0, 4, 5), Csr().batched("h")).values.shape == (0, 0)


def test_an_entry_that_is_there_twice_has_two_places():
    places = [[0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]]
    coo = torch.sparse_coo_tensor(places, torch.ones(4), (2, 2, 2), check_invariants=True)
    packed = lacis.pack(coo, Coo().batched("h")).validate()
    assert packed.values.tolist() == [[1, 1, 1], [0, 0, 1]] and torch.equal(packed.to_dense(), coo.to_dense())


PRODUCTS = {"hij,hjk->hik": "hjk", "hij,hik->hjk": "hik", "hij,jk->hik": "jk", "hij,hjk->ik": "hjk", "hij,hj->i": "hj"}


def product(name, expression, dtype=torch.float64, seed=0, target="auto", **options):
    sizes = {"h": H, "i": I, "j": J, "k": K}
    a = sparse(H, I, J, seed=seed, dtype=dtype)
    x = dense(*(sizes[letter] for letter in PRODUCTS[expression]), dtype=dtype)
    packed = lacis.pack(a, format_of(name))
    values = {n: v.requires_grad_() for n, v in packed.values_by_part.items()}
    x.requires_grad_()
    y = lacis.einsum(expression, PackedTensor(packed.pattern, values), x, target=target, **options)
    return a, x, y, packed, values


CASES = [(name, expression) for name in FORMATS for expression in PRODUCTS]


@pytest.mark.parametrize("name, expression", mostly_long(CASES, CASES[0]))
def test_products_and_their_gradients(name, expression):
    a, x, y, packed, values = product(name, expression)
    expected = torch.einsum(expression, a.double(), x.detach())
    close(y.detach(), expected)
    arrived = dense(*expected.shape, seed=7, dtype=torch.float64)
    found = torch.autograd.grad(y, [*values.values(), x], arrived)
    own, other, output = expression.replace("->", ",").split(",")
    close(found[-1], torch.einsum(f"{own},{output}->{other}", a, arrived))
    at_entries = torch.einsum(f"{other},{output}->{own}", x.detach(), arrived)
    gradients = PackedTensor(packed.pattern, dict(zip(values, found[:-1])))
    gradients.validate()  # padding stays 0
    close(gradients.to_dense(), at_entries.expand(H, I, J) * packed.pattern.to_mask())


FORMS = {"dcsr": "list", "coo": "share", "push": "push", "sell": "permute", "csc": "companion", "csr": "locate"}


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("name, form", FORMS.items())
def test_every_owner_form_has_a_batch(name, form, target):
    a, x = sparse(H, I, J), dense(H, J, K)
    asked = [steps.Own("0", form)] if form in ("push", "share") else []
    packed = lacis.pack(a, format_of(name))
    kernel = lacis.compile("hij,hjk->hik", packed, x, target=target, steps=asked)
    own = [step.form for step in kernel.steps if isinstance(step, steps.Own)]
    assert (own or ["locate"]) == [form]
    if target == "cpu":
        close(lacis.einsum("hij,hjk->hik", packed, x, steps=asked), torch.einsum("hij,hjk->hik", a, x))


@pytest.mark.long
def test_forms_need_each_copy_alone():
    packed = lacis.pack(sparse(H, I, J), format_of("dcsr"))
    why = "its values are added up over h, around the positions of the pattern"
    for form in ("push", "share"):
        with pytest.raises(lacis.CompileError, match=why):
            lacis.compile("hij,hjk->ik", packed, dense(H, J, K), steps=[steps.Own("0", form)])
    kernel = lacis.compile("hij,hjk->ik", packed, dense(H, J, K))
    assert [step.form for step in kernel.steps if isinstance(step, steps.Own)] == ["list"]
    both = lacis.pack(sparse(H, I, J), format_of("sum"))
    with pytest.raises(lacis.CompileError, match="its values are those of a batch, added up around the rows"):
        lacis.compile("hij,hjk->ik", both, dense(H, J, K), steps=[steps.Own("0", "classes")])


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_sampled_products(name):
    pattern = lacis.Pattern.from_mask(sparse(I, J) != 0, FORMATS[name])
    q, k = dense(H, I, K, dtype=torch.float64).requires_grad_(), dense(H, J, K, dtype=torch.float64).requires_grad_()
    s = lacis.einsum("ij,hid,hjd->hij", pattern, q, k)
    assert s.format == format_of(name) and all(v.shape[0] == H for v in s.values_by_part.values())
    s.validate()
    expected = torch.einsum("hid,hjd->hij", q, k) * pattern.to_mask()
    close(s.to_dense().detach(), expected.detach())
    arrived = dense(H, I, J, dtype=torch.float64)
    found = torch.autograd.grad(s.to_dense(), [q, k], arrived)
    for mine, theirs in zip(found, torch.autograd.grad(expected, [q, k], arrived)):
        close(mine, theirs)


@pytest.mark.long
@pytest.mark.parametrize("name", ["csr", "blocks", "coo", "sum"])
def test_once_differentiated(name):
    """Padding counts as nothing, in the values and in their gradient."""
    _, x, _, packed, values = product(name, "hij,hjk->hik")
    with_values = lambda *mine: PackedTensor(packed.pattern, dict(zip(values, mine)))
    assert gradcheck(lambda x, *mine: lacis.einsum("hij,hjk->hik", with_values(*mine), x), (x, *values.values()))


@pytest.mark.long
@pytest.mark.parametrize("name", ["csr", "blocks", "dcsr", "bitmaps"])
@pytest.mark.parametrize("expression", ["hij,hjk->hik", "hij,hik->hjk", "hij,hi,hj->hij"])
def test_texts_assemble_for_a_gpu(name, expression):
    packed = lacis.pack(sparse(H, I, J, dtype=torch.bfloat16), format_of(name))
    sizes = {"h": H, "i": I, "j": J, "k": K}
    others = [
        dense(*(sizes[x] for x in word), dtype=torch.bfloat16) for word in expression.split("->")[0].split(",")[1:]
    ]
    for kernel in lacis.compile(expression, packed, *others, target="cuda:sm_90a").parts.values():
        options = {"stages": True} | ({"ptxas": ptxas.find(), "check_ptxas": True} if ptxas.find() else {})
        assert ".target sm_90a" in _core.compile(kernel.text, "cuda:sm_90a", options).stages["ptx"]


@pytest.mark.long
def test_shares_of_entries_go_over_each_copy():
    a, x = sparse(H, I, J), dense(H, J, K)
    asked = [steps.SplitNnz("i_j", 4), steps.Race("i_j0", "order")]
    packed = lacis.pack(a, format_of("csr"))
    close(lacis.einsum("hij,hjk->hik", packed, x, steps=asked), torch.einsum("hij,hjk->hik", a, x))


@pytest.mark.long
def test_nan_stays_with_the_entries_of_its_copy():
    a, x = sparse(H, I, J), dense(H, J, K)
    x[1, 4] = torch.nan
    packed = lacis.pack(a, format_of("csr"))
    y = lacis.einsum("hij,hjk->hik", packed, x)
    named = packed.pattern.to_mask()[1, :, 4]
    assert torch.equal(y.isnan().any(-1)[1], named) and not y[[0, 2]].isnan().any()


@pytest.mark.long
def test_damaged_arrays_of_a_checked_kernel(monkeypatch):
    monkeypatch.setenv("LACIS_DEBUG", "1")
    a, x = sparse(H, I, J), dense(H, J, K)
    packed = lacis.pack(a, format_of("csr"))
    close(lacis.einsum("hij,hjk->hik", packed, x), torch.einsum("hij,hjk->hik", a, x))
    kernel, generator = lacis.compile("hij,hjk->hik", packed, x), torch.Generator().manual_seed(3)
    for name in ("pos2", "crd2"):
        for _ in range(20):
            storage = {n: t.clone() for n, t in packed.tensors.items()}
            at = int(torch.randint(storage[name].numel(), (), generator=generator))
            storage[name][at] = int(torch.randint(-(2**31), 2**31, (), generator=generator))
            with pytest.raises(DataError, match=f"'{name}' at"):
                PackedTensor.from_storage(packed.format, a.shape, storage)
            array, kept = packed.storage[name], packed.storage[name][at].item()
            array[at] = storage[name][at]
            try:  # the launch alone: it tells what it asked for, or the number changed nothing
                library.einsum([x], kernel.arrays(packed), (H, I, K), kernel.key, list(a.shape))
            except DataError as error:
                assert "a checked kernel asked for element" in error.message
            array[at] = kept
    close(lacis.einsum("hij,hjk->hik", packed, x), torch.einsum("hij,hjk->hik", a, x))


@pytest.mark.long
def test_a_layer_whose_rows_share_their_columns():
    """A weight without some of its columns: values [rows, kept columns]. Padding there is none, and none appears."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(J, I), torch.nn.ReLU(), torch.nn.Linear(I, 4))
    model[0].weight.data *= torch.rand(J) < 0.5
    x, kept = torch.randn(7, J), (model[0].weight[0] != 0).sum()
    expected = model(x).detach()
    s = lacis.create_schedule(model)
    s["0.weight"].set_format("(i, j) -> (i : batch, j : compressed)")
    built = s.build()
    close(built(x).detach(), expected)
    assert built[0].weight.values.shape == (I, kept) and s.report().rows[0].padding == 0
    optimizer = torch.optim.Adam(built.parameters(), 1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        built(x).square().sum().backward()
        optimizer.step()
    packed = built[0].weight.packed()
    packed.validate()
    close(built[0](x).detach(), torch.nn.functional.linear(x, packed.to_dense().detach(), built[0].bias.detach()))


REFUSED = {
    "(h, i, j) -> (i : dense, h : batch, j : compressed)": "'h : batch' must come first",
    "(h, i, j) -> (h floordiv 2 : batch, h mod 2 : dense, i : dense, j : compressed)": "is of whole axes",
    "(h) -> (h : batch)": "has no level below it",
    "(h, i, j) -> ((h, i) : batch, j : compressed)": "is of several axes: write a level 'batch' for each of them",
}


@pytest.mark.parametrize("text, why", REFUSED.items())
def test_what_a_batch_is_not(text, why):
    with pytest.raises(FormatError, match=why):
        lacis.Format.parse(text)


def test_sums_share_a_batch():
    with pytest.raises(FormatError, match="part 'rest' has values for another batch than part 'short'"):
        decompose(short=(Csr().batched("h"), nnz("i") < 4), rest=Coo(3))
    with pytest.raises(FormatError, match="the rule of part 'a' looks at 'h', whose coordinates share one pattern"):
        decompose(a=(Csr().batched("h"), nnz("h") < 4), b=Csr().batched("h"))


def test_storage_of_another_shape_and_layout():
    packed = lacis.pack(sparse(H, I, J), format_of("csr"))
    with pytest.raises(DataError, match=r"'values' must have shape \[3, 'slots'\], not"):
        PackedTensor.from_storage(packed.format, packed.shape, packed.storage, packed.values.T)
    with pytest.raises(FormatError, match="torch's batched layouts have coordinates for each matrix"):
        packed.to_torch()
