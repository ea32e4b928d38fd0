# SPDX-License-Identifier: Apache-2.0
"""Makes the text of docs/api.md from the docstrings of the public names."""

from __future__ import annotations

import dataclasses
import inspect
import re

import lacis
import lacis.hf
from lacis.compat import blocksparse, pytorch_block_sparse, sten, torchao
from lacis.runtime.engine import Kernels
from lacis.runtime.report import Report
from lacis.schedule.edges import Activation, ActivationGradient
from lacis.schedule.handle import GradientHandle, Group, Handle, Part
from lacis.schedule.modules import Module
from lacis.schedule.steps import STEPS, Steps
from lacis.sparsifiers import Calibrated, Inputs, View

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0; written by docs/generate.py from the docstrings -->
# API

Every public name, from its docstring; the examples run in the suite. Pages that explain: [index](README.md).
"""
SECTIONS = {
    "Schedules of models": [
        *(lacis.create_schedule, lacis.load_schedule, lacis.Schedule, Report, lacis.save_kernels, lacis.densify),
        *(lacis.require_equal_patterns, lacis.take_masks, lacis.Updates),
    ],
    "Handles": [Handle, Part, Group, GradientHandle, Activation, ActivationGradient, Module, Kernels],
    "Packed tensors": [
        *(lacis.pack, lacis.from_blocked_ell, lacis.from_sliced_ell),
        *(lacis.from_semi_structured, lacis.to_semi_structured),
        *(lacis.PackedTensor, lacis.Pattern),
    ],
    "Expressions": [
        *(lacis.einsum, lacis.compile, lacis.compile_many, lacis.Kernel, lacis.Epilogue),
        *(lacis.kernel, lacis.ChainKernel),
    ],
    "Attention": [
        *(
            lacis.attention,
            lacis.merge_attention,
            lacis.block_mask,
            lacis.softmax,
            lacis.logsumexp,
            lacis.PatternRule,
            lacis.Causal,
            lacis.LastQueries,
            lacis.Local,
        ),
        *(lacis.Dilated, lacis.Documents, lacis.Fixed, lacis.Variable, lacis.BigBird, lacis.Longformer),
        *(lacis.TopKBlocks, lacis.KMeans, lacis.Similarity),
    ],
    "Formats": [
        *(lacis.Format, lacis.Csr, lacis.Csc, lacis.Coo, lacis.Dcsr, lacis.Ell, lacis.Bsr, lacis.Bcsc),
        *(lacis.BlockedEll, lacis.NMFormat, lacis.TwoFour, lacis.Bitmap, lacis.Dia, lacis.Sell, lacis.Dense, lacis.Csf),
        *(lacis.GroupCoo, lacis.SrBcrs, lacis.Csb, lacis.Hyb, lacis.Sum, lacis.decompose, lacis.nnz, lacis.digit),
        *(lacis.Rule, lacis.iter, lacis.fuse, lacis.diagonal, lacis.rank, lacis.slot),
    ],
    "Level kinds of your own": [
        *(lacis.LevelKind, lacis.kind, lacis.array, lacis.Placed, lacis.check_kind, lacis.binding, lacis.where),
        *(lacis.popcount, lacis.ctz, lacis.load, lacis.fori, lacis.whilei),
    ],
    "Sparsifiers": [
        *(lacis.Sparsifier, lacis.Magnitude, lacis.Random, lacis.BlockMagnitude, lacis.BlockRandom, lacis.Threshold),
        *(lacis.NM, lacis.Given, lacis.Keep, lacis.Ramp, lacis.Regrow, lacis.Movement, lacis.Policy, View),
        *(lacis.Wanda, lacis.SparseGPT, lacis.Quantile, Calibrated, Inputs),
    ],
    "Layers": [lacis.nn.SparseLinear, lacis.nn.init.kaiming_uniform_],
    "What others add": [lacis.Operator, lacis.operator, lacis.Activation, lacis.activation],
    "Errors": [lacis.Error, lacis.ScheduleError, lacis.FormatError, lacis.CompileError, lacis.DataError],
    "lacis.hf": [
        lacis.hf.save_pretrained,
        lacis.hf.register,
        lacis.hf.LacisConfig,
        lacis.hf.UpdatesCallback,
        lacis.hf.lora,
    ],
}
# What stands under the names of other systems, each in a section of its own.
for room in (torchao, pytorch_block_sparse, blocksparse, sten):
    members = [getattr(room, name) for name in room.__all__]
    SECTIONS[room.__name__] = [each for each in members if each.__module__.startswith("lacis.compat")]


# What users call of the classes whose objects others make for them.
MEMBERS = {
    lacis.Schedule: "match build build_from compile_only calibrate attach restore report save",
    lacis.Updates: "count step state_dict load_state_dict",
    Report: "total to_dict plot",
    Handle: "name shape grad part format steps kernel kernels packed resparsify fit",
    Part: "steps",
    Group: "where",
    GradientHandle: "steps kernel",
    Activation: "grad steps kernel kernels",
    ActivationGradient: "steps kernel",
    Module: "steps",
    Kernels: "compiled",
    lacis.PackedTensor: "format shape dtype device values with_values from_storage storage nnz slots nbytes to "
    "transpose map to_dense to_torch to_scipy to_blocked_ell to_sliced_ell T validate plot",
    lacis.Pattern: "from_mask of_places shape device nnz storage to_mask gather transpose batched to validate",
    lacis.Kernel: "key target asm stages steps remarks text",
    lacis.Format: "parse text rank tile buffers capacity",
    lacis.Sparsifier: "mask",
    Calibrated: "solve",
    Inputs: "norms",
    lacis.Policy: "change initial state observe",
    View: "count grid total rows seed hashed empty complement dense",
    lacis.hf.LacisConfig: "of",
    pytorch_block_sparse.SparseOptimizer: "sparse_objects attach_optimizer step",
    pytorch_block_sparse.BlockSparseModelPatcher: "get_patchable_layers add_pattern patch_model",
    blocksparse.BlocksparseMatMul: "i_shape o_shape block_coord to_dense identity_init ortho_init checker_init "
    "l2_normalize prune",
    blocksparse.SparseProj: "gather scatter scatter_add scatter_mul",
    sten.SparsityBuilder: "set_weight set_weight_grad set_interm set_interm_grad get_sparse_model "
    "sparsify_model_inplace",
}


def page() -> str:
    parts = [HEAD]
    for title, members in SECTIONS.items():
        parts += [f"## {title}\n", *map(_entry, members)]
    verbs = [cls for cls in STEPS.values() if cls.ready]
    parts += ["## Steps and verbs\n", _STEPS, *(_step(cls) for cls in sorted(verbs, key=lambda cls: cls.mnemonic))]
    parts += [_entry(Steps)]
    return "\n".join(parts).rstrip() + "\n"


_STEPS = """A verb of a handle, `s["0.weight"].split("i", 32)`, is the record `lacis.steps.Split("i", 32)`, which
`steps=` of `lacis.compile` and `lacis.einsum` takes. More on each: [steps](steps/README.md).
"""


def _entry(member) -> str:
    """A heading with the signature, the docstring, and of a class its public members."""
    others = (
        member in MEMBERS
        and not member.__module__.startswith(("lacis.compat", "lacis.hf"))
        and member is not lacis.Format
    )
    made = inspect.isclass(member) and others  # not by its users
    lines = [f"### `{member.__name__}{'' if made else _signature(member)}`\n", _text(member)]
    lines += [_member(name, inspect.getattr_static(member, name)) for name in MEMBERS.get(member, "").split()]
    return "\n".join(lines)


def _member(name: str, member) -> str:
    function = getattr(member, "fget", None) or getattr(member, "func", None)
    if function is not None:
        return f"**`.{name}`** {_text(function)}".rstrip() + "\n"
    return f"**`.{name}{_signature(getattr(member, '__func__', member))}`** {_text(member)}"


def _signature(member) -> str:
    try:
        signature = inspect.signature(member)
    except (TypeError, ValueError):
        return ""
    kept = [p.replace(annotation=_Plain.of(p.annotation)) for p in signature.parameters.values() if p.name not in _OURS]
    return str(signature.replace(parameters=kept, return_annotation=_Plain.of(signature.return_annotation)))


_OURS = ("self", "cls", "location")  # parameters that users do not give


class _Plain(str):
    """An annotation that prints as it is written."""

    __repr__ = str.__str__

    @staticmethod
    def of(annotation):
        return _Plain(annotation.strip("\"'")) if isinstance(annotation, str) else annotation


def _text(member) -> str:
    """The docstring as Markdown: examples and pictures in fences."""
    found = []
    for paragraph in re.split(r"\n\n", inspect.getdoc(member) or ""):
        if paragraph.startswith(">>>"):
            found.append(f"```python\n{paragraph}\n\n```")
        elif "-->" in paragraph:
            found.append(f"```\n{paragraph}\n```")
        else:
            found.append(paragraph)
    return "\n\n".join(found) + "\n"


def _step(cls) -> str:
    fields = [field for field in dataclasses.fields(cls) if field.name != "location"]
    named = any(p.kind is p.VAR_KEYWORD and p.name != "named" for p in inspect.signature(cls).parameters.values())
    said = ", ".join(_field(field, "**" if named else "*") for field in fields)
    return f"### `{cls.mnemonic}({said})`\n\n`lacis.steps.{cls.__name__}`. {_text(cls)}"


def _field(field, stars: str) -> str:
    name = f"{stars}{field.name}" if field.type == "tuple" else field.name
    return name if field.default is dataclasses.MISSING or name[0] == "*" else f"{name}={field.default!r}"
