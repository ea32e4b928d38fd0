# SPDX-License-Identifier: Apache-2.0
"""What PyTorch puts around a model works with sparse layers: autocast, compile, export, checkpointing, DDP, ..."""

import os
import pathlib
import subprocess
import sys
import textwrap

import lacis
import pytest
import torch
from strategies import mostly_long
from torch._dynamo.utils import counters
from training import SHAPE, build, gathered, masked, values


def loss_of(model, x):
    return model(x).float().square().mean()


def grads(model, x):
    """Gradients of every parameter, by name."""
    model.zero_grad()
    loss_of(model, x).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("dtype", mostly_long([torch.bfloat16, torch.float16], torch.bfloat16))
def test_autocast(dtype):
    model, _ = build("nest")
    twin = masked(model)
    x = torch.randn(6, SHAPE[0])
    with torch.autocast("cpu", dtype):
        y, expected = model(x), twin(x)
        assert y.dtype == dtype
        with torch.no_grad():
            assert torch.equal(model(x), y)
    torch.testing.assert_close(y, expected, rtol=0.05, atol=0.02)
    y.float().sum().backward()
    expected.float().sum().backward()
    assert model[0].weight.values.grad.dtype == torch.float32
    assert model[0].weight.values.grad.shape == model[0].weight.values.shape
    dense = gathered(model[0], twin[0].weight.grad)[""]
    torch.testing.assert_close(model[0].weight.values.grad, dense, rtol=0.05, atol=0.05)


def test_float64_is_left_alone_by_autocast():
    model, _ = build("csr", dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert model[0](torch.randn(2, SHAPE[0], dtype=torch.float64)).dtype == torch.float64


def test_grad_scaler():
    model, _ = build("csc")
    twin = masked(model)
    x = torch.randn(32, SHAPE[0])
    for each in (model, twin):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                loss = (each(x) - 1).float().square().mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(each.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 2.0**10
    torch.testing.assert_close(model[0].weight.to_dense(), twin[0].weight, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("format", ["csc", "sum"])
def test_compiled_as_one_graph_forward_and_backward(format):
    """A dynamic batch, other values and another pattern of as many entries: one compilation serves all."""
    torch._dynamo.reset()
    counters.clear()
    model, _ = build(format)
    twin = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in (5, 9, 17):
        x = torch.randn(batch, SHAPE[0])
        expected = grads(model, x)
        for name, grad in grads(twin, x).items():
            torch.testing.assert_close(grad, expected[name.removeprefix("_orig_mod.")])
    with torch.no_grad():
        for tensor in values(model[0]).values():
            tensor.mul_(2)
    if format == "csc":
        packed = model[0].weight.packed()
        dense = packed.to_dense().detach().flatten()[torch.randperm(packed.shape.numel())].reshape(packed.shape)
        model[0].weight.set_packed(lacis.pack(dense, lacis.Csc))
    x = torch.randn(4, SHAPE[0])
    expected = grads(model, x)
    for name, grad in grads(twin, x).items():
        torch.testing.assert_close(grad, expected[name.removeprefix("_orig_mod.")])
    assert counters["stats"]["unique_graphs"] == 1


def test_another_number_of_entries_needs_no_compilation_where_torch_lets_parameters_change_shape():
    torch._dynamo.reset()
    counters.clear()
    model, _ = build("csr")
    with torch._dynamo.config.patch(force_parameter_static_shapes=False):
        twin = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
        for density in (0.1, 0.3, 0.5):
            dense = torch.randn(SHAPE[1], SHAPE[0]) * (torch.rand(SHAPE[1], SHAPE[0]) < density)
            model[0].weight.set_packed(lacis.pack(dense, lacis.Csr))
            x = torch.randn(4, SHAPE[0])
            expected = grads(model, x)
            torch.testing.assert_close(grads(twin, x)["_orig_mod.0.weight.values"], expected["0.weight.values"])
    assert counters["stats"]["unique_graphs"] == 1


def test_inductor_runs_a_training_step():
    torch._dynamo.reset()
    model, _ = build("nest")
    twin = torch.compile(model, fullgraph=True)
    x = torch.randn(8, SHAPE[0])
    expected = grads(model, x)
    for name, grad in grads(twin, x).items():
        torch.testing.assert_close(grad, expected[name.removeprefix("_orig_mod.")])


def test_exported_saved_loaded_and_run_in_another_process(tmp_path):
    model, _ = build("sum")
    x = torch.randn(3, SHAPE[0])
    batch = torch.export.Dim("batch")
    with torch.no_grad():
        program = torch.export.export(model.eval(), (x,), dynamic_shapes=({0: batch},))
        torch.export.save(program, tmp_path / "model.pt2")
        lacis.save_kernels(model, tmp_path / "kernels")
        wide = torch.randn(7, SHAPE[0])
        torch.save((wide, model(wide)), tmp_path / "expected.pt")
    script = f"""
        import lacis, torch
        program = torch.export.load({str(tmp_path / "model.pt2")!r})
        x, expected = torch.load({str(tmp_path / "expected.pt")!r})
        with torch.no_grad():
            assert torch.equal(program.module()(x), expected)
    """
    environment = {**os.environ, "LACIS_KERNEL_PATH": str(tmp_path / "kernels")}
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, env=environment)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing(reentrant):
    model, _ = build("csc")
    x = torch.randn(5, SHAPE[0], requires_grad=True)
    expected, x.grad = {**grads(model, x), "x": x.grad}, None
    model.zero_grad()
    y = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant)
    y.square().mean().backward()
    found = {**{name: p.grad for name, p in model.named_parameters()}, "x": x.grad}
    for name, grad in found.items():
        torch.testing.assert_close(grad, expected[name])


def test_two_processes_train_as_one(tmp_path):
    """DDP over gloo: each of two processes sees half of the batch, the gradients are those of the whole."""
    model, _ = build("sum")
    x = torch.randn(8, SHAPE[0])
    torch.save(x, tmp_path / "x.pt")
    torch.save(grads(model, x), tmp_path / "grads.pt")
    script = pathlib.Path(__file__).with_name("distributed.py")
    command = [sys.executable, str(script), str(tmp_path)]
    ranks = [subprocess.Popen([*command, str(rank)], env={**os.environ, "OMP_NUM_THREADS": "1"}) for rank in range(2)]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]


