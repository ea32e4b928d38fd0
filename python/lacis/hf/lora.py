# SPDX-License-Identifier: Apache-2.0
"""Adapters of PEFT on packed layers: low-rank matrices beside a sparse base, and merged into its entries."""

from __future__ import annotations

import functools

import torch

from ..errors import DataError
from ..nn import SparseModule
from ..packing import PackedTensor
from ..runtime.einsum import einsum


def lora(config):
    """Tell a `peft.LoraConfig` how packed layers take adapters; answers the same object.

    `target_modules` names the layers ("all-linear" passes packed ones by). The registration is not kept in the files
    of an adapter: `PeftModel.from_pretrained(model, folder, config=lacis.hf.lora(LoraConfig.from_pretrained(folder)))`.

    The base may be frozen, as PEFT leaves it, or train. `merge()` adds the adapter's product at the entries of the
    base, which keeps its pattern, and drops the rest of it; `unmerge()` takes the same off again. Variants (DoRA and
    others) raise `DataError`, and so does merging the bias of an adapter into a layer that has none.

    >>> import peft  # doctest: +SKIP
    >>> model = peft.get_peft_model(model, lora(peft.LoraConfig(target_modules=["q_proj"])))  # doctest: +SKIP
    """
    config._register_custom_module({SparseModule: _sparse_lora()})
    return config


@functools.cache
def _sparse_lora():
    """The adapter layer, a class that PEFT's own is the base of."""
    from peft.tuners.lora.layer import Linear

    class SparseLora(Linear):
        """A packed linear layer with adapters."""

        def _get_in_out_features(self, module) -> tuple[int, int]:
            return module.in_features, module.out_features

        def resolve_lora_variant(self, *, config, **kwargs):
            found = super().resolve_lora_variant(config=config, **kwargs)
            if found is not None:
                raise DataError(f"{type(found).__name__} needs the dense weight; packed layers take plain LoRA")
            return found

        def merge(self, safe_merge: bool = False, adapter_names=None) -> None:
            from peft.tuners.tuners_utils import check_adapters_to_merge

            for name in check_adapters_to_merge(self, adapter_names):
                if name in self.lora_A:
                    self._add(name, 1, safe_merge)
                    self.merged_adapters.append(name)

        def unmerge(self) -> None:
            while self.merged_adapters:
                name = self.merged_adapters.pop()
                if name in self.lora_A:
                    self._add(name, -1)

        def get_delta_weight(self, adapter) -> torch.Tensor:
            """The dense tensor of what `merge` adds, zero where the base has no entry."""
            return self._delta(adapter).to_dense()

        def _delta(self, adapter) -> PackedTensor:
            base, a, b = self.get_base_layer(), self.lora_A[adapter].weight, self.lora_B[adapter].weight
            wide = torch.float32 if a.dtype in (torch.float16, torch.bfloat16) else a.dtype
            pattern = base.weight.packed().pattern
            with torch.no_grad():
                product = einsum("ij,ir,rj->ij", pattern, b.detach().to(wide), a.detach().to(wide), target=base.target)
                scale = self.scaling[adapter]
                values = product.values
                scaled = {k: v * scale for k, v in values.items()} if isinstance(values, dict) else values * scale
                return product.with_values(scaled)

        def _add(self, adapter, sign: int, finite: bool = False) -> None:
            base, delta = self.get_base_layer(), self._delta(adapter)
            of_bias = self.lora_B[adapter].bias
            if of_bias is not None and base.bias is None:
                raise DataError("the adapter has a bias and the packed layer none, so it cannot be merged")
            added = [(part.values, delta.values_by_part[name]) for name, part in base.weight._named_parts()]
            if of_bias is not None:
                added.append((base.bias, of_bias.detach() * self.scaling[adapter]))
            if finite and not all(bool((held + sign * more).isfinite().all()) for held, more in added):
                raise ValueError(f"the adapter '{adapter}' would make weights that are not finite")
            with torch.no_grad():
                for held, more in added:
                    held.add_(more.to(held.dtype), alpha=sign)

    return SparseLora
