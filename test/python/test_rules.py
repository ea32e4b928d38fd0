# SPDX-License-Identifier: Apache-2.0
"""Rules that split a sum as Python values, and the predefined formats that are made of them or of few words."""

import lacis
import pytest
import torch
from lacis import Csr, Dcsr, Ell, decompose, digit, nnz
from lacis.formats import Format
from lacis.formats.companion import companion
from strategies import mostly_long, sparse

SPLIT = decompose(short=(Csr, nnz("i") < 5), wide=(Ell, digit("j") // 4 % 2 == 1), rest=lacis.Csc)


@pytest.mark.parametrize(
    "rule, text",
    [
        (nnz("i") < 256, "nnz(i) lt 256"),
        (256 > nnz("i"), "nnz(i) lt 256"),
        (nnz("i") <= 255, "nnz(i) lt 256"),
        (nnz("i", "j floordiv 4") > 3, "nnz(i, j floordiv 4) ge 4"),
        (nnz(digit("i") // 16) == 0, "nnz(i floordiv 16) eq 0"),
        ((digit("j") // 64 == 2) & (nnz("i") >= 4), "j floordiv 64 eq 2 and nnz(i) ge 4"),
    ],
)
def test_rules_are_text_that_is_read_back(rule, text):
    assert str(rule) == text and rule == lacis.Rule(text)
    sum = decompose(a=(Csr, rule), b=Dcsr)
    assert f"when {text}," in str(sum) and Format.parse(str(sum)) == sum == decompose(a=(Csr, text), b=Dcsr)


def test_rules_say_which_part_takes_an_entry():
    dense = sparse(13, 21)
    packed = lacis.pack(dense, SPLIT)
    count = (dense != 0).sum(1, keepdim=True).expand(13, 21)
    wide = (torch.arange(21) // 4 % 2 == 1).expand(13, 21)
    short, wide = (count < 5), (count >= 5) & wide
    for name, mine in (("short", short), ("wide", wide), ("rest", ~short & ~wide)):
        assert packed.of_part(name).to_dense().equal(torch.where(mine, dense, 0))


def test_counts_of_many_and_of_few_coordinates_agree():
    """The same rows, once among so many others that these are not counted one by one."""
    dense = sparse(40, 30, seed=5)
    rule = decompose(short=(Csr, nnz("i", "j floordiv 3") < 2), long=Dcsr)
    far = torch.sparse_coo_tensor(dense.nonzero().T * torch.tensor([[50021], [1]]), dense[dense != 0], (2**21, 30))
    near, far = (
        lacis.pack(dense, rule),
        lacis.pack(far, decompose(short=(Dcsr, nnz("i", "j floordiv 3") < 2), long=Dcsr)),
    )
    for name in ("short", "long"):
        assert near.values[name].equal(far.values[name]) and len(near.values[name])


def test_rows_that_stay_whole():
    by_rows = decompose(short=(Csr, (nnz("i") < 5) & (digit("i") % 2 == 0)), long=Dcsr)
    assert by_rows.keeps_whole([0]) and by_rows.keeps_whole([0, 1]) and not by_rows.keeps_whole([1])
    assert not SPLIT.keeps_whole([0]) and SPLIT.keeps_whole([0, 1])
    assert not decompose(ell=Ell(2), rest=lacis.Coo).keeps_whole([0, 1])
    assert lacis.Hyb(1, 3).keeps_whole([0]) and not lacis.Hyb(2, 3, columns=8).keeps_whole([0])


def test_groups_of_parts_that_share_no_row():
    strips = [["s0_b0", "s0_b1", "s0_long"], ["s1_b0", "s1_b1", "s1_long"]]
    assert lacis.Hyb(2, 1, columns=8).row_groups(0) == strips
    assert lacis.Hyb(2, 1, columns=8).row_groups(1) == [] and by_rule(nnz("i", "j") < 3).row_groups(0) == []
    left = digit("j") < 4
    assert (
        by_rule(left & (nnz("i") < 3)).row_groups(0) == by_rule((nnz("i") < 3) & left).row_groups(0) == [["a"], ["b"]]
    )
    assert by_rule(nnz("i") < 3).row_groups(0) == [["a", "b"]] and by_rule(nnz("j") < 3).row_groups(0) == []


def by_rule(rule):
    return decompose(a=(Csr, rule), b=Dcsr)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nnz(), "nnz needs the axes"),
        (lambda: nnz(0), "an axis goes by its letter"),
        (lambda: nnz("i") < 2.5, "with a whole number, not 2.5"),
        (lambda: nnz("i") != 4, "cannot say that 'nnz.i.' is not 4"),
        (lambda: 2 < nnz("i") < 4, "join rules with &"),
        (lambda: digit("i") // 0, "block size must be a positive integer"),
        (lambda: decompose(a=(Csr, nnz("q") < 4), b=Csr), "no axis named 'q', the axes are i, j"),
        (lambda: decompose(a=(Csr, nnz("i")), b=Csr), "compare it with a number, nnz.i. < 4"),
        (lambda: decompose(a=(Csr, "nnz(i) lt 4 or"), b=Csr), "expected the end"),
        (lambda: decompose(a=(Csr, nnz("i") < 4, 1), b=Csr), "a pair of a format and a rule, not 3"),
        (lambda: decompose(a=Csr, b=(Csr, nnz("i") < 4)), "part 'a' takes every entry.*or a rule"),
        (lambda: decompose(a=(Csr, nnz("i") < 4), b=(Csr, nnz("i") < 4)), "the last part 'b' takes what is left"),
        (lambda: lacis.Hyb(0, 3), "'c' must be a whole number from 1 on"),
        (lambda: lacis.Hyb(2, 3).parts, "has no strips before it has a tensor"),
        (lambda: lacis.pack(torch.ones(2, 2, 2), lacis.Hyb(2, 3)), "Hyb has 2 axes, the tensor has 3"),
        (lambda: lacis.pack(torch.eye(2), lacis.GroupCoo), "'GroupCoo' needs its g"),
        (lambda: lacis.GroupCoo(0), "a width must be a positive integer"),
        (lambda: lacis.Csb(0), "a block size must be a positive integer"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(lacis.FormatError, match=message):
        make()


def test_a_schedule_keeps_rules(tmp_path):
    def schedule():
        return lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(21, 13)), target="eager")

    s = schedule()
    s["0.weight"].sparsify(lacis.Random(0.7, 0)).decompose(short=(Csr, nnz("i") < 6), long=Dcsr)
    assert "decompose(short=(Csr, 'nnz(i) lt 6'), long=Dcsr)" in str(s)
    s.save(tmp_path / "schedule.json")
    replayed = lacis.load_schedule(tmp_path / "schedule.json", torch.nn.Sequential(torch.nn.Linear(21, 13)))
    assert (
        replayed["0.weight"].steps[-1] == s["0.weight"].steps[-1]
        and replayed["0.weight"].format == s["0.weight"].format
    )
    with pytest.raises(lacis.FormatError, match="decompose: no axis named 'q'"):
        schedule()["0.weight"].decompose(short=(Csr, nnz("q") < 6), long=Dcsr)
    x = torch.randn(3, 21)
    model = s.build(x)
    expected = x @ model[0].weight.to_dense().T + model[0].bias
    torch.testing.assert_close(model(x), expected)


def test_a_schedule_keeps_strips(tmp_path):
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(21, 13)), target="eager")
    s["0.weight"].set_format(lacis.Hyb(2, 2))
    assert list(s["0.weight"].format.parts) == [f"s{n}_{b}" for n in range(2) for b in ("b0", "b1", "b2", "long")]
    s.save(tmp_path / "schedule.json")
    replayed = lacis.load_schedule(tmp_path / "schedule.json", torch.nn.Sequential(torch.nn.Linear(21, 13)))
    assert replayed["0.weight"].format == s["0.weight"].format and "Hyb(c=2, k=2)" in str(replayed)


def buckets(dense, c, k):
    """(rows, padded columns) of each bucket of each strip, as the algorithm of hyb(c, k) has them, with loops."""
    width = -(-dense.shape[1] // c)
    found = {}
    for strip in range(c):
        for b in range(k + 2):
            found[strip, b] = []
        for row in range(dense.shape[0]):
            columns = [j for j in range(strip * width, min((strip + 1) * width, dense.shape[1])) if dense[row, j]]
            b = max(len(columns) - 1, 0).bit_length()
            for start in range(0, len(columns), 2 ** min(b, k)):
                cut = columns[start : start + 2 ** min(b, k)]
                found[strip, min(b, k + 1)].append((row, cut + [-1] * (2 ** min(b, k) - len(cut))))
    return found


@pytest.mark.parametrize("c, k", [(1, 2), (3, 1), (2, 0)])
def test_hyb_has_the_buckets_of_its_paper(c, k):
    dense = sparse(40, 22, density=0.2, seed=7)
    dense[5] = 1.0
    packed = lacis.pack(dense, lacis.Hyb(c, k)).validate()
    assert packed.to_dense().equal(dense)
    for (strip, b), rows in buckets(dense, c, k).items():
        name = f"{f's{strip}_' if c > 1 else ''}{'long' if b > k else f'b{b}'}"
        assert packed.storage[f"{name}.crd0"].tolist() == [row for row, _ in rows]
        assert packed.storage[f"{name}.crd1"].tolist() == [columns for _, columns in rows]


def test_rows_of_a_padded_list_are_of_one_part():
    """Padding of a list is no row that two parts have."""
    parts = ("(i, j) -> (i : packed<?>, j : compressed)", "(i, j) -> (i : packed<40>, j : packed<?>)")
    few, rest = (f"#lacis.format<{part}>" for part in parts)
    format = Format.parse(f"#lacis.sum<few = {few} when i mod 3 lt 2, rest = {rest}>")
    for dense in (sparse(17, 23, seed=4), torch.zeros(0, 5)):
        assert lacis.pack(dense, format).validate().to_dense().equal(dense)


class Narrow(Format):
    def __init__(self, pos=None, crd="i16", dense=False):
        with lacis.iter(dim=2) as (I, J):
            self.indices = [I.widths(pos="i8") if dense else I, J.widths(pos, crd).compress()]


def test_widths_are_a_verb():
    assert Narrow() == Format.parse("(i, j) -> (i : dense, j : compressed<crd=i16>)")
    storage = lacis.pack(sparse(9, 200), Narrow("i64", "i16")).storage
    assert storage["pos1"].dtype == torch.int64 and storage["crd1"].dtype == torch.int16
    assert {t.dtype for name, t in lacis.pack(sparse(9, 200), lacis.Csb(128)).storage.items() if "crd" in name} == {
        torch.int8
    }
    assert "crd=i16" in str(lacis.Csb(129)) and "crd" not in str(lacis.Csb(2**16))
    with pytest.raises(lacis.FormatError, match="'crd' must be an integer type.*not 16"):
        Narrow(crd=16)
    with pytest.raises(lacis.FormatError, match="'dense' has no array 'pos'"):
        Narrow(dense=True).levels
    with pytest.raises(lacis.FormatError, match="'crd1' does not fit into i8"):
        lacis.pack(torch.ones(2, 200), Narrow(crd="i8"))


def test_widths_of_a_dense_axis_are_those_of_its_companions():
    with lacis.iter(dim=2) as (I, J):
        format = Format.of([I.widths(crd="i8").level(), J.widths(crd="i16").compress().level()])
    assert format == Format.parse("(i, j) -> (i : dense<crd=i8>, j : compressed<crd=i16>)")
    by_columns = companion(format, [1])
    arrays = lacis.pack(sparse(128, 9), format).derived(by_columns.text)
    assert by_columns.levels[1].coordinate.crd == "i8" and arrays["crd1"].dtype == torch.int8
    assert arrays["crd1"].max() == 127
    with pytest.raises(lacis.FormatError, match="'i : dense<crd=i8>' has 129 coordinates, which do not fit into i8"):
        lacis.pack(sparse(129, 9), format)


NAMED = [lacis.GroupCoo(4), lacis.SrBcrs(8), lacis.Csb(16), Narrow(), lacis.Hyb(1, 2), SPLIT]


@pytest.mark.parametrize("target", mostly_long(["eager", "cpu"], "eager"))
@pytest.mark.parametrize("format", NAMED, ids=lambda format: type(format).__name__)
def test_products(format, target):
    dense, x = sparse(33, 39, seed=3), torch.randn(39, 5)
    packed = lacis.pack(dense, format)
    found = lacis.einsum("ij,jk->ik", packed.validate(), x, target=target)
    torch.testing.assert_close(found.double(), dense.double() @ x.double(), rtol=1e-5, atol=1e-5)
    assert packed.to(Csr).to_dense().equal(dense) and lacis.pack(dense, Csr).to(format).to_dense().equal(dense)
