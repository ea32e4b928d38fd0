# SPDX-License-Identifier: Apache-2.0
"""Runs a model on the example of `build`, to see which modules it calls and with what."""

from __future__ import annotations

import torch


def run_example(model, notes: dict, args: tuple, kwargs: dict) -> None:
    """Run the model, and before each call of a module in `notes` its `note(module, inputs)`.

    The model runs as in inference, so that neither statistics of a batch nor random numbers move on.
    """
    modes = [(module, module.training) for module in model.modules()]
    hooks = [module.register_forward_pre_hook(note) for module, note in notes.items()]
    try:
        model.eval()
        with torch.no_grad():
            model(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes:
            module.training = mode
