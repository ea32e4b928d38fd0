# SPDX-License-Identifier: Apache-2.0
"""What transformers calls to load and save models with packed layers: a quantizer named "lacis"."""

from __future__ import annotations

from transformers.quantizers import HfQuantizer, register_quantization_config, register_quantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from ..errors import DataError
from ..nn import SparseModule
from ..runtime.densify import densify
from ..runtime.swap import as_a_whole, put
from ..schedule.schedule import check_target
from .dense import DenseSites, PackWhileLoading
from .layers import check_fields, check_loaded, describe, skeleton

VERSION = 1


@register_quantization_config("lacis")
class LacisConfig(QuantizationConfigMixin):
    """What `config.json` says of the packed layers: by path operator, format, sizes of the arrays, and steps.

    The arrays themselves lie with the weights, as `state_dict` names them. `target` is that of
    `lacis.create_schedule`. Raises `DataError` for what no save has written.

    `LacisConfig.of(schedule)` has a dense checkpoint packed while it is loaded.
    """

    _dense: DenseSites | None = None  # what a dense checkpoint is packed by

    def __init__(self, layers=None, target: str = "auto", version: int = VERSION, **_):
        if version != VERSION:
            raise DataError(f"the packed layers are of version {version!r}, this reads {VERSION}")
        check_fields({} if layers is None else layers)
        check_target(target)
        self.quant_method = "lacis"
        self.layers, self.target, self.version = layers or {}, target, version

    @classmethod
    def of(cls, schedule) -> LacisConfig:
        """As `quantization_config` of `from_pretrained`: pack a dense checkpoint weight by weight as a schedule says.

        The schedule may be that of a model on the meta device; the dense model as a whole is never in memory. Raises
        `DataError` for a schedule that says nothing, or packs activations.

        >>> import lacis, tempfile, transformers
        >>> sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
        >>> dense, folder = transformers.BertModel(transformers.BertConfig(**sizes)), tempfile.mkdtemp()
        >>> dense.save_pretrained(folder)
        >>> s = lacis.create_schedule(dense.to("meta"), target="eager")
        >>> _ = s.match(r".*dense.weight").sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csr)
        >>> model = transformers.AutoModel.from_pretrained(folder, quantization_config=LacisConfig.of(s))
        >>> model.pooler.dense.weight.values.shape
        torch.Size([26])
        """
        config = cls(target=schedule.target)
        config._dense = DenseSites(schedule)
        return config

    def to_dict(self) -> dict:
        return {name: value for name, value in super().to_dict().items() if name != "_dense"}


@register_quantizer("lacis")
class LacisQuantizer(HfQuantizer):
    """Puts packed layers without numbers into a model before its weights are loaded, and checks them afterwards."""

    requires_calibration = False
    is_trainable = True
    is_qat_trainable = True
    is_compileable = True

    def is_serializable(self, **_) -> bool:
        return True

    def get_new_dtype(self, converter, param, dtype):
        """Values are cast as asked for, indices never: one that is no integer in the file stays so, and is refused."""
        return super().get_new_dtype(converter, param, dtype) if dtype is not None and dtype.is_floating_point else None

    def validate_environment(self, *args, **kwargs) -> None:
        if not self.pre_quantized and self.quantization_config._dense is None:
            raise DataError("a dense checkpoint is packed by quantization_config=lacis.hf.LacisConfig.of(schedule)")

    def param_needs_quantization(self, model, param_name: str, **kwargs) -> bool:
        return not self.pre_quantized and self.quantization_config._dense.wants(param_name)

    def get_quantize_ops(self):
        return PackWhileLoading(self.quantization_config._dense)

    def _process_model_before_weight_loading(self, model, **kwargs):
        if not self.pre_quantized:
            self.quantization_config._dense.find(model)
            return model
        made = skeleton(model, self.quantization_config.layers, self.quantization_config.target)

        def change(undo):
            for path, module in made.items():
                put(model, path, module, undo)
            return model

        return as_a_whole(change)

    def _process_model_after_weight_loading(self, model, **kwargs):
        if not self.pre_quantized:
            self.quantization_config._dense.require_all()
            self.pre_quantized = True
            self.get_state_dict_and_metadata(model)
            return model
        for path, fields in self.quantization_config.layers.items():
            module = model.get_submodule(path)
            check_loaded(path, module, fields, lambda tensor: getattr(tensor, "_is_hf_initialized", False))
            if not fields["trains"]:
                for part in module.weight._parts():
                    part.values.requires_grad_(False)
        return model

    def get_state_dict_and_metadata(self, model):
        """Before a save: what `config.json` is to say of the layers as they are now."""
        model.config.quantization_config = self.quantization_config = LacisConfig(
            describe(model), self.quantization_config.target
        )
        return None, {}

    def _dequantize(self, model, dtype=None):
        return densify(model).to(dtype)


def save_pretrained(model, save_directory, **kwargs) -> None:
    """Write a built model of transformers to a folder, packed; `from_pretrained` reads it where `lacis.hf` is imported.

    No dense weight is made, here or there. Formats, arrays, steps of kernels and target are kept, sparsifiers are not:
    the entries are in the arrays. A model that came from such a folder has the same in its own `save_pretrained`.
    `kwargs` are those of `model.save_pretrained`. Raises `DataError`, before anything is written, for a model without
    packed layers, and for what no such file keeps: packed weights that are tied, or are no layer's (experts, routers),
    and packed activations.

    >>> import lacis, tempfile, torch, transformers
    >>> sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=32)
    >>> config = transformers.BertConfig(**sizes)
    >>> model, folder = transformers.BertModel(config), tempfile.mkdtemp()
    >>> s = lacis.create_schedule(model, target="eager")
    >>> _ = s.match(r".*dense.weight").sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csr)
    >>> save_pretrained(s.build().eval(), folder)
    >>> again = transformers.AutoModel.from_pretrained(folder)
    >>> x = torch.arange(8)[None]
    >>> torch.equal(again(x).pooler_output, model(x).pooler_output)
    True
    """
    held, before = vars(model).get("hf_quantizer"), getattr(model.config, "quantization_config", None)
    if not describe(model):
        raise DataError("the model has no packed layers; model.save_pretrained(folder) writes it")
    register(model)
    try:
        model.save_pretrained(save_directory, **kwargs)
    finally:
        model.hf_quantizer, model.config.quantization_config = held, before
        if held is None:
            del model.hf_quantizer
        if before is None:
            del model.config.quantization_config


def register(model):
    """Have a built model's own `save_pretrained`, which `Trainer` calls, write as `lacis.hf.save_pretrained` does.

    Answers the model. One that came from such a folder is registered. Raises `DataError` as `save_pretrained`.

    >>> import lacis, tempfile, transformers
    >>> sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=32)
    >>> model, folder = transformers.BertModel(transformers.BertConfig(**sizes)), tempfile.mkdtemp()
    >>> s = lacis.create_schedule(model, target="eager")
    >>> _ = s.match(r".*dense.weight").sparsify(lacis.Magnitude(0.9)).set_format(lacis.Csr)
    >>> register(s.build()).save_pretrained(folder)
    >>> type(transformers.AutoModel.from_pretrained(folder).pooler.dense).__name__
    'SparseModule'
    """
    targets = {module.target for module in model.modules() if isinstance(module, SparseModule)}
    config = LacisConfig(describe(model), targets.pop() if len(targets) == 1 else "auto")
    model.hf_quantizer = LacisQuantizer(config, pre_quantized=True)
    return model
