# SPDX-License-Identifier: Apache-2.0
"""Packed models in the loops of others: transformers' Trainer with its checkpoints, and Accelerate."""

import pytest
import torch

import lacis

transformers = pytest.importorskip("transformers")
accelerate = pytest.importorskip("accelerate")
hf = pytest.importorskip("lacis.hf")

SIZES = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=50)


def scheduled(sparsifier):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**SIZES))
    s = lacis.create_schedule(model, target="eager")
    s.match(r".*proj\.weight").sparsify(sparsifier).set_format(lacis.Csr)
    return s.build(), s


def built():
    return scheduled(lacis.Magnitude(0.8))[0]


def trainer(model, folder, callbacks=()):
    options = dict(per_device_train_batch_size=4, learning_rate=1e-2, report_to=[], use_cpu=True, disable_tqdm=True)
    said = transformers.TrainingArguments(output_dir=folder, max_steps=6, save_steps=3, logging_steps=1, **options)
    data = [{"input_ids": torch.arange(12) + n, "labels": torch.arange(12) + n} for n in range(16)]
    return transformers.Trainer(model, said, train_dataset=data, callbacks=list(callbacks))


def losses(trained):
    return [row["loss"] for row in trained.state.log_history if "loss" in row]


def test_trainer_trains_and_resumes(tmp_path):
    model = built()
    values = [p for n, p in model.named_parameters() if n.endswith("values")]
    first = trainer(model, tmp_path)
    first.train()
    assert losses(first)[-1] < losses(first)[0] and all(p.grad is None or p.grad.shape == p.shape for p in values)
    assert "model.layers.0.mlp.up_proj.weight.values" in first.get_decay_parameter_names(model)  # it goes by name
    again = built()
    second = trainer(again, tmp_path)
    second.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert losses(second) == losses(first)
    for mine, theirs in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_registered_model_has_checkpoints_that_load(tmp_path):
    model = hf.register(built())
    trainer(model, tmp_path).train()
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint-6")
    for mine, theirs in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    more = trainer(again, tmp_path / "more")
    more.train()
    assert losses(more)[-1] < losses(more)[0]


def test_accelerate_trains_as_plain_torch_and_resumes(tmp_path):
    x = torch.arange(24).reshape(2, 12)

    def steps(model, optimizer, backward):
        for _ in range(3):
            optimizer.zero_grad()
            backward(model(x, labels=x).loss)
            optimizer.step()

    plain, model = built(), built()
    steps(plain, torch.optim.AdamW(plain.parameters(), lr=1e-2), lambda loss: loss.backward())
    accelerator = accelerate.Accelerator(cpu=True)
    wrapped, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
    steps(wrapped, optimizer, accelerator.backward)
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    accelerator.save_state(tmp_path)
    expected = [p.detach().clone() for p in model.parameters()]
    steps(wrapped, optimizer, accelerator.backward)
    accelerator.load_state(tmp_path)
    assert all(torch.equal(mine, was) for mine, was in zip(model.parameters(), expected, strict=True))
    assert accelerator.unwrap_model(wrapped) is model


POLICIES = {
    "ramp": lambda: lacis.Magnitude(lacis.Ramp(0.0, 0.8, range(0, 6, 2))),
    "movement": lambda: lacis.Movement(lacis.Ramp(0.0, 0.8, range(0, 6, 2))),
    "rigl": lambda: lacis.Regrow(0.8, range(0, 6, 2), grow="gradient"),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_patterns_change_in_a_trainer_and_it_resumes(policy, tmp_path):
    trained = []
    for start in (None, str(tmp_path / "checkpoint-3")):
        model, s = scheduled(POLICIES[policy]())
        before = s["model.layers.0.mlp.up_proj.weight"].packed.pattern.to_mask()
        callback = hf.UpdatesCallback(s)
        run = trainer(model, tmp_path, [callback])
        run.train(resume_from_checkpoint=start)
        after = s["model.layers.0.mlp.up_proj.weight"].packed.pattern.to_mask()
        assert callback.updates.count == 6 and not torch.equal(before, after)
        assert int(after.sum()) == round(0.2 * after.numel())
        trained.append((losses(run), [p.detach().clone() for p in model.parameters()]))
    assert trained[0][0] == trained[1][0] and all(map(torch.equal, trained[0][1], trained[1][1]))


def test_a_checkpoint_without_the_updates_is_refused(tmp_path):
    model, _ = scheduled(POLICIES["ramp"]())
    trainer(model, tmp_path).train()
    again, s = scheduled(POLICIES["ramp"]())
    with pytest.raises(lacis.DataError, match="training goes on at step 3, and .*lacis_updates.pt' is not there"):
        trainer(again, tmp_path, [hf.UpdatesCallback(s)]).train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


def test_accelerate_saves_the_updates(tmp_path):
    x, states = torch.arange(24).reshape(2, 12), []
    model, s = scheduled(POLICIES["ramp"]())
    accelerator = accelerate.Accelerator(cpu=True)
    wrapped, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
    updates = s.attach(optimizer.optimizer)
    accelerator.register_for_checkpointing(updates)

    def steps(count):
        for _ in range(count):
            accelerator.backward(wrapped(x, labels=x).loss)
            optimizer.step()
            updates.step()
            optimizer.zero_grad()
        states.append({name: tensor.clone() for name, tensor in model.state_dict().items()})

    steps(3)
    accelerator.save_state(tmp_path)
    steps(3)
    accelerator.load_state(tmp_path)
    assert updates.count == 3
    steps(3)
    assert states[1].keys() == states[2].keys() and all(torch.equal(states[1][n], states[2][n]) for n in states[1])
