"""Loops over rows, compiled by Numba. Each reads and writes what it must once.

Nothing here knows the model or PyTorch; arrays are C-contiguous, and results are written where the caller says. Rows
are of float32 or of bfloat16, which is the upper half of one and stands in an unsigned integer; sums are of float32.
"""

# Letters: N rows (tokens), D width, B sentences, H heads, T query length, S key length, K head width, V vocabulary.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import float32, njit, types, uint16, uint32
from numba.extending import overload

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float32] | npt.NDArray[np.uint16]
Ids = npt.NDArray[np.int64]
_Loop = TypeVar("_Loop", bound=Callable[..., Any])

_EPSILON = float32(1e-5)  # of PyTorch's LayerNorm


class Drop(NamedTuple):
    """One use of dropout: which values, as the hash of their index with this key says, and how many."""

    key: np.uint32
    other_key: np.uint32
    level: np.uint32  # values whose hash is below it are dropped
    scale: np.float32  # of what is kept, so that the mean stays


# Sums may be taken in any order, but NaN and infinity stay what they are: a run has to stop at them.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}}


def _compiled(loop: _Loop) -> _Loop:
    """The loop in machine code: made when it is first called, which takes a second, and kept on disk."""
    try:
        return cast("_Loop", njit(loop, cache=True, **_OPTIONS))
    except RuntimeError:  # there is no place on disk that may be written to: made anew by every process
        return cast("_Loop", njit(loop, **_OPTIONS))


def _part(function: _Loop) -> _Loop:
    """A part of several loops."""
    return cast("_Loop", njit(function, inline="always", **_OPTIONS))


def _wide(value: Any) -> np.float32:
    """A value of a row in float32."""
    raise AssertionError("for compiled loops alone")


def _wide_for(value: Any) -> Callable[..., Any]:
    def as_it_is(value: Any) -> Any:
        return value

    def widened(value: Any) -> Any:
        return np.uint32(np.uint32(value) << np.uint32(16)).view(np.float32)

    return widened if value == types.uint16 else as_it_is


def _put(row: Rows, i: int, value: np.float32) -> None:
    """Writes a value to a row, rounded to the nearest that the row can hold. NaN stays, if an operation gave it."""
    raise AssertionError("for compiled loops alone")


def _put_for(row: Any, i: Any, value: Any) -> Callable[..., None]:
    def as_it_is(row: Any, i: Any, value: Any) -> None:
        row[i] = value

    def rounded(row: Any, i: Any, value: Any) -> None:
        bits = np.float32(value).view(np.uint32)
        tie = uint32(uint32(bits >> uint32(16)) & uint32(1))  # halfway goes to the even one
        row[i] = uint16(uint32(bits + uint32(0x7FFF) + tie) >> uint32(16))

    return rounded if row.dtype == types.uint16 else as_it_is


# Not inlined by Numba, which would then take `_put` for something without effect; LLVM does it.
for _function, _chosen in ((_wide, _wide_for), (_put, _put_for)):
    overload(_function, inline="never", strict=False)(_chosen)


@_part
def _is_kept(index: np.uint32, drop: Drop) -> bool:
    """Whether the value of this index stays: a hash of it, different with every key, decides."""
    x = uint32(index ^ drop.key)
    x = uint32(x * uint32(0x7FEB352D))
    x = uint32(x ^ (x >> uint32(15)))
    x = uint32(uint32(x + drop.other_key) * uint32(0x846CA68B))
    x = uint32(x ^ (x >> uint32(16)))
    return x >= drop.level


@_part
def _exp(x: np.float32) -> np.float32:
    """e to the power of x, which is not above 0 by much; to 1e-6 of itself."""
    t = (float32(-87.0) if x < float32(-87.0) else x) * float32(1.4426950408889634)  # NaN stays
    whole = np.floor(t + float32(0.5))
    f = (t - whole) * float32(0.6931471805599453)
    p = float32(0.008333334) + f * float32(0.0013888889)
    p = float32(0.16666667) + f * (float32(0.041666667) + f * p)
    p = float32(1.0) + f * (float32(1.0) + f * (float32(0.5) + f * p))
    power = np.int32(np.int32(np.int32(whole) + np.int32(127)) << np.int32(23))
    return p * np.int32(power).view(np.float32)


