# SPDX-License-Identifier: Apache-2.0
"""Level kinds beyond the first ones: packed, read, validated, multiplied and differentiated, against float64 dense."""

import types

import expressions
import lacis
import pytest
import torch
from hypothesis import given, settings
from lacis.errors import DataError, FormatError
from lacis.formats import Format
from lacis.packing import PackedTensor, pack
from lacis.runtime.check_kind import _check_search as check_search
from strategies import mostly_long, sparse, tensors

KINDS = {
    "ragged": "(i, j) -> (i : dense, j : ragged)",
    "ragged above": "(i, j) -> (i : ragged, j : dense)",
    "structured": "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<4>)",
    "structured of 3": "(i, j) -> (i : dense, j floordiv 3 : dense, j mod 3 : structured<3>)",
    "structured last": "(i, j) -> (j floordiv 4 : dense, i : dense, j mod 4 : structured<4>)",
    "bitmap": "(i, j) -> (i : dense, j : bitmap)",
    "bitmap of blocks": str(lacis.Bitmap(4, 8)),
    "bitmap with room": "(i, j) -> (i : dense, j : fixed*bitmap<40>)",
    "bitmap of all": "(i, j) -> (i : dense, j : full*bitmap)",
    "bitmap of rows": "(i, j) -> (i : full*bitmap, j : dense)",
    "bitmap of rows, packed": "(i, j) -> (i : full*bitmap, j : packed<?>)",
    "bitmap of both": "(i, j) -> ((i floordiv 3, j floordiv 3) : compressed, (i mod 3, j mod 3) : bitmap)",
    "delta": "(i, j) -> (i : dense, j : var*delta<8>)",
    "delta of both": "(i, j) -> ((i, j) : var*delta<8>)",
    "delta of 16 bits": "(i, j) -> (i : var*delta<8>, j : fixed*delta<?, 16>)",
    "var2": "(i, j) -> (i : dense, j : var2*crd)",
    "var2 of deltas": "(i, j) -> (j : dense, i : var2*delta<8>)",
}
OWN = [("ragged", "ij,bj->bi"), ("structured", "ij,bj->bi"), ("bitmap", "ij,bj->bi")]
OTHERS = [(name, e) for name in KINDS for e in ("ij,bj->bi", "ij,bi->bj", "ij,jk->ki", "ij,ik,jk->ij", "ij->i")]
DENSITIES = (0.0, 0.05, 0.4, 1.0)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8, deadline=None)
@given(tensor=tensors())
def test_what_is_packed_is_read_again(name, tensor):
    packed = pack(tensor, KINDS[name]).validate()
    assert torch.equal(packed.to_dense(), tensor) and packed.nnz == int((tensor != 0).sum())
    assert Format.parse(str(packed.format)) == packed.format
    again = PackedTensor.from_storage(packed.format, packed.shape, packed.tensors)
    assert torch.equal(again.to_dense(), tensor)


@pytest.mark.parametrize("name", KINDS)
def test_products_and_gradients_of_the_reference(name):
    for density in DENSITIES:
        w = sparse(9, 35, density=density, dtype=torch.float64).requires_grad_()
        packed, x = pack(w.detach(), KINDS[name]), torch.randn(3, 35, dtype=torch.float64).requires_grad_()
        y = lacis.einsum("ij,bj->bi", packed.with_values(packed.pattern.gather(w)), x, target="eager")
        torch.testing.assert_close(y, x @ w.T)
        dw, dx = torch.autograd.grad(y.square().sum(), (w, x))
        dy = 2 * y.detach()
        torch.testing.assert_close(dx, dy @ w.detach())
        torch.testing.assert_close(dw, (dy.T @ x.detach()) * (w != 0))


@pytest.mark.parametrize("name, expression", mostly_long(list(dict.fromkeys(OWN + OTHERS)), *OWN))
def test_kernels(name, expression):
    expressions.run(expression, Format.parse(KINDS[name]), torch.float32, sizes=expressions.SIZES[:5])


GRADIENTS = ["ragged"]


