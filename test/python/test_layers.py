# SPDX-License-Identifier: Apache-2.0
"""Every layer that takes a packed weight against the dense one: results, gradients, state dicts, restore."""

import copy

import lacis
import pytest
import torch
import torch.nn.functional as F
from strategies import mostly_long

nn = torch.nn


class Product(nn.Module):
    """Parameters of its own, used as F.linear(x, w), x @ v and x @ w.T."""

    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.randn(7, 5)), nn.Parameter(torch.randn(7, 6))

    def forward(self, x):
        return torch.tanh(F.linear(x, self.w) @ self.v) + (x @ self.w.T) @ self.v


class Borrowed(nn.Module):
    """A layer's weight used past the layer, and the layer called by keyword."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 7)

    def forward(self, x):
        y = F.linear(x, self.fc.weight, bias=self.fc.bias) + self.fc(input=x)
        return y + torch.addmm(self.fc.bias, x[0], self.fc.weight.T)


class Written(Borrowed):
    """In every way that torch has for a product."""

    def forward(self, x):
        w = self.fc.weight
        y = x @ w.t() + (w @ x.mT).mT + torch.matmul(w, x[0].T).T + x[0].mm(w.transpose(1, 0)) + x[0, 0] @ w.mT
        return y + (w.T @ (x @ w.T).mT).mT @ w.T


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Bilinear(5, 4, 7)

    def forward(self, a, b):
        return self.layer(a, input2=b)


class Attention(nn.Module):
    """Self-attention and cross-attention, with and without the weights, masks and all."""

    def __init__(self, **options):
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, **options)

    def forward(self, x, y):
        mask = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        y, weights = self.layer(self.layer(x, x, x, attn_mask=mask, need_weights=False)[0], y, y)
        return y + weights.sum()


class Across(nn.Module):
    """Attention to something of another size, whose three projections are matrices apart."""

    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, kdim=6, vdim=6)

    def forward(self, x, y):
        return self.layer(x, y, y)[0]


class OfSubclass(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Tied(nn.Module):
    """A language model whose embedding is its head."""

    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(20, 12), nn.Linear(12, 20, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.emb(ids)))


def conv1d_of_transformers(rows, columns):
    return pytest.importorskip("transformers").pytorch_utils.Conv1D(columns, rows)


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 1).eval()  # where torch's fast path reads weights past their layers


csr, csc, ell, coo = (lambda h, f=f: h.set_format(f) for f in (lacis.Csr, lacis.Csc, lacis.Ell, lacis.Coo))
bsr = lambda h: h.block(4, 8).set_format(lacis.Bsr)
uneven = lambda h: h.set_format(lacis.Bsr).block(3, 5)
sum_of = lambda h: h.decompose(ell=lacis.Ell(width=4), rest=lacis.Csr)
IMAGE, TOKENS, IDS = [(2, 6, 9, 8)], [(2, 3, 5)], [torch.tensor([[0, 3, 3], [19, 5, 7]])]
CASES = {
    "conv1x1": (lambda: nn.Conv2d(6, 10, 1), "0.weight", csr, IMAGE, "conv2d"),
    "conv strided": (
        lambda: nn.Conv2d(6, 10, 3, stride=(2, 1), padding=1, dilation=2, padding_mode="reflect"),
        *("0.weight", csc, IMAGE, "conv2d"),
    ),
    "conv same": (lambda: nn.Conv2d(6, 10, 3, padding="same", bias=False), "0.weight", bsr, IMAGE, "conv2d"),
    "conv of a sum": (lambda: nn.Conv2d(6, 10, (3, 2)), "0.weight", sum_of, IMAGE, "conv2d"),
    "conv by axes": (lambda: nn.Conv2d(6, 10, 3), "0.weight", coo, IMAGE, "conv2d_taps"),
    "conv without a batch": (lambda: nn.Conv2d(6, 10, 3), "0.weight", csr, [(6, 9, 8)], "conv2d"),
    "conv1d": (lambda: nn.Conv1d(6, 10, 3, padding=2), "0.weight", ell, [(2, 6, 9)], "conv1d"),
    "conv3d": (lambda: nn.Conv3d(3, 4, 2), "0.weight", csr, [(2, 3, 4, 5, 6)], "conv3d"),
    "bilinear": (Pair, "layer.weight", coo, [(2, 3, 5), (2, 3, 4)], "bilinear"),
    "bilinear as a matrix": (Pair, "layer.weight", csr, [(2, 3, 5), (2, 3, 4)], "bilinear_matrix"),
    "embedding": (lambda: nn.Embedding(20, 12, padding_idx=3), "0.weight", csr, IDS, "embedding"),
    "embedding in ell": (lambda: nn.Embedding(20, 12), "0.weight", ell, IDS, "embedding"),
    "embedding in blocks": (lambda: nn.Embedding(20, 12), "0.weight", uneven, IDS, "embedding"),
    "tied": (Tied, "emb.weight", csr, IDS, "embedding"),
    "gpt2": (lambda: conv1d_of_transformers(5, 7), "0.weight", csr, TOKENS, "transposed_linear"),
    "subclass": (lambda: OfSubclass(5, 7), "0.weight", csr, TOKENS, "linear"),
    "product": (Product, "w", csr, TOKENS, "linear"),
    "transposed product": (Product, "v", csc, TOKENS, "transposed_linear"),
    "borrowed": (Borrowed, "fc.weight", csr, TOKENS, "linear"),
    "written": (Written, "fc.weight", csr, TOKENS, "linear"),
    "attention in": (Attention, "layer.in_proj_weight", csr, [(4, 3, 8), (5, 3, 8)], "linear"),
    "attention out": (
        lambda: Attention(add_bias_kv=True, add_zero_attn=True),
        *("layer.out_proj.weight", csr, [(4, 3, 8), (5, 3, 8)], "linear"),
    ),
    "attention across": (Across, "layer.k_proj_weight", csr, [(4, 3, 8), (5, 3, 6)], "linear"),
    "encoder": (encoder, "layers.0.linear1.weight", csr, [(4, 3, 8)], "linear"),
    "encoder's attention": (encoder, "layers.0.self_attn.in_proj_weight", csr, [(4, 3, 8)], "linear"),
}
HERE = {"conv1x1", "product"}
LATER = {"conv of a sum", "conv without a batch", "conv3d", "encoder", "subclass", "embedding in ell", "attention out"}


WHOLE = (Pair, Product, Borrowed, Attention, Across, Tied, nn.TransformerEncoder)


def model_of(make):
    torch.manual_seed(0)
    model = make()
    return model if isinstance(model, WHOLE) else nn.Sequential(model)


def build(case, target="eager", dtype=torch.float64):
    """The built model, its schedule, the dense twin with masked weights, and inputs."""
    make, name, formatted, inputs, _ = CASES[case]
    model = model_of(make).to(dtype)
    twin = copy.deepcopy(model)
    s = lacis.create_schedule(model, target=target)
    formatted(s[name].sparsify(lacis.Magnitude(0.6)))
    model = s.build()
    with torch.no_grad():
        twin.get_parameter(name).copy_(s[name].packed.to_dense().reshape(s[name].shape))
    made = [x if isinstance(x, torch.Tensor) else torch.randn(x, dtype=dtype, requires_grad=True) for x in inputs]
    return model, s, twin, made


def weight_of(model, name):
    path, _, attribute = name.rpartition(".")
    return getattr(model.get_submodule(path), attribute)


def check(model, s, twin, inputs, name, tolerance):
    y, expected = model(*inputs), twin(*inputs)
    torch.testing.assert_close(y, expected, **tolerance)
    given = torch.randn_like(y)
    y.backward(given)
    gradients = [x.grad.clone() for x in inputs if x.requires_grad]
    for x in inputs:
        x.grad = None
    expected.backward(given)
    for found, x in zip(gradients, [x for x in inputs if x.requires_grad]):
        torch.testing.assert_close(found, x.grad, **tolerance)
    dense = dict(twin.named_parameters())
    weight = weight_of(model, name)
    of_values = weight.packed().pattern.gather(dense[name].grad.reshape(weight.packed_shape))
    parts = of_values if isinstance(of_values, dict) else {"": of_values}
    expected_grads = {f"{name}.{part}.values".replace("..", "."): grad for part, grad in parts.items()}
    expected_grads.update({key: each.grad for key, each in dense.items() if key != name})
    for key, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected_grads[key], **tolerance)
    with torch.no_grad():
        torch.testing.assert_close(model(*inputs), expected.detach(), **tolerance)


CPU = mostly_long(CASES, *HERE)
EAGER = mostly_long(CASES, *(CASES.keys() - LATER))


@pytest.mark.parametrize("case", CPU)
def test_kernels(case):
    model, s, twin, inputs = build(case, "cpu", torch.float32)
    check(model, s, twin, inputs, CASES[case][1], {"rtol": 1e-4, "atol": 1e-4})


@pytest.mark.parametrize("case", EAGER)
def test_eager_and_all_around_it(case):
    """Gradients, then: a dense state dict, its own one, a copy, the report, densify and restore."""
    make, name, _, _, operator = CASES[case]
    model, s, twin, inputs = build(case)
    tolerance = {"rtol": 1e-9, "atol": 1e-9}
    check(model, s, twin, inputs, name, tolerance)
    assert tuple(weight_of(model, name).shape) == s[name].shape == tuple(twin.get_parameter(name).shape)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.mul_(1.5)
        expected = twin(*inputs)
        model.load_state_dict(twin.state_dict())
        torch.testing.assert_close(model(*inputs), expected, **tolerance)
        state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        assert name not in state and any(key.startswith(f"{name}.") for key in state)
        model.load_state_dict(state)
        torch.testing.assert_close(copy.deepcopy(model)(*inputs), expected, **tolerance)
        torch.testing.assert_close(lacis.densify(copy.deepcopy(model))(*inputs), expected, **tolerance)
        row = s.report(*inputs).rows[0]
        assert (row.name, row.operator, row.path) == (name, operator, "eager") and row.ms and row.dense_ms
        parameters = list(dict(twin.named_parameters()))
        assert list(dict(s.restore().named_parameters())) == parameters
        torch.testing.assert_close(model(*inputs), expected, **tolerance)


def test_a_tied_table_is_one_packed_weight():
    model, s, twin, inputs = build("tied")
    assert model.emb.weight is model.head.weight
    assert [row.operator for row in s.report(*inputs).rows] == ["embedding", "linear"]
    assert sum(1 for _ in model.parameters()) == 1


@pytest.mark.parametrize("case", ["product", "borrowed", "conv1x1", "attention in"])
def test_compiled_and_exported(case):
    torch._dynamo.reset()
    model, _, _, inputs = build(case, "cpu", torch.float32)
    expected = model(*inputs)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs), expected)
    torch.testing.assert_close(torch.export.export(model, tuple(inputs)).module()(*inputs), expected)


def test_compiled_before_it_ran():
    """A build makes the kernels of attention's weights, a call those of others that a model multiplies with."""
    torch._dynamo.reset()
    model, _, twin, inputs = build("attention out", "cpu", torch.float32)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs), twin(*inputs))
    model, _, _, inputs = build("borrowed", "cpu", torch.float32)
    with pytest.raises(Exception, match="no kernel yet: call the model once, then compile it"):
        torch.compile(model, fullgraph=True, backend="aot_eager")(*inputs)