def test_a_dense_checkpoint_loads_and_trains_on():
    model, _ = build("bsr")
    dense = {name: torch.randn_like(t) for name, t in masked(model).state_dict().items()}
    model.load_state_dict(dense)
    twin = masked(model)
    mask = model[0].weight.packed().pattern.to_mask()
    assert torch.equal(twin[0].weight, dense["0.weight"] * mask)
    x = torch.randn(4, SHAPE[0])
    loss_of(twin, x).backward()
    expected = gathered(model[0], twin[0].weight.grad)[""]
    torch.testing.assert_close(grads(model, x)["0.weight.values"], expected)


def test_profiler_rows_are_named_by_the_operator():
    model, _ = build("csr")
    x = torch.randn(4, SHAPE[0])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        loss_of(model, x).backward()
    rows = {row.key: row.count for row in profile.key_averages()}
    assert rows["lacis::einsum"] == 2 + 3  # two layers forward; two of values and one of the hidden layer backward


@pytest.mark.parametrize("format", ["csr", "csc", "sum"])
def test_opcheck(format):
    """torch's own checks of an operator, on the calls of a layer."""
    model, _ = build(format)
    layer = model[0]
    x = torch.randn(3, SHAPE[0], requires_grad=True)
    storage, companions = layer._tensors(layer._arrays), layer._tensors(layer._companions)
    arguments = ([x, layer.bias], storage, [3, SHAPE[1]], layer._key, list(layer.weight.shape), companions)
    torch.library.opcheck(torch.ops.lacis.einsum.default, arguments)
    with torch.no_grad():
        operands, storage, shape, key, packed_shape, _ = arguments
        quick = ([*operands, *storage], [len(shape), *shape, *packed_shape], key)
        torch.library.opcheck(torch.ops.lacis.einsum.inference, quick, test_utils=("test_schema", "test_faketensor"))