@_compiled
def drop_some(x_ND: Floats, drop: Drop, out_ND: Floats) -> None:
    """x with some of its values dropped and the others scaled."""
    for n in range(x_ND.shape[0]):
        first = uint32(n * x_ND.shape[1])
        for d in range(x_ND.shape[1]):
            kept = _is_kept(uint32(first + uint32(d)), drop)
            out_ND[n, d] = x_ND[n, d] * drop.scale if kept else float32(0)


@_compiled
def add_and_norm(
    x_ND: Floats, y_ND: Rows, bias_D: Floats, weight_D: Floats, norm_bias_D: Floats,
    drop: Drop, sum_ND: Floats, out_ND: Rows, mean_N: Floats, rstd_N: Floats,
) -> None:  # fmt: skip
    """sum = x + drop(y + bias), and its LayerNorm; with the mean and the inverse deviation of each row."""
    n_rows, width = x_ND.shape
    part = float32(1) / float32(width)
    for n in range(n_rows):
        first = uint32(n * width)
        total = float32(0)
        for d in range(width):
            kept = _is_kept(uint32(first + uint32(d)), drop)
            value = x_ND[n, d] + ((_wide(y_ND[n, d]) + bias_D[d]) * drop.scale if kept else float32(0))
            sum_ND[n, d] = value
            total += value
        mean = total * part
        squares = float32(0)
        for d in range(width):
            apart = sum_ND[n, d] - mean
            squares += apart * apart
        rstd = float32(1) / np.sqrt(squares * part + _EPSILON)
        out_D = out_ND[n]
        for d in range(width):
            _put(out_D, d, (sum_ND[n, d] - mean) * rstd * weight_D[d] + norm_bias_D[d])
        mean_N[n], rstd_N[n] = mean, rstd


@_compiled
def add_and_norm_back(
    grad_out_ND: Rows, grad_sum_ND: Rows, has_grad_sum: bool, sum_ND: Floats, weight_D: Floats, mean_N: Floats,
    rstd_N: Floats, drop: Drop, grad_x_ND: Floats, grad_y_ND: Rows, grads_3D: Floats,
) -> None:  # fmt: skip
    """The gradients of `add_and_norm`; those of its three vectors are added to `grads_3D`. The sum may have none."""
    n_rows, width = sum_ND.shape
    part = float32(1) / float32(width)
    grad_bias_D, grad_weight_D, grad_norm_bias_D = grads_3D[0], grads_3D[1], grads_3D[2]
    for n in range(n_rows):
        first = uint32(n * width)
        mean, rstd = mean_N[n], rstd_N[n]
        straight, along = float32(0), float32(0)
        for d in range(width):
            normed = (sum_ND[n, d] - mean) * rstd
            grad = _wide(grad_out_ND[n, d])
            grad_weight_D[d] += grad * normed
            grad_norm_bias_D[d] += grad
            straight += grad * weight_D[d]
            along += grad * weight_D[d] * normed
        straight, along = straight * part, along * part
        grad_y_D = grad_y_ND[n]
        for d in range(width):
            normed = (sum_ND[n, d] - mean) * rstd
            grad = (_wide(grad_out_ND[n, d]) * weight_D[d] - straight - normed * along) * rstd
            if has_grad_sum:
                grad += _wide(grad_sum_ND[n, d])
            grad_x_ND[n, d] = grad
            kept = _is_kept(uint32(first + uint32(d)), drop)
            grad_y = grad * drop.scale if kept else float32(0)
            _put(grad_y_D, d, grad_y)
            grad_bias_D[d] += grad_y


@_compiled
def add_bias_and_relu(y_NF: Rows, bias_F: Floats) -> None:
    """max(0, y + bias), in place."""
    for n in range(y_NF.shape[0]):
        y_F = y_NF[n]
        for f in range(y_F.size):
            value = _wide(y_F[f]) + bias_F[f]
            _put(y_F, f, float32(0) if value < float32(0) else value)  # NaN stays


@_compiled
def relu_back(out_NF: Rows, grad_NF: Rows, grad_bias_F: Floats) -> None:
    """The gradient before ReLU, in place of the one after it; its sum is added to that of the bias."""
    for n in range(out_NF.shape[0]):
        grad_F = grad_NF[n]
        for f in range(grad_F.size):
            grad = _wide(grad_F[f]) if _wide(out_NF[n, f]) > float32(0) else float32(0)
            _put(grad_F, f, grad)
            grad_bias_F[f] += grad


