"""Embeddings to begin with, from the text: subwords that keep the same company begin close together.

Both languages share one table, and both sides of a pair are one company: words that translate each other are neighbours
before the first update, which an attention that copies can use at once.
"""

# Letters: V vocabulary, K subwords that count as company, D model width.

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dragoman.batches.store import EncodedPairs
from dragoman.model.transformer import Transformer

_MOST_PAIRS = 50_000  # looked at, evenly spaced
_MOST_COMPANY = 4000  # the subwords in the most pairs
_FEWEST = 2  # pairs that two subwords must have in common to count
_SPARE = 20  # directions beyond the width, which make the others exact enough
_ROUNDS = 4  # of products with the matrix, for the same reason


@torch.no_grad()
def begin_from_text(model: Transformer, pairs: EncodedPairs) -> None:
    """Sets the embeddings, and the projection to logits, by the text; those of rare subwords stay as they are."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in another order would be another run
    found_VD = embeddings_from_text(pairs, model.config.vocab_size, model.config.d_model)
    torch.set_num_threads(n_threads)
    is_known_V = found_VD.any(dim=1)
    tables = [model.embedding.weight]
    if not model.config.tie_embeddings:
        tables += [model.tgt_embedding.weight, model.projection.weight]
    for table_VD in tables:
        table_VD[is_known_V] = found_VD[is_known_V].to(table_VD.device)


def embeddings_from_text(pairs: EncodedPairs, vocab_size: int, d_model: int) -> Tensor:
    """A vector (V, D) for each subword, of length 1, or of zeros where too little is known of it.

    The leading singular vectors of how much more often two subwords share a pair than chance would have it
    (positive pointwise mutual information), turned by chance so that no dimension is special.
    """
    shared_VK, n_V, company_K, n_pairs = _shared_pairs(pairs, vocab_size)
    n_K = n_V[company_K]
    # log(p(v, k) / (p(v) p(k))), where it is above zero and rests on more than one pair.
    gain_VK = torch.log(shared_VK * n_pairs / (n_V.clamp(min=1)[:, None] * n_K)).clamp(min=0)
    gain_VK[shared_VK < _FEWEST] = 0
    width = min(d_model, len(company_K), vocab_size)
    u_VD, s_D, _ = torch.svd_lowrank(gain_VK, q=min(width + _SPARE, *gain_VK.shape), niter=_ROUNDS)
    found_VD = torch.zeros(vocab_size, d_model)
    found_VD[:, :width] = u_VD[:, :width] * s_D[:width].sqrt()
    turn_DD = torch.linalg.qr(torch.randn(d_model, d_model))[0]
    length_V1 = found_VD.norm(dim=1, keepdim=True)
    is_known_V1 = gain_VK.any(dim=1, keepdim=True)
    return torch.where(is_known_V1, found_VD / length_V1.clamp(min=1e-6), 0) @ turn_DD


def _shared_pairs(pairs: EncodedPairs, vocab_size: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """In how many pairs each subword occurs with each of the company (V, K), and at all (V); the company; the pairs."""
    chosen = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), _MOST_PAIRS)).astype(int))
    there = [np.unique(np.concatenate([pairs.src(i)[:-1], pairs.tgt(i)[:-1]])) for i in chosen]  # without eos
    n_V = torch.from_numpy(np.bincount(np.concatenate(there), minlength=vocab_size)).float()
    company_K = n_V.topk(min(_MOST_COMPANY, vocab_size)).indices
    column_of = np.full(vocab_size, -1)
    column_of[company_K.numpy()] = np.arange(len(company_K))
    shared = np.zeros((vocab_size, len(company_K)), dtype=np.float32)
    for ids in there:
        columns = column_of[ids]
        shared[ids[:, None], columns[columns >= 0]] += 1
    return torch.from_numpy(shared), n_V, company_K, len(there)
