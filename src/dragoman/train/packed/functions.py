"""The operations of a layer on packed rows, with their gradients: matrix products by PyTorch, the rest by `kernels`."""

# Letters: N rows (tokens), M rows of the side that is looked at, C columns of several projections, D d_model, F d_ff,
# X heads of some sentences, T query length, S key length, K key width, U value width.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.train.packed import kernels
from dragoman.train.packed.kernels import Drop, Ids
from dragoman.train.packed.products import product, turned_product

_VALUES_AT_A_TIME = 131_072  # of queries, keys or values: these stay in the processor's caches
_LANES = 8  # keys are filled up to a multiple of this, with which the loops over them are quicker


class Drops:
    """The uses of dropout in one batch, one after the other; all follow from the seed."""

    def __init__(self, p: float, seed: Sequence[int]) -> None:
        self._level, self._scale = np.uint32(round(p * 2**32)), np.float32(1 / (1 - p))
        self._keys = _pairs_of_keys(np.random.default_rng(seed))

    def next(self) -> Drop:
        """The next use."""
        return Drop(*next(self._keys), self._level, self._scale)


def _pairs_of_keys(rng: np.random.Generator) -> Iterator[tuple[np.uint32, np.uint32]]:
    while True:
        yield from zip(*rng.integers(2**32, size=(2, 64), dtype=np.uint32), strict=True)


def dropped(x_ND: Tensor, drop: Drop) -> Tensor:
    """x, with some of its values dropped."""
    return cast("Tensor", _Dropped.apply(x_ND, drop))  # type: ignore[no-untyped-call]


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, drop: Drop) -> Tensor:
        ctx.drop = drop
        return _drop(x_ND, drop)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor, None]:
        return _drop(grad_ND, ctx.drop), None


def _drop(x_ND: Tensor, drop: Drop) -> Tensor:
    out_ND = torch.empty_like(x_ND, memory_format=torch.contiguous_format)
    kernels.drop_some(array(x_ND), drop, array(out_ND))
    return out_ND


