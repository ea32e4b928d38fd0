# SPDX-License-Identifier: Apache-2.0
"""Sparsifiers that look at inputs, against the methods written out, block by block too."""

import lacis
import pytest
import torch


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.up, self.down = torch.nn.Linear(size, 2 * size), torch.nn.Linear(2 * size, size)

    def forward(self, x, scale):
        return (x + scale * self.down(torch.relu(self.up(x))),)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = torch.nn.Linear(6, 16), torch.nn.ModuleList([Block(16), Block(16)])
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, scale=0.5):
        x = self.drop(self.first(x))
        for block in self.blocks:
            x = block(x, scale)[0]
        return x


NAMES = [f"blocks.{n}.{name}.weight" for n in range(2) for name in ("up", "down")]


def make():
    torch.manual_seed(0)
    return Model().double()


def batches():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(3, 8, 6, generator=generator, dtype=torch.float64) for _ in range(4)]


def inputs_of(model, name):
    """All that a layer is given, [tokens, features]."""
    found = []
    layer = model.get_submodule(name.removesuffix(".weight"))
    hook = layer.register_forward_pre_hook(lambda _, args: found.append(args[0].flatten(0, -2)))
    with torch.no_grad():
        for batch in batches():
            model.eval()(batch)
    hook.remove()
    return torch.cat(found)


def wanda(weight, x, share=0.5):
    scores = weight.abs() * x.norm(dim=0)
    order = scores.argsort(dim=1, stable=True)
    return torch.ones_like(weight).scatter(1, order[:, : round(share * weight.shape[1])], 0).bool(), weight


def two_of_four(weight, x):
    scores = (weight.abs() * x.norm(dim=0)).unflatten(1, (-1, 4))
    return torch.zeros_like(scores).scatter(2, scores.topk(2, dim=2).indices, 1).bool().flatten(1), weight