@pytest.mark.parametrize("name", mostly_long(KINDS, *GRADIENTS))
def test_gradients_of_kernels(name):
    mask = torch.rand(9, 35, generator=torch.Generator().manual_seed(0)) < 0.4
    w = torch.where(mask, torch.randn(mask.shape), 0)
    packed, x = pack(w, KINDS[name], mask), torch.randn(3, 35, requires_grad=True)
    values = packed.values.clone().requires_grad_()
    lacis.einsum("ij,bj->bi", packed.with_values(values), x).square().sum().backward()
    dy = 2 * x.detach().double() @ w.double().T
    torch.testing.assert_close(x.grad.double(), dy @ w.double(), atol=1e-3, rtol=1e-4)
    found = packed.with_values(values.grad).validate().to_dense()  # padding is 0
    torch.testing.assert_close(found.double(), (dy.T @ x.detach().double()) * mask, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("name", mostly_long(KINDS, "delta"))
def test_kernels_for_a_gpu(name):
    kernel = lacis.compile("ij,bj->bi", pack(torch.eye(8, 40), KINDS[name]), torch.ones(64, 40), target="cuda:sm_90a")
    assert ".visible .entry" in kernel.asm["ptx"]


def test_nothing_of_an_entry_that_is_not_there_is_read():
    """NaN of a dense operand reaches the outputs of kept entries alone."""
    x = torch.ones(2, 35)
    x[:, 7] = torch.nan
    w = torch.zeros(4, 35)
    w[0, 7], w[1, 9], w[2, 30] = 1, 2, 3
    for name in ("bitmap", "delta", "structured", "bitmap of all", "ragged"):
        found = lacis.einsum("ij,bj->bi", pack(w, KINDS[name]), x, target="eager")
        assert found.isnan().tolist() == [[True, False, False, False]] * 2, name


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1024])
def test_words_of_a_bitmap(size):
    w = torch.zeros(3, size)
    w[1, size - 1] = w[2, 0] = 5
    packed = pack(w, KINDS["bitmap"]).validate()
    words = -(-size // 32)
    bits = packed.storage["bits1"].reshape(3, words)
    assert bits[0].tolist() == [0] * words and int(bits[2, 0]) == 1
    assert int(bits[1, -1]) & 0xFFFFFFFF == 1 << (size - 1) % 32
    assert packed.storage["pos1"].tolist() == [0, 0, 1, 2] and torch.equal(packed.to_dense(), w)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bitmap", "bitmap with room", "bitmap of all"])
def test_a_bit_finds_its_position(name):
    """Every coordinate of every row is looked for: the values there, and 0 where no bit is set."""
    for size, density in ((35, 0.4), (40, 1.0), (32, 0.1), (33, 0.0)):
        w = sparse(9, size, density=density, dtype=torch.float64)
        check_search(types.SimpleNamespace(_symbol=name), "find", pack(w, KINDS[name]), w, "cpu")


def test_bit_31_under_indices_of_64_bits():
    """A word is loaded without a sign: bit 31 is one coordinate."""
    w = torch.zeros(2, 70)
    w[0, 31] = w[0, 63] = w[1, 69] = 2
    packed = pack(w, "(i, j) -> (i : compressed<pos=i64, crd=i64>, j : bitmap<pos=i64>)")
    assert packed.storage["bits1"].dtype == torch.int32
    torch.testing.assert_close(lacis.einsum("ij->i", packed, target="cpu"), w.sum(1))


def test_codes_of_a_group():
    """Codes ascend; one that does not says that no entry follows; m - 1, 0 that there is none."""
    w = torch.tensor([[0, 1, 0, 2], [0, 0, 3, 0], [0, 0, 0, 0], [4, 5, 0, 0.0]])
    packed = pack(w, lacis.TwoFour)
    assert packed.values.tolist() == [1, 2, 3, 0, 0, 0, 4, 5]
    assert [int(byte) & 255 for byte in packed.storage["code2"]] == [
        1 | 3 << 2 | 2 << 4 | 2 << 6,
        3 | 0 | 0 << 4 | 1 << 6,
    ]
    assert packed.validate().nbytes == 8 * 4 + 2
    one = pack(torch.tensor([[0, 7, 0, 0, 0, 0.0]]), lacis.NMFormat(1, 3))
    assert [int(byte) & 255 for byte in one.storage["code2"]] == [1 | 3 << 2] and one.values.tolist() == [7, 0]


def test_distances_that_need_more_bits_take_positions():
    w = torch.zeros(2, 1000)
    w[0, 254] = w[0, 255] = w[0, 765] = 1
    w[1, 0] = 1
    packed = pack(w, KINDS["delta"]).validate()
    assert [int(d) & 255 for d in packed.storage["delta1"]] == [254, 0, 255, 254, 0]
    assert packed.storage["pos1"].tolist() == [0, 4, 5] and packed.values.tolist() == [1, 1, 0, 1, 1]


def test_segments_anywhere_in_the_room():
    """Entries come and go without a change of any size: what lies between segments is no entry."""
    storage = {"lo1": [4, 0, 3], "hi1": [6, 2, 3], "crd1": [1, 2, 77, 9, 0, 3, -5]}
    storage = {name: torch.tensor(array, dtype=torch.int32) for name, array in storage.items()}
    values = torch.tensor([1.0, 2, 0, 0, 3, 4, 0])
    packed = PackedTensor.from_storage(KINDS["var2"], (3, 4), storage, values)
    w = torch.tensor([[3, 0, 0, 4], [0, 1, 2, 0], [0, 0, 0, 0.0]])
    assert torch.equal(packed.to_dense(), w) and packed.nnz == 4
    for expression in ("ij->i", "ij,j->i"):
        dense = [torch.ones(4)] * (expression.count(","))
        torch.testing.assert_close(lacis.einsum(expression, packed, *dense, target="eager"), w.sum(1))


BROKEN = [
    (
        "structured",
        "code2",
        0,
        0b11_01_10_00 - 256,
        "'code2' at [0]: a code ascends behind the one that ends its group",
    ),
    ("bitmap", "bits1", 1, -1, "'bits1' at [1]: a bit lies behind the last of 35 coordinates"),
    ("bitmap", "pos1", 1, 1, "as many bits as the level has positions must be set under each parent"),
    ("delta", "delta1", 5, -2, "'delta1' at [5]: the entry lies behind the last of the 35 coordinates of the level"),
    ("ragged", "pos1", 3, 130, "'pos1' at [2]: more than the 35 coordinates of the level follow"),
    ("var2", "hi1", 0, 99, "'hi1' at [0]: position 99 is outside of the 23 that have room"),
    ("var2", "lo1", 0, 20, "lies before that where the segment begins"),
    ("var2", "lo1", 1, 0, "belongs to the segment of another parent, too"),
]


@pytest.mark.parametrize("name, array, at, value, message", BROKEN)
def test_malformed_arrays_are_refused(name, array, at, value, message):
    packed = pack(sparse(3, 35, density=0.2), KINDS[name])
    tensors = {key: tensor.clone() for key, tensor in packed.tensors.items()}
    tensors[array][at] = value
    with pytest.raises(DataError) as error:
        PackedTensor.from_storage(packed.format, packed.shape, tensors)
    assert message in str(error.value)


def test_no_format_prunes():
    with pytest.raises(DataError, match="'structured' has width 2, but .* holds 3; "):
        pack(torch.tensor([[1, 2, 3, 0.0]]), lacis.TwoFour)
    with pytest.raises(DataError, match="has bits for 1024 coordinates at the most: block the axis"):
        pack(torch.ones(1, 1025), KINDS["bitmap"])


@pytest.mark.parametrize(
    "text, message",
    [
        ("(i, j) -> (i : dense, j : structured<2>)", "'code' needs groups of a known size: block the axis, 'j mod 4'"),
        ("(i, j) -> (i : dense, j : var*code)", "'code' needs a fixed number of entries: use 'structured<n>'"),
        (
            "(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<5>)",
            "a group of 4 coordinates does not hold 5",
        ),
        (
            "(i, j) -> (i : dense, j floordiv 256 : dense, j mod 256 : structured<1>)",
            "256 codes at the most: block the axis",
        ),
        (
            "(i, j) -> (i : dense, j floordiv 2048 : dense, j mod 2048 : bitmap)",
            "1024 coordinates at the most: block the axis",
        ),
        ("(i, j) -> (i : dense, j : fixed*bitmap<?>)", "'fixed' with 'bitmap' needs a width"),
        ("(i, j) -> (i : dense, j : var*delta<4>)", "a delta has 8 or 16 bits, not 4"),
        ("(i, j) -> (i : dense, j : full*delta<8>)", "'full' has every coordinate, there is nothing to store"),
        ("(i, j) -> (i : dense, j : var2*bitmap)", "'var2' needs an array with an element for each position"),
    ],
)
def test_pairs_that_make_no_sense(text, message):
    with pytest.raises(FormatError) as error:
        Format.parse(text)
    assert message in str(error.value)


def test_verbs():
    with lacis.iter(dim=2) as (I, J):
        outer, inner = J.block(4)
        made = {
            "j mod 4 : structured<2>": inner.keep(2),
            "i : var*delta<16>": I.delta(16),
            "j : ragged": J.ragged(),
        }
        assert {axis.level().text(("i", "j")) for axis in made.values()} == set(made)
        assert outer.bitmap().level().text(("i", "j")) == "j floordiv 4 : bitmap"
        assert outer.pack(3).bitmap().level().text(("i", "j")) == "j floordiv 4 : fixed*bitmap<3>"
        with pytest.raises(FormatError, match="a delta has 8 or 16 bits, not 7"):
            I.delta(7)
        with pytest.raises(FormatError, match="a width must be a positive integer, not 0"):
            inner.keep(0)
    assert str(lacis.NMFormat(2, 4)) == str(lacis.TwoFour()) and lacis.NMFormat(2, 4) == lacis.TwoFour()


def test_a_model_trains_in_groups_of_two():
    """Padding stays 0 over ten steps of Adam, and a state dict brings all back."""
    model = torch.nn.Sequential(torch.nn.Linear(10, 6))
    schedule = lacis.create_schedule(model, target="eager")
    schedule["0.weight"].sparsify(lacis.Magnitude(0.8)).set_format(lacis.NMFormat(4, 4))
    model = schedule.build()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(5, 10)).square().sum().backward()
        optimizer.step()
    packed = model[0].weight.packed().validate()
    assert packed.nnz == 12 and packed.slots == 6 * 3 * 4
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        model.load_state_dict({name: torch.zeros_like(t) if "values" in name else t for name, t in state.items()})
        assert not model[0].weight.to_dense().any()
        model.load_state_dict(state)
    torch.testing.assert_close(model[0].weight.to_dense(), packed.to_dense())


