# SPDX-License-Identifier: Apache-2.0
"""Patterns that change while a GPU trains: captured steps see them, and no update makes the host wait."""

import copy

import lacis
import pytest
import torch
from lacis.patterns import group_rows as grouping
from lacis.patterns import hand_out as handing
from lacis.training.graph import Lane
from lacis.training.replay import Replays
from test_tile_schedules_cuda import check

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
BLOCKS = {"Csr": None, "Bsr 16": (16, 16), "Bsr 64": (64, 64)}


def build(name, policy, dtype=torch.bfloat16, **verb):
    """A layer with this policy, its schedule, and a fused optimizer that a graph may hold."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 384, device="cuda", dtype=dtype))
    s = lacis.create_schedule(model)
    handle = s["0.weight"].sparsify(policy, **verb)
    if BLOCKS[name] is not None:
        handle = handle.block(*BLOCKS[name])
    handle.set_format(lacis.Csr if BLOCKS[name] is None else lacis.Bsr)
    model = s.build()
    return model, s, torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True, capturable=True)


def step(model, optimizer, x, set_to_none=False):
    optimizer.zero_grad(set_to_none=set_to_none)
    model(x).float().square().mean().backward()
    optimizer.step()


def captured(model, optimizer, x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(model, optimizer, x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(model, optimizer, x)
    return graph


def content(model, optimizer):
    weight = model[0].weight.packed()
    state = optimizer.state[model[0].weight.values]
    dense = [weight.with_values(t.clone()).to_dense() for t in (weight.values.detach(), state["exp_avg"])]
    return [*dense, model[0].bias.detach().clone()]


def stepper(model, optimizer, x, is_captured):
    """What does a step, after three of them: the replay of a captured one, or an eager one."""
    if is_captured:
        return captured(model, optimizer, x).replay
    run = lambda: step(model, optimizer, x)
    for _ in range(3):
        run()
    return run


def poison_freed():
    """Memory that was freed holds other numbers from now on."""
    poison = [torch.full((1 << 22,), -1, dtype=torch.int32, device="cuda") for _ in range(8)]
    del poison


def require_alike(one, other):
    """Equal masks, and what training left in two runs as near as bfloat16 allows."""
    assert torch.equal(one[0], other[0])
    for a, b in zip(one[1], other[1]):
        torch.testing.assert_close(a.float(), b.float(), rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_captured_step_goes_on_through_updates(name):
    """Five updates, each followed by a replay: what eager steps make of the same updates; freed memory is poisoned."""
    policy = lacis.Regrow(0.75, range(1, 100))
    found = []
    x = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    for is_captured in (True, False):
        model, s, optimizer = build(name, policy)
        updates = s.attach(optimizer)
        run = stepper(model, optimizer, x, is_captured)
        for _ in range(5):
            run()
            assert updates.step()
            poison_freed()
        run()
        torch.cuda.synchronize()
        found.append((s["0.weight"].packed.pattern.to_mask(), content(model, optimizer)))
    require_alike(*found)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_captured_step_goes_on_while_counts_fall(name):
    """With room for all entries: each replay sees those that are left, as eager steps do, and the room stays 0."""
    rule = lacis.Magnitude if BLOCKS[name] is None else lacis.BlockMagnitude
    x, found = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16), []
    for is_captured in (True, False):
        model, s, optimizer = build(name, rule(lacis.Ramp(0.0, 0.9, range(1, 9))))
        updates = s.attach(optimizer, resize=False)
        values = model[0].weight.values
        run = stepper(model, optimizer, x, is_captured)
        for _ in range(8):
            run()
            updates.step()
            poison_freed()
        run()
        torch.cuda.synchronize()
        packed = s["0.weight"].packed
        assert packed.nnz <= 0.11 * 384 * 512 and packed.slots == 384 * 512
        _, entries = packed.pattern.part().coordinates()
        assert not values.detach().reshape(-1)[~entries].any()
        assert not optimizer.state[values]["exp_avg"].reshape(-1)[~entries].any()
        found.append((packed.pattern.to_mask(), content(model, optimizer)))
    require_alike(*found)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("grow", ["random", "gradient"])
def test_an_update_makes_nobody_wait(name, grow):
    """`Regrow`: counts are known, so nothing is asked of the device, by steps or captured in a graph."""
    model, s, optimizer = build(name, lacis.Regrow(0.75, range(1, 100), grow=grow))
    updates = s.attach(optimizer)
    x = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    for _ in range(3):
        step(model, optimizer, x)
        assert updates.step()
    step(model, optimizer, x)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(2):
            assert updates.step()
            step(model, optimizer, x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    dense = s["0.weight"].packed.to_dense().detach().double()
    check(model(x).detach(), x.double() @ dense.T + model[0].bias.detach().double())


@pytest.mark.parametrize("mode", ["ste", "masked"])
def test_entries_follow_a_dense_weight(mode):
    """Chosen anew in each call, eagerly and in a captured graph, beside the dense product under the same mask."""
    model, s, optimizer = build("Csr", lacis.Magnitude(0.75), torch.float32, master=mode)
    x = torch.randn(64, 512, device="cuda")
    graph, masks = captured(model, optimizer, x), []
    for _ in range(4):
        graph.replay()
        weight = model[0].weight.detach()
        masks.append(lacis.Magnitude(0.75)(weight))
        with torch.no_grad():
            check(model(x), x.double() @ (weight * masks[-1]).double().T + model[0].bias.double())
    assert mode == "masked" or not torch.equal(masks[0], masks[-1])


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("arguments", [{}, {"grow": "gradient"}, {"grow": "gradient", "candidates": 0.5}], ids=str)
def test_captured_updates_equal_those_by_steps(name, arguments, monkeypatch):
    """Bit by bit: the pattern, the values and the state, through seven updates, the last five of them one launch."""
    x, found = torch.randn(256, 512, device="cuda", dtype=torch.bfloat16), []
    for is_captured in (True, False):
        if not is_captured:
            monkeypatch.setattr(Replays, "ready", lambda *_: {})
        policy = lacis.Regrow(0.75, range(1, 100), initial=("uniform", 0.1), seed=3, **arguments)
        model, s, optimizer = build(name, policy)
        updates, seen = s.attach(optimizer), []
        for _ in range(7):
            step(model, optimizer, x)
            assert updates.step()
            seen += [model[0].weight.packed().pattern.to_mask(), *content(model, optimizer)]
        assert not is_captured or updates._replays._found["0.weight"].graph is not None
        model[0].weight.validate()
        found.append(seen)
    for mine, theirs in zip(*found):
        assert torch.equal(mine, theirs)
    assert not torch.equal(found[0][0], found[0][-4])


def test_a_moved_state_ends_a_captured_update():
    """An optimizer whose state was loaded lies elsewhere: its next update goes by steps, and follows entries."""
    model, s, optimizer = build("Bsr 16", lacis.Regrow(0.75, range(1, 100)))
    updates, x = s.attach(optimizer), torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    for n in range(6):
        step(model, optimizer, x)
        if n == 4:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        assert updates.step()
        state = optimizer.state[model[0].weight.values]
        mask = model[0].weight.packed().pattern.to_mask()
        assert not model[0].weight.packed().with_values(state["exp_avg"].clone()).to_dense()[~mask].any()
    model[0].weight.validate()


def test_a_capture_that_fails_leaves_torch_as_it_was():
    x = torch.ones(4, device="cuda")
    lane = Lane(x.device)
    assert lane.captured(lambda: x.add_(x.sum().item())) is None
    assert torch.randn(8, device="cuda").isfinite().all() and x.tolist() == [1.0] * 4
    graph = lane.captured(lambda: x.add_(1))
    with lane.follows():
        graph.replay()
    lane.join()
    assert x.tolist() == [2.0] * 4


@pytest.mark.parametrize("name", BLOCKS)
def test_a_compiled_layer_with_graphs_of_its_own_sees_updates(name):
    """`mode="reduce-overhead"`: torch captures graphs; updates in between, freed memory poisoned.

    A gradient is memory of such a graph, which its next replay writes: none is kept from step to step.
    """
    found, x = [], torch.randn(256, 512, device="cuda", dtype=torch.bfloat16)
    for mode in ("reduce-overhead", None):
        torch._dynamo.reset()
        model, s, optimizer = build(name, lacis.Regrow(0.9, range(1, 6), share=0.3))
        updates = s.attach(optimizer)
        run = model if mode is None else torch.compile(model, mode=mode)
        for _ in range(3):
            step(run, optimizer, x, set_to_none=True)
        for _ in range(5):
            step(run, optimizer, x, set_to_none=True)
            assert updates.step()
            poison_freed()
        step(run, optimizer, x, set_to_none=True)
        with torch.no_grad():
            check(run(x), x.double() @ model[0].weight.to_dense().double().T + model[0].bias.double())
        found.append((s["0.weight"].packed.pattern.to_mask(), content(model, optimizer)))
    require_alike(*found)


@pytest.mark.parametrize("block", [16, 32, 64])
def test_weights_of_one_size_are_updated_together(block, monkeypatch):
    """Bit by bit what steps make of each: patterns, values, states, and all that is derived; without a wait."""
    sizes, found = [(512, 384), (512, 384), (384, 512), (512, 384), (256, 320)], []
    inputs = [torch.randn(256, i, device="cuda", dtype=torch.bfloat16, requires_grad=True) for i, _ in sizes]
    for is_captured in (True, False):
        if not is_captured:
            monkeypatch.setattr(Replays, "ready", lambda *_: {})
        torch.manual_seed(1)
        linears = [torch.nn.Linear(i, o, bias=False, device="cuda", dtype=torch.bfloat16) for i, o in sizes]
        model = torch.nn.ModuleList(linears)
        s = lacis.create_schedule(model)
        policy = lacis.Regrow(0.75, range(1, 100), grow="gradient")
        s.match(r".*weight").block(block, block).sparsify(policy).set_format(lacis.Bsr)
        s.build()
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        updates = s.attach(optimizer)
        for n in range(6):
            sum(layer(x).float().square().mean() for layer, x in zip(model, inputs)).backward()
            optimizer.step()
            torch.cuda.set_sync_debug_mode("error" if n > 2 else "default")
            try:
                assert updates.step()
            finally:
                torch.cuda.set_sync_debug_mode("default")
            optimizer.zero_grad()
        counts = [each.together and each.together.count for each in updates._replays._found.values()]
        assert counts == ([3, 3, None, 3, None] if is_captured else [])
        for layer in model:
            layer.weight.validate()
        states = [t for held in optimizer.state.values() for t in held.values()]
        found.append([t.detach().clone() for t in [*model.parameters(), *model.buffers(), *states]])
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(*found, strict=True))


def test_kernels_of_patterns_answer_as_loops_on_the_host():
    """Threads of a block leave each other what they find: always the same, on lists of many rounds and of one."""
    for n, workers, most, groups in (
        (2, 132, 8, 16),
        (33, 132, 4, 16),
        (8, 132, 8, 16),
        (300, 132, 1, 1),
        (700, 7, 3, 2),
    ):
        cost = torch.randint(1, 40, (n,)).double().sort(descending=True).values
        cost[n - n // 5 :] = -1.0
        want = handing.hand_out(cost, workers=workers, tiles=range(1, most + 1), groups=groups)
        for _ in range(20):
            got = handing.hand_out(cost.cuda(), workers=workers, tiles=range(1, most + 1), groups=groups)
            assert torch.equal(got.cpu(), want)
    for rows, steps, panels in ((12, 12, 2), (48, 12, 8), (128, 100, 22), (700, 40, 9)):
        present = torch.rand(rows, steps) < 0.2
        want = grouping.group_rows(present, panels)
        for _ in range(20):
            assert torch.equal(grouping.group_rows(present.cuda(), panels).cpu(), want)