def projected(x_ND: Tensor, weight_FD: Tensor, dtype: torch.dtype) -> Tensor:
    """x · weight', in products of `dtype`."""
    return cast("Tensor", _Projected.apply(x_ND, weight_FD, dtype))  # type: ignore[no-untyped-call]


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, weight_FD: Tensor, dtype: torch.dtype) -> Tensor:
        x, weight = x_ND.to(dtype), weight_FD.to(dtype)
        ctx.save_for_backward(x, weight)
        ctx.dtype = x_ND.dtype
        return product(x, weight.T)

    @staticmethod
    def backward(ctx: Any, grad_NF: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        return product(grad_NF, weight).to(ctx.dtype), turned_product(grad_NF, x).float(), None


def relu_between(x_ND: Tensor, inner_FD: Tensor, bias_F: Tensor, outer_DF: Tensor, dtype: torch.dtype) -> Tensor:
    """max(0, x · inner' + bias) · outer', in products of `dtype`."""
    return cast("Tensor", _ReluBetween.apply(x_ND, inner_FD, bias_F, outer_DF, dtype))  # type: ignore[no-untyped-call]


class _ReluBetween(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, inner_FD: Tensor, bias_F: Tensor, outer_DF: Tensor, dtype: torch.dtype
    ) -> Tensor:
        x, inner, outer = (tensor.to(dtype) for tensor in (x_ND, inner_FD, outer_DF))
        hidden_NF = product(x, inner.T)
        kernels.add_bias_and_relu(array(hidden_NF), array(bias_F))
        ctx.save_for_backward(x, inner, hidden_NF, outer)
        ctx.dtype = x_ND.dtype
        return product(hidden_NF, outer.T)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        x, inner, hidden_NF, outer = ctx.saved_tensors
        grad_hidden_NF, grad_bias_F = product(grad_ND, outer), torch.zeros(len(inner))
        kernels.relu_back(array(hidden_NF), array(grad_hidden_NF), array(grad_bias_F))
        grad_x_ND, grad_inner_FD = product(grad_hidden_NF, inner).to(ctx.dtype), turned_product(grad_hidden_NF, x)
        return grad_x_ND, grad_inner_FD.float(), grad_bias_F, turned_product(grad_ND, hidden_NF).float(), None


def add_and_norm(
    x_ND: Tensor, y_ND: Tensor, bias_D: Tensor | None, norm: nn.LayerNorm, drop: Drop, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """x + y + bias, some of the values of y + bias dropped, and the norm of that, as `dtype`."""
    bias_D = torch.zeros_like(norm.weight) if bias_D is None else bias_D
    sum_ND, normed_ND = _AddAndNorm.apply(x_ND, y_ND, bias_D, norm.weight, norm.bias, drop, dtype)  # type: ignore[no-untyped-call]
    return sum_ND, normed_ND


class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_ND: Tensor,
        y_ND: Tensor,
        bias_D: Tensor,
        weight_D: Tensor,
        norm_bias_D: Tensor,
        drop: Drop,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        sum_ND, normed_ND = torch.empty_like(x_ND), torch.empty_like(x_ND, dtype=dtype)
        mean_N, rstd_N = x_ND.new_empty(2, len(x_ND))
        x, y, bias, weight, norm_bias = (array(tensor) for tensor in (x_ND, y_ND, bias_D, weight_D, norm_bias_D))
        total, normed, mean, rstd = (array(tensor) for tensor in (sum_ND, normed_ND, mean_N, rstd_N))
        kernels.add_and_norm(x, y, bias, weight, norm_bias, drop, total, normed, mean, rstd)
        ctx.save_for_backward(sum_ND, weight_D, mean_N, rstd_N)
        ctx.drop, ctx.dtype = drop, y_ND.dtype
        ctx.set_materialize_grads(False)
        return sum_ND, normed_ND

    @staticmethod
    def backward(ctx: Any, grad_sum_ND: Tensor | None, grad_normed_ND: Tensor) -> tuple[Tensor | None, ...]:
        total, weight, mean, rstd = (array(tensor) for tensor in ctx.saved_tensors)
        grad_x_ND, grad_y_ND = torch.empty(total.shape), torch.empty(total.shape, dtype=ctx.dtype)
        grads_D = torch.zeros(3, len(weight))
        grad_normed = array(grad_normed_ND)
        grad_sum = grad_normed if grad_sum_ND is None else array(grad_sum_ND)
        kernels.add_and_norm_back(
            grad_normed, grad_sum, grad_sum_ND is not None, total, weight, mean, rstd, ctx.drop,
            array(grad_x_ND), array(grad_y_ND), array(grads_D),
        )  # fmt: skip
        return grad_x_ND, grad_y_ND, *grads_D, None, None


class Heads(NamedTuple):
    """How many attentions side by side, and how wide."""

    n: int
    key_width: int
    value_width: int
    scale: float  # of the scores

    def columns(self, *, is_self: bool) -> tuple[int, int]:
        """Where keys and values begin in a row: after the queries, if these are of the same sentence."""
        keys = self.n * self.key_width if is_self else 0
        return keys, keys + self.n * self.key_width


class Group(NamedTuple):
    """Some sentences whose heads are worked on at a time: where they and those they look at begin, and the longest."""

    q_starts: Ids
    kv_starts: Ids
    n_sentences: int
    n_queries: int
    n_keys: int


class View(NamedTuple):
    """Which tokens may look at which: those of a sentence at all of another, or at those up to themselves."""

    groups: list[Group]
    is_causal: bool


def view(q_starts: Ids, kv_starts: Ids, width: int, *, is_causal: bool = False) -> View:
    """That of sentences which begin at `q_starts` on those which begin at `kv_starts`; `width` is of all heads."""
    n_sentences, q_lens, kv_lens = len(q_starts) - 1, np.diff(q_starts), np.diff(kv_starts)
    n_at_a_time = max(1, _VALUES_AT_A_TIME // (width * max(int(q_lens.max()), int(kv_lens.max()))))
    groups = []
    for first in range(0, n_sentences, n_at_a_time):
        last = min(first + n_at_a_time, n_sentences)
        n_keys = -(-int(kv_lens[first:last].max()) // _LANES) * _LANES
        starts = q_starts[first : last + 1], kv_starts[first : last + 1]
        groups.append(Group(*starts, last - first, int(q_lens[first:last].max()), n_keys))
    return View(groups, is_causal)


def look(q_NC: Tensor, kv_MC: Tensor | None, view: View, heads: Heads) -> Tensor:
    """What each query gathers: softmax(q k' / sqrt(d_k)) v, paper section 3.2.1, equation 1, head by head.

    Keys and values stand side by side in `kv_MC`, or after the queries if sentences look at themselves.
    """
    return cast("Tensor", _Look.apply(q_NC, kv_MC, view, heads))  # type: ignore[no-untyped-call]


class _Look(torch.autograd.Function):
    # No second factor of a product is turned, because MKL's products of many small matrices take four times as long
    # then: keys and values are turned, where they have to be, while heads are taken apart.

    @staticmethod
    def forward(ctx: Any, q_NC: Tensor, kv_MC: Tensor | None, view: View, heads: Heads) -> Tensor:
        out_NC, kept = q_NC.new_empty(len(q_NC), heads.n * heads.value_width), []
        q, kv, out = (array(tensor) for tensor in (q_NC, q_NC if kv_MC is None else kv_MC, out_NC))
        columns, scale = heads.columns(is_self=kv_MC is None), np.float32(heads.scale)
        for q_starts, kv_starts, n_sentences, n_queries, n_keys in view.groups:
            n = n_sentences * heads.n
            q_XTK, k_XKS = torch.empty(n, n_queries, heads.key_width), torch.empty(n, heads.key_width, n_keys)
            v_XSU = torch.empty(n, n_keys, heads.value_width)
            kernels.heads_to_look(q, kv, columns, q_starts, kv_starts, array(q_XTK), array(k_XKS), array(v_XSU))
            weights_XTS = torch.bmm(q_XTK, k_XKS)
            kernels.weigh(array(weights_XTS), scale, q_starts, kv_starts, view.is_causal)
            kernels.heads_looked(array(torch.bmm(weights_XTS, v_XSU)), q_starts, out)
            kept.append(weights_XTS)
        out_NC[view.groups[-1].q_starts[-1] :] = 0
        ctx.save_for_backward(q_NC, kv_MC, *kept)
        ctx.view, ctx.heads = view, heads
        return out_NC

    @staticmethod
    def backward(ctx: Any, grad_NC: Tensor) -> tuple[Tensor | None, ...]:
        q_NC, kv_MC, *kept = ctx.saved_tensors
        heads: Heads = ctx.heads
        grad_q_NC = torch.empty_like(q_NC)
        grad_kv_MC = None if kv_MC is None else torch.empty_like(kv_MC)
        q, kv, grad = (array(tensor) for tensor in (q_NC, q_NC if kv_MC is None else kv_MC, grad_NC))
        grad_q = array(grad_q_NC)
        grad_kv = grad_q if grad_kv_MC is None else array(grad_kv_MC)
        columns, scale = heads.columns(is_self=kv_MC is None), np.float32(heads.scale)
        for (q_starts, kv_starts, _, n_queries, n_keys), weights_XTS in zip(ctx.view.groups, kept, strict=True):
            n = len(weights_XTS)
            q_XTK, k_XSK = torch.empty(n, n_queries, heads.key_width), torch.empty(n, n_keys, heads.key_width)
            v_XUS, grad_XTU = torch.empty(n, heads.value_width, n_keys), torch.empty(n, n_queries, heads.value_width)
            kernels.heads_to_learn(
                q, kv, grad, columns, q_starts, kv_starts,
                array(q_XTK), array(k_XSK), array(v_XUS), array(grad_XTU),
            )  # fmt: skip
            grad_XTS = torch.bmm(grad_XTU, v_XUS)
            kernels.weigh_back(array(weights_XTS), scale, array(grad_XTS))
            grad_q_XTK, grad_k_XSK = torch.bmm(grad_XTS, k_XSK), torch.bmm(grad_XTS.mT, q_XTK)
            grad_v_XSU = torch.bmm(weights_XTS.mT, grad_XTU)
            kernels.heads_learned(
                array(grad_q_XTK),
                array(grad_k_XSK),
                array(grad_v_XSU),
                columns,
                q_starts,
                kv_starts,
                grad_q,
                grad_kv,
            )
        last = ctx.view.groups[-1]
        grad_q[last.q_starts[-1] :] = 0
        grad_kv[last.kv_starts[-1] :] = 0
        return grad_q_NC, grad_kv_MC, None, None


def array(tensor: Tensor) -> Any:
    """The tensor's own memory, unless it has to be put in order. NumPy has no bfloat16 and takes it for integers."""
    tensor = tensor.detach().contiguous()
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
