# SPDX-License-Identifier: Apache-2.0
"""Patterns that change under transformers' `Trainer`."""

from __future__ import annotations

import pathlib

import torch
from transformers import TrainerCallback

from ..errors import DataError

_FILE = "lacis_updates.pt"  # beside the model and the optimizer of a checkpoint


class UpdatesCallback(TrainerCallback):
    """Attaches a built schedule to the optimizer of a `Trainer`, and steps its updates after each step of that.

    The state of the updates is saved in each checkpoint (`lacis_updates.pt`), and read again where training goes on
    from one: `resume_from_checkpoint` of the trainer's arguments, else the checkpoint of that step in `output_dir`;
    `resume_from` names another folder. `options` are those of `Schedule.attach`; in a group of ranks `group` is all of
    them unless they say otherwise. `updates` is the `lacis.Updates` from the beginning of training on.

    >>> import lacis, torch, transformers
    >>> sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=32)
    >>> model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
    >>> s = lacis.create_schedule(model, target="eager")
    >>> ramp = lacis.Ramp(0.0, 0.9, range(0, 1001, 100))
    >>> _ = s.match(r".*dense.weight").sparsify(lacis.Magnitude(ramp)).set_format(lacis.Csr)
    >>> arguments = dict(model=s.build(), callbacks=[UpdatesCallback(s)])  # of transformers.Trainer, with accelerate

    Raises `DataError` where a checkpoint to go on from has no state of updates, and what `Schedule.attach` raises.
    """

    def __init__(self, schedule, resume_from=None, **options):
        self.schedule, self.resume_from, self.options, self.updates = schedule, resume_from, options, None

    def on_train_begin(self, args, state, control, optimizer=None, **_):
        options = dict(self.options)
        if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            options.setdefault("group", torch.distributed.group.WORLD)
        self.updates = self.schedule.attach(getattr(optimizer, "optimizer", optimizer), **options)
        if state.global_step:
            self.updates.load_state_dict(torch.load(self._saved(args, state), weights_only=True))

    def on_optimizer_step(self, args, state, control, **_):
        self.updates.step()

    def on_save(self, args, state, control, **_):
        if state.is_world_process_zero:
            torch.save(self.updates.state_dict(), _folder(args, state) / _FILE)

    def _saved(self, args, state) -> pathlib.Path:
        """The file of the checkpoint that training goes on from."""
        said = self.resume_from or args.resume_from_checkpoint
        file = (pathlib.Path(said) if isinstance(said, (str, pathlib.Path)) else _folder(args, state)) / _FILE
        if not file.exists():
            raise DataError(
                f"training goes on at step {state.global_step}, and '{file}' is not there, which the checkpoint of "
                "UpdatesCallback has; give UpdatesCallback(schedule, resume_from=folder)"
            )
        return file


def _folder(args, state) -> pathlib.Path:
    return pathlib.Path(args.output_dir) / f"checkpoint-{state.global_step}"
