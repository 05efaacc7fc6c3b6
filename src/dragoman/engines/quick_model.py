"""Our model for a processor, its products in fewer bits and its decoder laid out for search.

Norms, softmax and residual sums stay in float32. The encoder runs once for a sentence, and its hypotheses share the
keys and values. Nor are those of hypotheses copied when a beam is reordered: each column of the cache belongs to one
hypothesis of one step, and a mask tells which columns each of the living descends from. Keys and values are kept in
bfloat16 where the processor has it, since reading them is most of what attention costs here.
"""

# Letters: B sentences in search, W hypotheses of each, N = B * W rows, M chosen rows, A places for sentences, S source
# length, C columns of the cache, D d_model, H heads, K key or value width, V vocabulary or shortlist.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.engines.products import Product, joined, replace_linears
from dragoman.engines.quick_choice import Choice
from dragoman.model.attention import KeyValues, MultiHeadAttention
from dragoman.model.layers import DecoderLayer
from dragoman.model.transformer import Transformer

_FEWEST_PLACES = 0.5  # share that must be in use, or the others are closed up
_STEPS_AHEAD = 4  # for which there is room when columns are put in order
_LANES = 16  # columns come in multiples of this: products of other sizes are twice as slow


class QuickTransformer:
    """A Transformer for search alone, its products in fewer bits."""

    def __init__(self, model: Transformer, product: Product, keeps: torch.dtype) -> None:
        """Changes the linear layers of the model given, which is of no other use afterwards.

        `keeps` is of what type keys and values are between two steps.
        """
        self._model, self._product, self._keeps = model, product, keeps
        self._logits_VD = model.output_weight_VD.detach()
        self._project = product(self._logits_VD)
        self._layers = [_Layer(cast("DecoderLayer", layer), product) for layer in model.decoder]
        replace_linears(model, product)

    def choice(self, shortlists: Sequence[np.ndarray] | None) -> Choice:
        """What sentences with these shortlists can choose among, or all there is."""
        if shortlists is None:
            return Choice(None, None, self._project)
        ids_V = torch.from_numpy(np.unique(np.concatenate(shortlists)))
        return Choice(ids_V, None, self._product(self._logits_VD[ids_V]))

    def start(self, src_BS: Tensor, choice: Choice) -> State:
        """The state from which `step` decodes."""
        cache = self._model.start(src_BS)
        return State(
            caches=[_Cache.start(kv, self._keeps) for kv in cache.memory],
            choice=choice,
            src_sees_A11S=torch.zeros(cache.src_may_see.shape).masked_fill_(~cache.src_may_see, -math.inf),
            sees_BWC=torch.zeros(len(src_BS), 1, 0),
            places_B=torch.arange(len(src_BS)),
            n_tokens_B=torch.zeros(len(src_BS), dtype=torch.long),
        )

    def step(self, last_N: Tensor, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (N, V) of the next token of each row, and the state that includes `last_N`."""
        state, at = state.opened()
        model = self._model
        embedding = model.embedding if model.config.tie_embeddings else model.tgt_embedding
        ids_N1 = state.choice.ids(last_N)[:, None]
        places_N1 = (state.n_tokens_B - 1).repeat_interleave(at.width)[:, None]
        x_ND = model.embed(ids_N1, embedding, model.tgt_positions, places_N1)[:, 0]
        for layer, cache in zip(self._layers, state.caches, strict=True):
            x_ND = layer(x_ND, cache, at)
        return state.choice.log_probs(model.decoder_norm(x_ND)), state


class _Layer:
    """One layer of the decoder, a token at a time."""

    def __init__(self, layer: DecoderLayer, product: Product) -> None:
        self._layer, part = layer, layer.self_attention
        self._qkv = joined([part.query, part.key, part.value], product)
        self._widths = [linear.out_features for linear in (part.query, part.key, part.value)]
        del part.query, part.key, part.value  # nobody asks for them one by one

    def __call__(self, x_ND: Tensor, cache: _Cache, at: _At) -> Tensor:
        layer = self._layer
        q, k, v = self._qkv(layer.self_norm.before(x_ND)).split(self._widths, dim=1)
        n_heads = layer.self_attention.n_heads
        cache.write(at.heads(k, n_heads), at.heads(v, n_heads), at)
        gathered = _gather(layer.self_attention, q, cache.past, at.sees_A1WC, at)
        x_ND = layer.self_norm.after(x_ND, layer.self_attention.output(gathered))

        q = layer.cross_attention.query(layer.cross_norm.before(x_ND))
        gathered = _gather(layer.cross_attention, q, cache.memory, at.src_sees_A11S, at)
        x_ND = layer.cross_norm.after(x_ND, layer.cross_attention.output(gathered))
        return layer.feed_forward_norm.after(x_ND, layer.feed_forward(layer.feed_forward_norm.before(x_ND)))


def _gather(part: MultiHeadAttention, q_NK: Tensor, kv: KeyValues, sees: Tensor, at: _At) -> Tensor:
    """What the rows gather: softmax(q k' / sqrt(d_k)) v, the heads side by side."""
    scale = 1 / math.sqrt(kv.k_BHSK.shape[3]) if part.scale is None else part.scale
    q_AHWK = at.spread(at.heads(q_NK.to(kv.k_BHSK.dtype), part.n_heads))
    weights = (q_AHWK @ kv.k_BHSK.mT).to(q_NK.dtype).mul_(scale).add_(sees).softmax(dim=-1)
    out_BWHK = at.picked((weights.to(kv.v_BHSU.dtype) @ kv.v_BHSU).transpose(1, 2))
    return out_BWHK.reshape(len(q_NK), -1).to(q_NK.dtype)


@dataclass(frozen=True, slots=True)
class _At:
    """Where a step is, and which columns its rows see: 0 where they do, else -inf."""

    columns: slice  # those of its own keys and values
    width: int
    places_B: Tensor | None  # of the sentences in search, if not all places are in use
    sees_A1WC: Tensor
    src_sees_A11S: Tensor

    def heads(self, x_NK: Tensor, n_heads: int) -> Tensor:
        """The rows of each sentence together, their heads apart: (B, H, W, K)."""
        return x_NK.reshape(-1, self.width, n_heads, x_NK.shape[1] // n_heads).transpose(1, 2)

    def spread(self, x_B: Tensor) -> Tensor:
        """What belongs to sentences, at their places."""
        if self.places_B is None:
            return x_B
        return x_B.new_zeros(len(self.src_sees_A11S), *x_B.shape[1:]).index_copy_(0, self.places_B, x_B)

    def picked(self, x_A: Tensor) -> Tensor:
        """The reverse."""
        return x_A if self.places_B is None else x_A.index_select(0, self.places_B)


@dataclass(slots=True)
class _Cache:
    """Of one layer: keys and values of the source, and of the columns so far, with room for some more.

    All columns are looked at, also those to come: part of a tensor would be copied for each product.
    """

    memory: KeyValues
    past: KeyValues

    @classmethod
    def start(cls, memory: KeyValues, dtype: torch.dtype) -> _Cache:
        """Without columns."""
        memory = KeyValues(*(part.to(dtype).contiguous() for part in memory))
        return cls(memory, KeyValues(*(part[:, :, :0] for part in memory)))

    def write(self, k_BHWK: Tensor, v_BHWK: Tensor, at: _At) -> None:
        """Fills the columns of a step."""
        for part, new in zip(self.past, (k_BHWK, v_BHWK), strict=True):
            if at.places_B is None:
                part[:, :, at.columns] = new
            else:
                part[at.places_B, :, at.columns] = new.to(part.dtype)

    def keep_places(self, places_B: Tensor) -> _Cache:
        """Of some sentences alone."""
        return _Cache(self.memory.select(places_B), self.past.select(places_B))

    def joined(self, others: _Cache, src_len: int) -> _Cache:
        """Of the sentences of both, the longest source being of this length."""
        room = max(one.past.k_BHSK.shape[2] for one in (self, others))
        return _Cache(
            _joined([self.memory, others.memory], src_len),
            _joined([self.past, others.past], room),
        )

    def keep_columns(self, kept_AC: Tensor, room: int) -> _Cache:
        """With some columns of each sentence, and this much room."""
        a, c = torch.arange(len(kept_AC))[:, None, None], kept_AC[:, None]
        h = torch.arange(self.past.k_BHSK.shape[1])[None, :, None]
        past = KeyValues(*(F.pad(part[a, h, c], (0, 0, 0, room - kept_AC.shape[1])) for part in self.past))
        return _Cache(self.memory, past)


def _joined(parts: Sequence[KeyValues], n: int) -> KeyValues:
    """One after the other, each cut or filled up to n columns."""
    k, v = ([F.pad(part, (0, 0, 0, n - part.shape[2])) for part in each] for each in zip(*parts, strict=True))
    return KeyValues(torch.cat(k), torch.cat(v))


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the rows of a step, which come sentence by sentence, as many of each."""

    caches: list[_Cache]
    choice: Choice
    src_sees_A11S: Tensor
    sees_BWC: Tensor  # 0 where a row descends from a column, else -inf
    places_B: Tensor
    n_tokens_B: Tensor

    def select(self, rows_M: Tensor) -> State:
        """The state of these rows; those of a sentence that goes on stay together."""
        n_before, width, n_columns = self.sees_BWC.shape
        kept_B = torch.unique_consecutive(rows_M // width)
        sees_BWC = self.sees_BWC.flatten(0, 1)[rows_M].view(len(kept_B), len(rows_M) // max(len(kept_B), 1), n_columns)
        if len(kept_B) == n_before:
            return replace(self, sees_BWC=sees_BWC)
        after = replace(
            self,
            sees_BWC=sees_BWC,
            choice=self.choice.select(kept_B),
            places_B=self.places_B[kept_B],
            n_tokens_B=self.n_tokens_B[kept_B],
        )
        return after if len(kept_B) > _FEWEST_PLACES * len(self.src_sees_A11S) else after._closed_up()

    def joined(self, others: State) -> State:
        """The rows of both."""
        both = self._closed_up(), others._closed_up()
        src_len = max(int((one.src_sees_A11S == 0).sum(dim=3).amax()) for one in both)
        n_columns = max(one.sees_BWC.shape[2] for one in both)
        return State(
            caches=[one.joined(two, src_len) for one, two in zip(*(state.caches for state in both), strict=True)],
            choice=self.choice.joined(others.choice),
            src_sees_A11S=torch.cat([_unseen_to(src_len, one.src_sees_A11S) for one in both]),
            sees_BWC=torch.cat([_unseen_to(n_columns, one.sees_BWC) for one in both]),
            places_B=torch.arange(sum(len(one.places_B) for one in both)),
            n_tokens_B=torch.cat([one.n_tokens_B for one in both]),
        )

    def _closed_up(self) -> State:
        """Without places that are not in use."""
        return replace(
            self,
            caches=[cache.keep_places(self.places_B) for cache in self.caches],
            src_sees_A11S=self.src_sees_A11S[self.places_B],
            places_B=torch.arange(len(self.places_B)),
        )

    def opened(self) -> tuple[State, _At]:
        """With a column more for each row, which that row sees; and where that is."""
        _, width, n_columns = self.sees_BWC.shape
        room = self.caches[0].past.k_BHSK.shape[2]
        if n_columns + width > room:
            return self._tidied().opened()
        own_WW = torch.full((width, width), -math.inf).fill_diagonal_(0)
        sees_BWC = torch.cat([self.sees_BWC, own_WW.expand(len(self.sees_BWC), -1, -1)], dim=2)
        after = replace(self, sees_BWC=sees_BWC, n_tokens_B=self.n_tokens_B + 1)
        places_B = self.places_B if len(self.places_B) < len(self.src_sees_A11S) else None
        all_B1WC = _unseen_to(room, sees_BWC)[:, None]
        at = _At(slice(n_columns, n_columns + width), width, places_B, all_B1WC, self.src_sees_A11S)
        return after, replace(at, sees_A1WC=at.spread(all_B1WC))

    def _tidied(self) -> State:
        """Without the columns from which no living row descends, and with room for more."""
        is_seen_BC = (self.sees_BWC == 0).any(dim=1)
        n_kept = int(is_seen_BC.sum(dim=1).amax()) if is_seen_BC.shape[1] else 0
        kept_BC = is_seen_BC.byte().sort(dim=1, descending=True, stable=True).indices[:, :n_kept]
        kept_AC = kept_BC.new_zeros(len(self.src_sees_A11S), n_kept).index_copy_(0, self.places_B, kept_BC)
        room = n_kept + _STEPS_AHEAD * self.sees_BWC.shape[1]
        room += -room % _LANES
        return replace(
            self,
            caches=[cache.keep_columns(kept_AC, room) for cache in self.caches],
            sees_BWC=self.sees_BWC.gather(2, kept_BC[:, None].expand(-1, self.sees_BWC.shape[1], -1)),
        )


def _unseen_to(n: int, sees: Tensor) -> Tensor:
    """Cut to n columns, or filled up with such as nobody sees."""
    return F.pad(sees, (0, n - sees.shape[-1]), value=-math.inf)
