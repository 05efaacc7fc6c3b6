"""Beam search with the paper's length penalty (section 6.1), over a batch of sentences.

What exactly is searched, for a sentence:

1. A candidate is a live hypothesis with one token more; candidates are ranked by total log-probability.
   Equal ones rank by their hypothesis (the better first), then by token id.
2. A candidate that ends in eos and ranks among the first `beam` is finished. The `beam` best candidates that
   do not end in eos are live in the next step.
3. A hypothesis with `max_len` tokens has a single candidate, the one that ends it. Its log-probability is
   counted like any other, so every hypothesis is complete and has its forced-decoding score.
4. The search ends at the length limit, or when `beam` hypotheses are finished (hence a beam of 1 is greedy
   search for every alpha), and answers with the `nbest` finished ones of the highest score.

It stops earlier when no live hypothesis can enter the n-best any more. That changes no result: a
log-probability is never positive and only falls as tokens are added, so a live hypothesis cannot score more
than what it has now divided by the largest penalty ahead; and a hypothesis that only equals an earlier
finished one ranks behind it.

Sentences leave the batch when they are done. Of many batches the last few sentences of each, which would take many
steps of few rows, are put aside and go on together, whatever the number of their tokens.
"""

# Letters: B sentences not yet done, W live hypotheses of each, N = B * W rows of the step, V vocabulary,
# K candidates of a row, C = W * K candidates of a sentence, R the nbest, T tokens of the longest, L lengths.

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.search.step import Hypothesis, S, SearchConfig, Step, check_nbest
from dragoman.search.step import length_penalty as penalty
from dragoman.search.top import top

_FEW = 0.125  # share of a batch that is put aside