STEPS = {
    lacis.steps.SplitNnz("j", 32): (
        "split_nnz: loop 'j' walks coordinates that follow from those before them; they have no strips"
    ),
    lacis.steps.SplitNnz("i_j", 32): "split_nnz: level kind '.*' does not list coordinates, of which a share takes any",
    lacis.steps.Split("j", 8): "split: loop 'j' walks positions whose coordinates are not stored in order",
    lacis.steps.Unroll("j", 4, 4): (
        "unroll: loop 'j' has no 4 sums: it walks coordinates that follow from those before them, in one chain"
    ),
    lacis.steps.Pipeline("j", 2): (
        "pipeline: loop '.*j' walks coordinates that follow from those before them; nothing is known ahead"
    ),
}


@pytest.mark.parametrize("step, message", STEPS.items(), ids=lambda each: str(each)[:24])
def test_steps_that_want_any_position_by_itself(step, message):
    for name in ("bitmap", "delta"):
        with pytest.raises(lacis.CompileError, match=message):
            lacis.compile("ij,bj->bi", pack(torch.eye(8), KINDS[name]), torch.ones(3, 8), steps=[step], target="cpu")


@pytest.mark.parametrize("name", ["delta", "ragged"])
def test_an_activation_may_be_as_large_as_its_values_want(name):
    layer, x = torch.nn.Linear(8, 8), torch.randn(3, 8)
    schedule = lacis.create_schedule(torch.nn.Sequential(layer), target="eager")
    schedule["0:in0"].sparsify(lacis.Magnitude(0.5)).set_format(Format.parse(KINDS[name]))
    want = layer(x * lacis.Magnitude(0.5).mask(x))
    torch.testing.assert_close(schedule.build()(x), want)
