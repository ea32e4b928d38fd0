# SPDX-License-Identifier: Apache-2.0
"""`Schedule.build_from`: a model that never was dense in memory."""

from __future__ import annotations


class BuildsFrom:
    """What a schedule builds from a checkpoint of packed weights."""

    def build_from(self, checkpoint, device="cpu"):
        """Build a model on the meta device from what `state_dict()` of a model of the same schedule held.

        `checkpoint` is a state dict, or the path of one, as `torch.save` or safetensors wrote it; a file is read weight
        by weight. Entries come from there, and no sparsifier is asked; tensors of a state dict are taken as they are,
        where they lie on `device`. Dense parameters and buffers that are not on the meta device stay where the
        checkpoint has no others. Answers the model.

        >>> import lacis, torch
        >>> make = lambda: torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
        >>> def scheduled(model):
        ...     s = lacis.create_schedule(model, target="eager")
        ...     _ = s["0.weight"].sparsify(lacis.Magnitude(0.5)).set_format(lacis.Csr)
        ...     return s
        >>> model = scheduled(make()).build()
        >>> with torch.device("meta"):
        ...     again = make()
        >>> again = scheduled(again).build_from(model.state_dict())
        >>> x = torch.randn(2, 8)
        >>> torch.equal(again(x), model(x))
        True

        Raises `DataError` for names that are on one side alone, for a weight that is dense in the checkpoint, and for
        arrays that are malformed; `ScheduleError` for activations, and as `build`. Nothing has changed then.
        """
        self._require_sites("build_from")
        self._known = self.names  # those before the swap
        return self.engine.build_from(self, checkpoint, device)
