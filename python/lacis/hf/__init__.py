# SPDX-License-Identifier: Apache-2.0
"""Lacis in Hugging Face's transformers: files of packed layers that load without a dense copy, and adapters (PEFT).

`import lacis.hf` makes `from_pretrained` of every model class understand what `save_pretrained` wrote.
"""

from .callback import UpdatesCallback
from .lora import lora
from .quantizer import LacisConfig, LacisQuantizer, register, save_pretrained

__all__ = ["LacisConfig", "LacisQuantizer", "UpdatesCallback", "lora", "register", "save_pretrained"]