@_part
def _heads_apart(rows_NC: Rows, column: int, starts: Ids, out_XTK: Floats) -> None:
    """The sentences' rows, from this column on, head by head; zeros after the end of a sentence."""
    n_sentences = starts.size - 1
    n_matrices, longest, width = out_XTK.shape
    n_heads = n_matrices // n_sentences
    for b in range(n_sentences):
        start, length = starts[b], starts[b + 1] - starts[b]
        for h in range(n_heads):
            first = column + h * width
            head_TK = out_XTK[b * n_heads + h]
            for t in range(length):
                row_K = rows_NC[start + t, first : first + width]
                for k in range(width):
                    head_TK[t, k] = _wide(row_K[k])
            for t in range(length, longest):
                for k in range(width):
                    head_TK[t, k] = float32(0)


@_part
def _heads_turned(rows_NC: Rows, column: int, starts: Ids, out_XKT: Floats) -> None:
    """The same, the other way round: a row for each dimension of a head."""
    n_sentences = starts.size - 1
    n_matrices, width, longest = out_XKT.shape
    n_heads = n_matrices // n_sentences
    for b in range(n_sentences):
        start, length = starts[b], starts[b + 1] - starts[b]
        for h in range(n_heads):
            first = column + h * width
            head_KT = out_XKT[b * n_heads + h]
            for t in range(length):
                row_K = rows_NC[start + t, first : first + width]
                for k in range(width):
                    head_KT[k, t] = _wide(row_K[k])
            for k in range(width):
                for t in range(length, longest):
                    head_KT[k, t] = float32(0)


@_part
def _heads_together(heads_XTK: Floats, starts: Ids, column: int, rows_NC: Rows) -> None:
    """Writes the heads side by side into the sentences' rows, from this column on."""
    n_sentences = starts.size - 1
    n_matrices, _, width = heads_XTK.shape
    n_heads = n_matrices // n_sentences
    for b in range(n_sentences):
        start, length = starts[b], starts[b + 1] - starts[b]
        for t in range(length):
            for h in range(n_heads):
                first = column + h * width
                head_K = heads_XTK[b * n_heads + h, t]
                row_K = rows_NC[start + t, first : first + width]
                for k in range(width):
                    _put(row_K, k, head_K[k])


@_compiled
def heads_to_look(
    q_NC: Rows, kv_MC: Rows, columns: tuple[int, int], q_starts: Ids, kv_starts: Ids,
    q_XTK: Floats, k_XKS: Floats, v_XSU: Floats,
) -> None:  # fmt: skip
    """Queries, turned keys and values of some sentences, head by head; zeros after the end of a sentence."""
    _heads_apart(q_NC, 0, q_starts, q_XTK)
    _heads_turned(kv_MC, columns[0], kv_starts, k_XKS)
    _heads_apart(kv_MC, columns[1], kv_starts, v_XSU)


@_compiled
def heads_looked(out_XTU: Floats, q_starts: Ids, out_NC: Rows) -> None:
    """Writes the heads of what was found side by side."""
    _heads_together(out_XTU, q_starts, 0, out_NC)


@_compiled
def heads_to_learn(
    q_NC: Rows, kv_MC: Rows, grad_NC: Rows, columns: tuple[int, int], q_starts: Ids, kv_starts: Ids,
    q_XTK: Floats, k_XSK: Floats, v_XUS: Floats, grad_XTU: Floats,
) -> None:  # fmt: skip
    """Queries, keys, turned values and the gradient of what was found likewise."""
    _heads_apart(q_NC, 0, q_starts, q_XTK)
    _heads_apart(kv_MC, columns[0], kv_starts, k_XSK)
    _heads_turned(kv_MC, columns[1], kv_starts, v_XUS)
    _heads_apart(grad_NC, 0, q_starts, grad_XTU)


@_compiled
def heads_learned(
    grad_q_XTK: Floats, grad_k_XSK: Floats, grad_v_XSU: Floats, columns: tuple[int, int], q_starts: Ids, kv_starts: Ids,
    grad_q_NC: Rows, grad_kv_MC: Rows,
) -> None:  # fmt: skip
    """Writes the gradients of queries, keys and values where these stand."""
    _heads_together(grad_q_XTK, q_starts, 0, grad_q_NC)
    _heads_together(grad_k_XSK, kv_starts, columns[0], grad_kv_MC)
    _heads_together(grad_v_XSU, kv_starts, columns[1], grad_kv_MC)