def beam_search(
    step: Step[S],
    state: S,
    *,
    max_lens: Sequence[int],
    bos_id: int,
    eos_id: int,
    beam: int,
    length_penalty: float,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """The `nbest` best hypotheses of each sentence, best first, fewer if fewer have a probability above 0.

    The state has one row per sentence. Sums are kept in double precision, so that rounding does not make ties.
    """
    return batched_beam_search(
        step,
        [(state, max_lens)] if max_lens else [],
        bos_id=bos_id,
        eos_id=eos_id,
        beam=beam,
        length_penalty=length_penalty,
        nbest=nbest,
    )


def batched_beam_search(
    step: Step[S],
    batches: Iterable[tuple[S, Sequence[int]]],
    *,
    bos_id: int,
    eos_id: int,
    beam: int,
    length_penalty: float,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """What `beam_search` finds for each sentence of all batches, in order, at less cost than one after the other.

    A batch is a state and the limits of length, asked for when the one before is nearly done. If there are several,
    states have a method `joined`: the state with the rows of another after its own.
    """
    SearchConfig(beam=beam, length_penalty=length_penalty)  # refuses what a run file may not say either
    check_nbest(nbest, beam)
    search = _Search(step, bos_id=bos_id, eos_id=eos_id, beam=beam, alpha=length_penalty, nbest=nbest)
    late: _Going[S] | None = None
    for state, max_lens in batches:
        few = search.reduced(search.begun(state, max_lens), int(_FEW * len(max_lens)))
        late = few if late is None else late.joined(few)
        if len(late) >= len(max_lens):  # so that there are never more than two batches
            late = search.reduced(late, int(_FEW * len(late)))
    if late is not None:
        search.reduced(late, 0)
    # Sorting keeps the order of equal scores: the earlier finished first.
    return [sorted(hypotheses, key=lambda h: -h.score)[:nbest] for hypotheses in search.found]


class _Search(Generic[S]):
    """What all sentences share: the rules, and a list of what was found."""

    def __init__(self, step: Step[S], *, bos_id: int, eos_id: int, beam: int, alpha: float, nbest: int) -> None:
        self._step, self._bos_id, self._eos_id = step, bos_id, eos_id
        self._beam, self._alpha, self._nbest = beam, alpha, nbest
        self._penalty_L = torch.empty(0)
        self.found: list[list[Hypothesis]] = []

    def begun(self, state: S, max_lens: Sequence[int]) -> _Going[S]:
        """A batch after its first step."""
        log_probs_NV, state = self._step(torch.full((len(max_lens),), self._bos_id), state)
        n_lengths = max(len(self._penalty_L), max(max_lens) + 3)
        penalties = [penalty(length, self._alpha) for length in range(n_lengths)]
        self._penalty_L = torch.tensor(penalties, dtype=torch.float64).to(log_probs_NV.device)
        beams = _Beams.start(len(self.found), max_lens, self._nbest, log_probs_NV.device)
        self.found += [[] for _ in max_lens]
        return self._after(log_probs_NV, beams, state)

    def reduced(self, going: _Going[S], n_left: int) -> _Going[S]:
        """The sentences of a batch when no more than so many are left."""
        while len(going) > n_left:
            log_probs_NV, state = self._step(going.beams.ids_BWT[:, :, -1].flatten(), going.state)
            going = self._after(log_probs_NV, going.beams, state)
        return going

    def _after(self, log_probs_NV: Tensor, beams: _Beams, state: S) -> _Going[S]:
        candidates = _candidates(beams, log_probs_NV, beam=self._beam, eos_id=self._eos_id)
        is_finished_BC = _is_finished(beams, candidates, beam=self._beam)
        for sentence, ids, numbers in _read(beams, candidates, is_finished_BC):
            self.found[sentence].append(Hypothesis.of(ids, numbers, self._alpha))
        beams, row_N = _advance(beams, candidates, is_finished_BC, self._penalty_L, beam=self._beam)
        return _Going(beams, state.select(row_N))


@dataclass(frozen=True, slots=True)
class _Going(Generic[S]):
    """Sentences on their way."""

    beams: _Beams
    state: S

    def __len__(self) -> int:
        return len(self.beams.sentence_B)

    def joined(self, others: _Going[S]) -> _Going[S]:
        """These and others."""
        if not len(self) or not len(others):
            return self if len(self) else others
        return _Going(self.beams.joined(others.beams), cast("Any", self.state).joined(others.state))


@dataclass(frozen=True, slots=True)
class _Beams:
    """The sentences not yet done, each with W live hypotheses, best first."""

    sentence_B: Tensor  # the sentence's place in the input
    max_len_B: Tensor
    n_tokens_B: Tensor
    n_finished_B: Tensor
    best_BR: Tensor  # scores of the best finished hypotheses, best first; -inf where there are fewer
    log_prob_BW: Tensor  # -inf where there are fewer than W with a probability above 0
    ids_BWT: Tensor  # the last n_tokens_B of them; what stands before means nothing
    token_log_probs_BWT: Tensor

    @classmethod
    def start(cls, first: int, max_lens: Sequence[int], nbest: int, device: torch.device) -> _Beams:
        """One live hypothesis without tokens for each sentence."""
        n = len(max_lens)
        return cls(
            sentence_B=torch.arange(first, first + n, device=device),
            max_len_B=torch.tensor(max_lens, device=device),
            n_tokens_B=torch.zeros(n, dtype=torch.long, device=device),
            n_finished_B=torch.zeros(n, dtype=torch.long, device=device),
            best_BR=torch.full((n, nbest), -math.inf, dtype=torch.float64, device=device),
            log_prob_BW=torch.zeros(n, 1, dtype=torch.float64, device=device),
            ids_BWT=torch.empty(n, 1, 0, dtype=torch.long, device=device),
            token_log_probs_BWT=torch.empty(n, 1, 0, dtype=torch.float64, device=device),
        )

    def joined(self, others: _Beams) -> _Beams:
        """The sentences of both."""
        n_tokens = int(torch.cat([self.n_tokens_B, others.n_tokens_B]).amax())

        def joined(name: str) -> Tensor:
            parts: list[Tensor] = [getattr(self, name), getattr(others, name)]
            if name.endswith("T"):  # cut or filled up at their beginnings
                parts = [F.pad(part_BWT, (n_tokens - part_BWT.shape[2], 0)) for part_BWT in parts]
            return torch.cat(parts)

        return _Beams(**{field.name: joined(field.name) for field in fields(self)})

    def is_full(self) -> Tensor:
        """is_full_B: where the length limit is reached."""
        return self.max_len_B == self.n_tokens_B


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The live hypotheses of each sentence with one token more, the most probable first."""

    parent_BC: Tensor  # which of the sentence's W hypotheses
    id_BC: Tensor
    token_log_prob_BC: Tensor
    log_prob_BC: Tensor
    is_eos_BC: Tensor
    n_live: int  # how many of them go on when the sentence does


def _candidates(beams: _Beams, log_probs_NV: Tensor, *, beam: int, eos_id: int) -> _Candidates:
    """The candidates that can finish or stay live: of each row the `beam` best, and one for eos among them."""
    n_sentences, width = beams.log_prob_BW.shape
    token_NK, id_NK = top(log_probs_NV, beam + 1)
    token_NK = token_NK.double()
    is_full_N = beams.is_full().repeat_interleave(width)
    token_NK[is_full_N] = -math.inf
    token_NK[is_full_N, 0] = log_probs_NV[is_full_N, eos_id].double()
    id_NK[is_full_N] = eos_id
    k = token_NK.shape[1]
    log_prob_BWK = beams.log_prob_BW[:, :, None] + token_NK.view(n_sentences, width, k)
    log_prob_BC, order_BC = log_prob_BWK.flatten(1).sort(dim=1, descending=True, stable=True)
    id_BC = id_NK.view(n_sentences, width * k).gather(1, order_BC)
    return _Candidates(
        parent_BC=order_BC // k,
        id_BC=id_BC,
        token_log_prob_BC=token_NK.view(n_sentences, width * k).gather(1, order_BC),
        log_prob_BC=log_prob_BC,
        is_eos_BC=id_BC == eos_id,
        n_live=min(beam, width * (k - 1)),
    )


def _is_finished(beams: _Beams, candidates: _Candidates, *, beam: int) -> Tensor:
    """is_finished_BC: the possible candidates with eos among the first `beam`."""
    is_finished_BC = candidates.is_eos_BC & (candidates.log_prob_BC > -math.inf)
    is_finished_BC[:, beam:] = False
    # A model that rules eos out up to the limit still gets an answer, of log-probability -inf.
    has_none_B = (beams.n_finished_B == 0) & ~is_finished_BC.any(dim=1)
    is_finished_BC[:, 0] |= beams.is_full() & has_none_B
    return is_finished_BC


def _read(beams: _Beams, candidates: _Candidates, is_finished_BC: Tensor) -> list[tuple[int, list[int], list[float]]]:
    """The sentence, ids and log-probabilities of each newly finished candidate, the better ones first."""
    b, c = is_finished_BC.nonzero(as_tuple=True)
    parent = candidates.parent_BC[b, c]
    last = candidates.token_log_prob_BC[b, c]
    sentences: list[int] = beams.sentence_B[b].tolist()
    ids: list[list[int]] = beams.ids_BWT[b, parent].tolist()
    numbers: list[list[float]] = torch.cat([beams.token_log_probs_BWT[b, parent], last[:, None]], dim=1).tolist()
    befores: list[int] = (beams.ids_BWT.shape[2] - beams.n_tokens_B[b]).tolist()
    rows = zip(sentences, ids, numbers, befores, strict=True)
    return [(sentence, ids[before:], numbers[before:]) for sentence, ids, numbers, before in rows]


def _advance(
    beams: _Beams, candidates: _Candidates, is_finished_BC: Tensor, penalty_L: Tensor, *, beam: int
) -> tuple[_Beams, Tensor]:
    """The sentences that go on, one token longer, and row_N: the rows of the step they come from."""
    width, n_tokens_B = beams.ids_BWT.shape[1], beams.n_tokens_B + 1
    new_BC = (candidates.log_prob_BC / penalty_L[n_tokens_B, None]).masked_fill(~is_finished_BC, -math.inf)
    best_BR = torch.cat([beams.best_BR, new_BC], dim=1).sort(dim=1, descending=True).values
    best_BR = best_BR[:, : beams.best_BR.shape[1]]
    n_finished_B = beams.n_finished_B + is_finished_BC.sum(dim=1)

    # Those without eos first, otherwise in their order. Where a small vocabulary has too few for the beam, the last of
    # them stands in for the others, impossible there: every sentence has as many rows.
    live_W = torch.arange(beam, device=n_tokens_B.device).clamp(max=candidates.n_live - 1)
    live_BW = candidates.is_eos_BC.byte().sort(dim=1, stable=True).indices[:, live_W]
    log_prob_BW = candidates.log_prob_BC.gather(1, live_BW)
    log_prob_BW[:, candidates.n_live :] = -math.inf
    # The shortest and the longest sequence ahead, eos included: the penalty is monotonic in between.
    most_B = penalty_L[n_tokens_B + 1].maximum(penalty_L[beams.max_len_B + 1])
    is_hopeless_B = (n_finished_B > 0) & (log_prob_BW[:, 0] / most_B <= best_BR[:, -1])
    is_done_B = beams.is_full() | (n_finished_B >= beam) | is_hopeless_B

    stay_B = (~is_done_B).nonzero()[:, 0]
    b = stay_B[:, None]
    live_BW = live_BW[stay_B]
    parent_BW = candidates.parent_BC[b, live_BW]
    id_BW = candidates.id_BC[b, live_BW]
    token_BW = candidates.token_log_prob_BC[b, live_BW]
    after = _Beams(
        sentence_B=beams.sentence_B[stay_B],
        max_len_B=beams.max_len_B[stay_B],
        n_tokens_B=n_tokens_B[stay_B],
        n_finished_B=n_finished_B[stay_B],
        best_BR=best_BR[stay_B],
        log_prob_BW=log_prob_BW[stay_B],
        ids_BWT=torch.cat([beams.ids_BWT[b, parent_BW], id_BW[:, :, None]], dim=2),
        token_log_probs_BWT=torch.cat([beams.token_log_probs_BWT[b, parent_BW], token_BW[:, :, None]], dim=2),
    )
    return after, (b * width + parent_BW).flatten()
