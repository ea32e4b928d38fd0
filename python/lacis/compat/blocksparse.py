# SPDX-License-Identifier: Apache-2.0
"""The names of OpenAI's blocksparse: a product with a layout of blocks, whose weights are given to each call."""

from __future__ import annotations

import math

import torch

from ..errors import DataError
from ..packing import PackedTensor
from ..runtime.einsum import einsum
from .blocks import block_matrix

__all__ = ["BlocksparseMatMul", "SparseProj", "group_param_grads"]


class BlocksparseMatMul:
    """The product of features with a matrix [C, K] of blocks: `y = x @ W` where `layout`, [C/block, K/block], is not 0.

    Weights are a tensor [blocks, block_size, block_size] of the caller, in the order of `block_coord(n)`: columns of
    blocks from top to bottom; with `head=True` in Morton order, and `feature_axis` is 0 by default then, as in the
    repository's last version. Features are the first axis (`feature_axis=0`, x [C, ...]) or the last (1, x [..., C]).
    `target` is that of `lacis.einsum`.

    Raises `DataError` for a layout that is no matrix, a block size that is not positive, and another axis.

    >>> matmul = BlocksparseMatMul(torch.tensor([[1, 0, 1]]), block_size=2, target="eager")
    >>> matmul.w_shape, matmul.i_shape(5), matmul.o_shape(5)
    ((2, 2, 2), (5, 2), (5, 6))
    >>> matmul(torch.ones(1, 2), torch.ones(matmul.w_shape)).tolist()
    [[2.0, 2.0, 0.0, 0.0, 2.0, 2.0]]

    After blocksparse (Gray, Radford and Kingma, 2017), README and last version.
    """

    def __init__(
        self,
        layout,
        block_size: int = 32,
        feature_axis: int | None = None,
        name: str = "BlocksparseMatMul",
        *,
        head: bool = False,
        target: str = "auto",
    ):
        layout = torch.as_tensor(layout) != 0
        if layout.ndim != 2:
            raise DataError(f"{name}: a layout is a matrix [C, K] of blocks, not {list(layout.shape)}")
        if type(block_size) is not int or block_size < 1:
            raise DataError(f"{name}: a block size is a positive whole number, not {block_size!r}")
        axis = (0 if head else 1) if feature_axis is None else feature_axis
        if axis not in (0, 1):
            raise DataError(f"{name}: the features are axis 0 or 1, not {axis!r}")
        self.layout, self.bsize, self.axis, self.name, self.head = layout.cpu(), block_size, axis, name, head
        self.target = target
        self.CB, self.KB = layout.shape
        self.C, self.K = self.CB * block_size, self.KB * block_size
        coordinates = self.layout.T.nonzero().flip(1).tolist()  # down the columns
        self._coordinates = sorted(coordinates, key=lambda at: _morton(*at)) if head else coordinates
        self.blocks = len(coordinates)
        self.w_shape, self.g_shape = (self.blocks, block_size, block_size), (self.blocks,)
        self.sparsity = round(self.blocks / max(self.CB * self.KB, 1), 3)
        self.flops = 2 * self.blocks * block_size**2
        self._made: dict[torch.device, tuple[PackedTensor, torch.Tensor]] = {}

    def i_shape(self, n: int) -> tuple[int, int]:
        """The shape of an input of `n` tokens."""
        return (n, self.C) if self.axis else (self.C, n)

    def o_shape(self, n: int) -> tuple[int, int]:
        """The shape of the answer for `n` tokens."""
        return (n, self.K) if self.axis else (self.K, n)

    def block_coord(self, block: int) -> tuple[int, int]:
        """Where a block lies in the layout."""
        return tuple(self._coordinates[block])

    def __call__(self, x, w, gate=None, gate_grad: bool = False, dw_gated: bool = False, dw_dtype=None, name=None):
        """`x @ W`, differentiable in `x` and `w`.

        `gate` [blocks] scales the blocks. As in blocksparse the gradient of `w` is that without gates, unless
        `dw_gated`; with `gate_grad` the gate has a gradient, and that of `w` is the true one. `dw_dtype`, the dtype of
        the gradient of `w`, is that of `w`. Raises `DataError` for shapes and dtypes that do not fit.
        """
        self._check("weights", w, self.w_shape)
        if dw_dtype not in (None, w.dtype):
            raise DataError(f"{self.name}: gradients of weights are {w.dtype} as these are, not {dw_dtype}")
        if gate is not None:
            self._check("gates", gate, self.g_shape)
            w = _gated(w, gate.to(w.dtype)[:, None, None], gate_grad, dw_gated)
        size = x.shape[-1 if self.axis else 0] if x.ndim else None
        if size != self.C:
            where = "last" if self.axis else "first"
            raise DataError(f"{self.name}: the {where} axis of the input must be {self.C}, not {list(x.shape)}")
        packed = self._packed(w)
        if self.axis:
            rows = math.prod(x.shape[:-1])
            return einsum("ck,nc->nk", packed, x.reshape(rows, self.C), target=self.target).reshape(
                *x.shape[:-1], self.K
            )
        columns = math.prod(x.shape[1:])
        y = einsum("ck,cn->kn", packed, x.reshape(self.C, columns), target=self.target)
        return y.reshape(self.K, *x.shape[1:])

    matmul = __call__

    def to_dense(self, w) -> torch.Tensor:
        """The matrix [C, K] that the weights are; differentiable."""
        self._check("weights", w, self.w_shape)
        return self._packed(w).to_dense()

    def identity_init(self, scale: float = 1.0):
        """An initialiser of weights `(shape, dtype)`: `scale` times the identity, repeated where C and K differ.

        >>> BlocksparseMatMul(torch.ones(1, 2), block_size=2).identity_init(3.0)((2, 2, 2)).tolist()
        [[[3.0, 0.0], [0.0, 3.0]], [[3.0, 0.0], [0.0, 3.0]]]
        """

        def initial(shape=None, dtype=torch.float32):
            held = torch.tensor([c % self.KB == k % self.CB for c, k in self._coordinates], dtype=dtype)
            return self._of_shape(shape, held.reshape(-1, 1, 1) * torch.eye(self.bsize, dtype=dtype) * scale)

        return initial

    def ortho_init(self):
        """An initialiser of weights `(shape, dtype)` by torch's generator, of orthogonal columns.

        They are so within each column of blocks, and in the whole matrix where no block is missing.
        """

        def initial(shape=None, dtype=torch.float32):
            made, size = torch.empty(self.w_shape), self.bsize
            if self.blocks == self.CB * self.KB:
                whole = _orthogonal(self.C, self.K).reshape(self.CB, size, self.KB, size)
                for n, (c, k) in enumerate(self._coordinates):
                    made[n] = whole[c, :, k]
                return self._of_shape(shape, made.to(dtype))
            for k in range(self.KB):
                held = [n for n, at in enumerate(self._coordinates) if at[1] == k]
                made[held] = _orthogonal(len(held) * size, size).reshape(-1, size, size)
            return self._of_shape(shape, made.to(dtype))

        return initial

    def checker_init(self):
        """An initialiser of gates `(shape, dtype)`: 1 where a block's coordinates are both even or both odd, else 0."""

        def initial(shape=None, dtype=torch.float32):
            held = torch.tensor([(c + k) % 2 == 0 for c, k in self._coordinates], dtype=dtype)
            return self._of_shape(shape, held, self.g_shape)

        return initial

    def l2_normalize(self, w, gain=None, epsilon: float | None = None, dtype=None) -> torch.Tensor:
        """Weights whose columns of the matrix have norm 1, times `gain` [K]; sums of squares are at least `epsilon`.

        `epsilon` is 1e-6, with `head` 1e-12. Differentiable; in `dtype`, by default that of `w`.
        """
        self._check("weights", w, self.w_shape)
        epsilon = (1e-12 if self.head else 1e-6) if epsilon is None else epsilon
        column = torch.tensor([k for _, k in self._coordinates], dtype=torch.int64, device=w.device)
        wide = w.float() if w.dtype in (torch.float16, torch.bfloat16) else w
        sums = wide.new_zeros(self.KB, self.bsize).index_add(0, column, wide.square().sum(1))
        scale = torch.where(sums >= epsilon, sums, epsilon).rsqrt()
        if gain is not None:
            self._check("gains", gain, (self.K,))
            scale = scale * gain.to(scale.dtype).reshape(self.KB, self.bsize)
        return (wide * scale[column][:, None, :]).to(dtype or w.dtype)

    def prune(self, w, gate) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights of the blocks whose gate is not 0, with gates of 1; the layout loses the other blocks."""
        self._check("weights", w, self.w_shape)
        self._check("gates", gate, self.g_shape)
        kept = gate.detach() != 0
        layout = torch.zeros_like(self.layout)
        for n in kept.nonzero().reshape(-1).tolist():
            layout[self.block_coord(n)] = True
        self.__init__(layout, self.bsize, self.axis, self.name, head=self.head, target=self.target)
        return w[kept], torch.ones_like(gate[kept])

    def _packed(self, w) -> PackedTensor:
        if w.device not in self._made:
            at = torch.tensor(self._coordinates, dtype=torch.int64, device=w.device).reshape(-1, 2)
            places, order = (at[:, 0] * self.KB + at[:, 1]).sort()
            values = torch.zeros(self.w_shape, device=w.device)
            packed = block_matrix((self.C, self.K), (self.bsize, self.bsize), places, values)
            self._made[w.device] = packed, order
        packed, order = self._made[w.device]
        return packed.with_values(w[order])

    def _of_shape(self, shape, made, own=None) -> torch.Tensor:
        own = self.w_shape if own is None else own
        if shape is not None and tuple(shape) != own:
            raise DataError(f"{self.name}: the shape is {list(own)}, not {list(shape)}")
        return made

    def _check(self, what: str, tensor, shape) -> None:
        if not isinstance(tensor, torch.Tensor) or tuple(tensor.shape) != shape:
            given = list(tensor.shape) if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise DataError(f"{self.name}: the {what} must be a tensor {list(shape)}, not {given}")

    def __getstate__(self):
        return {**self.__dict__, "_made": {}}


def _morton(c: int, k: int) -> int:
    return sum(((c >> n & 1) << 2 * n) | ((k >> n & 1) << (2 * n + 1)) for n in range(max(c, k).bit_length()))


def _gated(w, gate, gate_grad: bool, dw_gated: bool) -> torch.Tensor:
    if gate_grad:
        return w * gate
    gate = gate.detach()
    return w * gate if dw_gated else _Straight.apply(w, gate)


class _Straight(torch.autograd.Function):
    """`w * gate`, whose gradient of `w` is the one that arrives."""

    @staticmethod
    def forward(ctx, w, gate):
        return w * gate

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def _orthogonal(rows: int, columns: int) -> torch.Tensor:
    u, _, v = torch.linalg.svd(torch.randn(rows, columns), full_matrices=False)
    return u if u.shape == (rows, columns) else v


class SparseProj:
    """Some of `nhidden` features, the first axis: `nproj` at random, each `proj_stride`-th, or those of `gather_lut`.

    Those at random come from torch's generator, in ascending order; a stride is cut to whole blocks of `block_size`.
    Raises `DataError` where none of the three is given, or more are asked for than there are.

    >>> some = SparseProj(4, gather_lut=[1, 3])
    >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> some.gather(x).tolist(), some.scatter(torch.ones(2)).tolist()
    ([2.0, 4.0], [0.0, 1.0, 0.0, 1.0])
    >>> some.scatter_add(x, torch.ones(2)).tolist(), some.scatter_mul(x, torch.zeros(2)).tolist()
    ([1.0, 3.0, 3.0, 5.0], [1.0, 0.0, 3.0, 0.0])
    """

    def __init__(
        self, nhidden: int, nproj=None, proj_stride=None, block_size: int = 32, gather_lut=None, name="SparseProj"
    ):
        if gather_lut is not None:
            lut = torch.as_tensor(gather_lut, dtype=torch.int64)
        elif nproj is not None:
            lut = torch.randperm(nhidden)[:nproj].sort().values
        elif proj_stride is not None:
            lut = torch.arange(nhidden)[: nhidden // proj_stride // block_size * block_size * proj_stride : proj_stride]
        else:
            raise DataError(f"{name}: give nproj, proj_stride or gather_lut")
        wanted = len(lut) if nproj is None else nproj
        if lut.ndim != 1 or len(lut.unique()) != wanted or (len(lut) and not 0 <= lut.min() <= lut.max() < nhidden):
            raise DataError(f"{name}: {wanted} different features of {nhidden} are to be chosen, not {lut.tolist()}")
        self.nhidden, self.nproj, self.gather_lut, self.name = nhidden, len(lut), lut, name

    def gather(self, x) -> torch.Tensor:
        """The chosen features, [nproj, ...]."""
        return self._check(x, self.nhidden)[self.gather_lut.to(x.device)]

    def scatter(self, x) -> torch.Tensor:
        """All features, those that were not chosen 0."""
        self._check(x, self.nproj)
        return x.new_zeros(self.nhidden, *x.shape[1:]).index_copy(0, self.gather_lut.to(x.device), x)

    def scatter_add(self, x, y) -> torch.Tensor:
        """`x` [nhidden, ...] with `y` [nproj, ...] added to the chosen features."""
        self._check(x, self.nhidden)
        return x.index_add(0, self.gather_lut.to(x.device), self._check(y, self.nproj))

    def scatter_mul(self, x, y) -> torch.Tensor:
        """`x` [nhidden, ...] with the chosen features multiplied by `y` [nproj, ...]."""
        at = self.gather_lut.to(x.device)
        return self._check(x, self.nhidden).index_copy(0, at, x[at] * self._check(y, self.nproj))

    def _check(self, x, size: int):
        if x.ndim == 0 or x.shape[0] != size:
            raise DataError(f"{self.name}: the first axis must be {size}, not {list(x.shape)}")
        return x


def group_param_grads(param_grad, group_size: int = 8):
    """The gradient itself: autograd sums those of all calls already, which this was for."""
    return param_grad