@_compiled
def weigh(scores_XTS: Floats, scale: np.float32, q_starts: Ids, kv_starts: Ids, is_causal: bool) -> None:
    """The softmax over the keys that a query may see, in place; zeros elsewhere."""
    n_sentences = q_starts.size - 1
    n_matrices, n_queries, n_keys = scores_XTS.shape
    n_heads = n_matrices // n_sentences
    for b in range(n_sentences):
        q_len, kv_len = q_starts[b + 1] - q_starts[b], kv_starts[b + 1] - kv_starts[b]
        for h in range(n_heads):
            for t in range(n_queries):
                row_S = scores_XTS[b * n_heads + h, t]
                n_seen = 0 if t >= q_len else t + 1 if is_causal else kv_len
                largest = float32(-np.inf)
                for s in range(n_seen):
                    largest = max(largest, row_S[s])
                total = float32(0)
                for s in range(n_keys):
                    power = _exp((row_S[s] - largest) * scale) if s < n_seen else float32(0)
                    row_S[s] = power
                    total += power
                part = float32(1) / total if n_seen > 0 else float32(0)
                for s in range(n_keys):
                    row_S[s] *= part


@_compiled
def weigh_back(weights_XTS: Floats, scale: np.float32, grad_XTS: Floats) -> None:
    """The gradient before the softmax, in place of the one after it."""
    n_matrices, n_queries, n_keys = weights_XTS.shape
    for x in range(n_matrices):
        for t in range(n_queries):
            weights_S, grad_S = weights_XTS[x, t], grad_XTS[x, t]
            total = float32(0)
            for s in range(n_keys):
                total += weights_S[s] * grad_S[s]
            for s in range(n_keys):
                grad_S[s] = weights_S[s] * (grad_S[s] - total) * scale


@_compiled
def powers(logits_NV: Rows, top_N: Floats, total_N: Floats) -> None:
    """exp(logit - top) in place of each logit, and the sum of a row, which is not that of rounded powers."""
    for n in range(logits_NV.shape[0]):
        row_V, top = logits_NV[n], top_N[n]
        total = float32(0)
        for v in range(row_V.size):
            power = _exp(_wide(row_V[v]) - top)
            _put(row_V, v, power)
            total += power
        total_N[n] = total


@_compiled
def powers_of_twins(logits_NV: Rows, top_N: Floats, total_N: Floats, factor: np.float32, divergence_N: Floats) -> None:
    """Probabilities p and q in place of the logits of each two rows, with `factor` times their divergence's gradient.

    The divergence of both rows, KL(p || q) + KL(q || p), is noted for the first of them; sums are those of `powers`.
    """
    n_vocab = logits_NV.shape[1]
    rows_3V = np.empty((3, n_vocab), dtype=np.float32)
    p_V, q_V, apart_V = rows_3V[0], rows_3V[1], rows_3V[2]
    for n in range(0, logits_NV.shape[0], 2):
        p_row_V, q_row_V, p_top, q_top = logits_NV[n], logits_NV[n + 1], top_N[n], top_N[n + 1]
        p_total, q_total, p_apart, q_apart = float32(0), float32(0), float32(0), float32(0)
        for v in range(n_vocab):
            p, q = _wide(p_row_V[v]) - p_top, _wide(q_row_V[v]) - q_top
            apart = p - q
            p, q = _exp(p), _exp(q)
            p_V[v], q_V[v], apart_V[v] = p, q, apart
            p_total += p
            q_total += q
            p_apart += p * apart
            q_apart += q * apart
        total_N[n], total_N[n + 1] = p_total, q_total
        p_part, q_part = float32(1) / p_total, float32(1) / q_total
        offset = np.log(p_total) - np.log(q_total)
        from_p, from_q = p_apart * p_part - offset, offset - q_apart * q_part
        divergence_N[n], divergence_N[n + 1] = from_p + from_q, float32(0)
        for v in range(n_vocab):
            p, q, apart = p_V[v] * p_part, q_V[v] * q_part, apart_V[v] - offset
            _put(p_row_V, v, p + factor * (p * (float32(1) + apart - from_p) - q))
            _put(q_row_V, v, q + factor * (q * (float32(1) - apart - from_q) - p))
