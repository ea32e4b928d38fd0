# SPDX-License-Identifier: Apache-2.0
"""A CUDA graph of work that waits for nothing, on a stream of its own."""

from __future__ import annotations

import contextlib
import gc

import torch

from ..patterns.capturing import made_in_graphs


class UpdateGraph(torch.cuda.CUDAGraph):
    """Told from the graphs of users, which hold the addresses of arrays that must not move."""

    is_update = True


class Lane:
    """A stream, and the memory of the graphs that run on it one after another: their temporaries share it."""

    def __init__(self, device: torch.device):
        self.device, self.stream, self._pool = device, torch.cuda.Stream(device), torch.cuda.graph_pool_handle()

    def follows(self) -> contextlib.AbstractContextManager:
        """What is done in this context comes after all that the present stream does."""
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        return torch.cuda.stream(self.stream)

    def join(self) -> None:
        """What the present stream does from now on comes after all of this."""
        torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def captured(self, work) -> UpdateGraph | None:
        """The graph of `work`, which has not run; None where something in it cannot be captured."""
        graph, collects, is_whole = UpdateGraph(), gc.isenabled(), False
        gc.disable()  # what it frees may be another graph, which cannot be freed meanwhile
        try:
            with self.follows(), made_in_graphs():
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    work()
                finally:
                    graph.capture_end()
                    is_whole = True
        except Exception:  # eager steps say what is wrong, if anything is
            if not is_whole:
                self._recover()
            return None
        finally:
            self.join()
            if collects:
                gc.enable()
        return graph

    def _recover(self) -> None:
        """A capture that the driver ended leaves torch's generator and memory pool captured: take others."""
        self._pool = torch.cuda.graph_pool_handle()
        generator = torch.cuda.default_generators[self.device.index]
        generator.graphsafe_set_state(generator.clone_state())