def test_products_follow_the_weight_to_another_dtype():
    model, _, twin, inputs = build("product", "cpu", torch.float32)
    model(*inputs)
    x = inputs[0].detach().double()
    torch.testing.assert_close(model.double()(x), twin.double()(x))


def test_products_are_saved_and_named(tmp_path):
    model, s, _, inputs = build("product", "cpu", torch.float32)
    lacis.save_kernels(model, tmp_path)
    assert len(list(tmp_path.iterdir())) == len(s["w"].kernels) == 3
    with pytest.raises(lacis.DataError, match="linear 'w': 'values' is on the meta device"):
        model.to("meta")(inputs[0])


def test_no_entries_and_nan():
    layer = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1))
    s = lacis.create_schedule(layer, target="eager")
    s["0.weight"].sparsify(lacis.Magnitude(1.0)).set_format(lacis.Csr)
    x = torch.full((2, 3, 5, 5), torch.nan)
    y = s.build()(x)
    torch.testing.assert_close(y, layer[0].bias.detach()[:, None, None].expand(4, 5, 5).expand_as(y))


def test_a_mask_of_the_parameter_fits_its_matrix():
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    mask = torch.rand(4, 3, 3, 3) < 0.5
    s = lacis.create_schedule(model, target="eager")
    s["0.weight"].sparsify(mask).set_format(lacis.Csr)
    s.build()
    assert torch.equal(s["0.weight"].packed.pattern.to_mask(), mask.reshape(4, 27))