def sparse_gpt(weight, x, columns=8, groups=None, damp=0.01):
    """With an inverse of its own for the columns that are left, column by column."""
    weight, mask = weight.clone(), torch.ones_like(weight, dtype=torch.bool)
    products = x.T @ x
    unused = products.diagonal() == 0
    weight[:, unused] = 0
    products[unused, unused] = 1
    products += damp * products.diagonal().mean() * torch.eye(len(products))
    left = [torch.linalg.inv(products[c:, c:]) for c in range(len(products))]
    costs = torch.stack([inverse[0, 0] for inverse in left])
    for c in range(weight.shape[1]):
        step = groups or columns
        if c % step == 0:
            scores = (weight[:, c : c + step] ** 2 / costs[c : c + step]).clone()
            if groups:
                order = scores.argsort(dim=1, descending=True)[:, : groups // 2]
                mask[:, c : c + step] = torch.zeros_like(scores).scatter(1, order, 1).bool()
            else:
                kept = scores.flatten().argsort(descending=True)[: scores.numel() // 2]
                mask[:, c : c + step] = torch.zeros(scores.numel()).index_fill(0, kept, 1).bool().reshape(scores.shape)
        dropped = torch.where(mask[:, c], 0, weight[:, c])
        weight[:, c:] -= dropped[:, None] * left[c][0] / left[c][0, 0]
    return mask, weight * mask


METHODS = {
    "wanda": (lacis.Wanda(0.5), wanda),
    "wanda 2:4": (lacis.Wanda(lacis.NM(2, 4)), two_of_four),
    "SparseGPT": (lacis.SparseGPT(0.5, columns=8), sparse_gpt),
    "SparseGPT 2:4": (lacis.SparseGPT(lacis.NM(2, 4), columns=8), lambda w, x: sparse_gpt(w, x, groups=4)),
}


@pytest.mark.parametrize("blocks", [None, "blocks"])
@pytest.mark.parametrize("method", METHODS)
def test_as_the_method_written_out(method, blocks):
    sparsifier, oracle = METHODS[method]
    model, twin = make(), make()
    s = lacis.create_schedule(model, target="eager")
    s.match(r"blocks\..*weight").sparsify(sparsifier).set_format(lacis.Csr)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    s.calibrate(batches(), blocks=blocks)
    assert model.training and all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    expected = {}
    for group in [NAMES] if blocks is None else [NAMES[:2], NAMES[2:]]:
        given = {name: inputs_of(twin, name) for name in group}
        for name in group:
            expected[name] = oracle(twin.get_parameter(name).detach(), given[name])
        for name in group if blocks else ():
            twin.get_parameter(name).data = expected[name][0] * expected[name][1]
    s.build()
    for name, (mask, weight) in expected.items():
        assert torch.equal(s[name].packed.pattern.to_mask(), mask), name
        torch.testing.assert_close(s[name].packed.to_dense(), weight * mask, rtol=1e-6, atol=1e-8)


def test_batches_of_arguments_and_keywords():
    masks = []
    for wrap in (lambda x: x, lambda x: (x, 0.5), lambda x: {"x": x, "scale": 0.5}):
        s = lacis.create_schedule(make(), target="eager")
        s["blocks.1.down.weight"].sparsify(lacis.Wanda(0.5, per="tensor")).set_format(lacis.Csr)
        s.calibrate([wrap(x) for x in batches()])
        s.build()
        masks.append(s["blocks.1.down.weight"].packed.pattern.to_mask())
    assert torch.equal(masks[0], masks[1]) and torch.equal(masks[0], masks[2]) and int(masks[0].sum()) == 256


def test_what_is_refused():
    model = make()
    s = lacis.create_schedule(model, target="eager")
    s["blocks.0.up.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match="no sparsifier of the schedule reads inputs"):
        s.calibrate(batches())
    s["first.weight"].sparsify(lacis.Wanda(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.ScheduleError, match=r"'first.weight': Wanda chooses by .* call s.calibrate"):
        s.build()
    with pytest.raises(lacis.ScheduleError, match="'first.weight' is in none of the blocks of 'blocks'"):
        s.calibrate(batches(), blocks="blocks")
    with pytest.raises(lacis.ScheduleError, match="the model has no module 'layers'"):
        s.calibrate(batches(), blocks="layers")
    with pytest.raises(lacis.DataError, match="'first.weight' was given nothing"):
        s.calibrate([])
    with pytest.raises(RuntimeError):
        s.calibrate([torch.zeros(2, 5, dtype=torch.float64)])
    assert model.training
    s.calibrate(batches())
    s.build()
    with pytest.raises(lacis.ScheduleError, match=r"calibrate: the model is built already"):
        s.calibrate(batches())
    for make_one in (
        lambda: lacis.Wanda(2),
        lambda: lacis.SparseGPT(0.5, columns=0),
        lambda: lacis.SparseGPT(0.5, damp=0),
    ):
        with pytest.raises(lacis.DataError):
            make_one()
    s = lacis.create_schedule(make(), target="eager")
    s["first.weight"].sparsify(lacis.SparseGPT(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.DataError, match="'first.weight': SparseGPT: the inputs of calibrate.. are not finite"):
        s.calibrate([torch.full((2, 6), torch.nan, dtype=torch.float64)])


class Attends(torch.nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)[0]


@pytest.mark.parametrize(
    "module, name, said",
    [
        (lambda: Attends(6, 2), "in_proj_weight", "'in_proj_weight' is multiplied by its module's own forward"),
        (lambda: Attends(6, 2), "out_proj.weight", "'out_proj.weight' was given nothing; .* no call of it"),
        (
            lambda: torch.nn.Sequential(torch.nn.Conv1d(2, 4, 3)),
            "0.weight",
            "'0.weight' goes through conv1d, whose inputs are no rows",
        ),
        (
            lambda: torch.nn.Sequential(torch.nn.Embedding(9, 6)),
            "0.weight",
            "'0.weight' goes through embedding, whose inputs are no rows",
        ),
    ],
)
def test_whose_inputs_are_not_seen(module, name, said):
    s = lacis.create_schedule(module(), target="eager")
    s[name].sparsify(lacis.Wanda(0.5)).set_format(lacis.Csr)
    with pytest.raises(lacis.Error, match=f"calibrate: {said}"):
        s.calibrate([torch.randn(2, 6)])


def test_a_sparsifier_with_a_mask_may_solve_too():
    """It need not be `Calibrated`; where nobody calibrates its mask says what is kept."""

    class Twice(lacis.Sparsifier):
        def mask(self, tensor):
            return tensor > 0

        def solve(self, tensor, inputs):
            return (inputs.norms > 0).expand(tensor.shape), 2 * tensor

    x = torch.tensor([[1.0, 0.0, 3.0, 4.0]])
    for is_calibrated in (False, True):
        model = torch.nn.Sequential(torch.nn.Linear(4, 3))
        dense = model[0].weight.detach().clone()
        s = lacis.create_schedule(model, target="eager")
        s["0.weight"].sparsify(Twice()).set_format(lacis.Csr)
        if is_calibrated:
            s.calibrate([x])
        s.build()
        want = 2 * dense * (x != 0) if is_calibrated else dense * (dense > 0)
        assert torch.equal(s["0.weight"].packed.to_dense(), want)
    s = lacis.create_schedule(torch.nn.Sequential(torch.nn.Linear(4, 3)), target="eager")
    with pytest.raises(lacis.ScheduleError, match="Twice reads inputs"):
        s["0.weight"].sparsify(Twice(), master="ste").set_format(lacis.Csr)
        s.build()
