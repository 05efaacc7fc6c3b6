"""CTranslate2 as an engine: the fastest on a processor, and it needs no torch.

It searches as our beam search does, but for three things. It divides by |Y| ** alpha where the paper divides by
((5 + |Y|) / 6) ** alpha: so it is asked for what it finished, with log-probabilities, and ranking is done here. Where
more than `beam` have ended in the last step it drops some by its own penalty: so in float32 it is asked for twice as
many, of which those that came too late are dropped here; in int8, which is for speed, that is let be. And it has one
limit of length for all sentences, and does not count the end of what it cuts there: so limits are rounded up, sentences
of one rounded limit are searched together, and what is longer than its own limit is cut here and counted. Of those
only, it may choose others than our search.

In int8 it writes only the subwords that the training text's translations are made of, by a model of its own that has no
others: which they are does not depend on the sentence, so that neighbours change nothing. What is forced, forbidden or
scored may need any subword, and is left to the whole model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from dragoman.checkpoint.folder import SHORTLIST
from dragoman.config import Config
from dragoman.engines.ct2_files import Ct2Files
from dragoman.engines.engine import Ids
from dragoman.engines.processor import has_avx512
from dragoman.search.step import Constraints, Hypothesis, SearchConfig, check_nbest
from dragoman.search.step import length_penalty as penalty
from dragoman.tokens.subwords import EOS_ID, Subwords

_USUAL_LENGTH = 20  # at which |Y| ** (alpha * 20 / 25) ranks as the paper's penalty does
_SHORTEST_FIRST = -10.0  # as a penalty: of too many, those that ended first are kept; beyond, powers overflow
_LEAST_LIMIT, _LIMITS_APART = 80, 16  # tokens; limits are rounded up to the former, or to a multiple of the latter
_MOST_TOKENS = 512  # in a batch: with more it is slower
_LEAST_PENALTY = 1e-6  # with 0 it would stop as soon as the best has ended, before the others of an n-best list


class Ct2Engine:
    """A CTranslate2 model and its search."""

    can_look_inside = False
    n_at_once = 2

    def __init__(
        self, open_whole: Callable[[], Any], pieces: Sequence[str], *, is_exact: bool, short: Any | None = None
    ) -> None:
        """`pieces` are the subwords by id; `is_exact`: finds what our search does.

        `open_whole` opens CTranslate2's translator, `short` is one that writes fewer subwords: with it, the whole one
        is opened only when it is needed.
        """
        self._open_whole, self._short = open_whole, short
        self._opened, self._opening = None if short else open_whole(), Lock()
        self._pieces, self._is_exact = list(pieces), is_exact
        self._ids = {piece: i for i, piece in enumerate(pieces)}

    def search(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, *,
        nbest: int, batch_tokens: int, token_log_probs: bool = False,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """By CTranslate2's beam search, ranked by the paper's length penalty."""
        check_nbest(nbest, search.beam)
        if not src_ids:
            return []
        limits = constraints.limits([len(ids) for ids in src_ids], search.max_extra_tokens)
        alike: dict[int, list[int]] = {}  # the rows of each rounded limit, which no neighbour changes
        for row, limit in enumerate(limits):
            alike.setdefault(_rounded(limit), []).append(row)
        # Waiting for each result would ask for the interpreter as often, which a busy server keeps to itself.
        waits = len(alike) > 1
        begun = [
            (rows, self._search([src_ids[i] for i in rows], search, constraints.of(rows), limit, batch_tokens, waits))
            for limit, rows in alike.items()
        ]
        found: list[list[tuple[list[int], float]]] = [[] for _ in src_ids]
        for rows, result in begun:
            for row, hypotheses in zip(rows, result(), strict=True):
                found[row] = _in_time(_cut(hypotheses, limits[row]), search.beam)
        # Neither the end of what it cuts nor what it forbids or forces has the model's own probability there.
        is_odd = [
            [bool(constraints) or len(ids) >= limit for ids, _ in hyps]
            for limit, hyps in zip(limits, found, strict=True)
        ]
        translator = self._translator(constraints)
        self._count(translator, src_ids, found, is_odd, batch_tokens)
        best = [_ranked(hypotheses, search.length_penalty)[:nbest] for hypotheses in found]
        if token_log_probs:
            self._add_numbers(translator, src_ids, best, batch_tokens)
        return best

    def tokens(self, src_ids: Ids, search: SearchConfig, constraints: Constraints) -> Iterator[int]:
        """By CTranslate2's greedy search, which hands on each token."""
        (limit,) = constraints.limits([len(src_ids)], search.max_extra_tokens)
        steps = self._translator(constraints).generate_tokens(
            self._named(src_ids),
            None if constraints.prefixes is None else self._named(constraints.prefixes[0]),
            max_decoding_length=limit,
            min_decoding_length=0,
            no_repeat_ngram_size=constraints.no_repeat_ngram,
            max_input_length=0,
        )
        for step in steps:
            token_id = self._ids[step.token]
            if not step.is_last or token_id != EOS_ID:
                yield token_id

    def token_log_probs(
        self, src_ids: Sequence[Ids], tgt_ids: Sequence[Ids], *, batch_tokens: int
    ) -> list[tuple[float, ...]]:
        """By one pass over the whole target."""
        return self._scored(self._whole(), src_ids, tgt_ids, batch_tokens)

    def _whole(self) -> Any:
        with self._opening:  # several threads may come to need it at the same time
            self._opened = self._opened or self._open_whole()
        return self._opened

    def _translator(self, constraints: Constraints) -> Any:
        return self._whole() if constraints or self._short is None else self._short

    def _scored(
        self, translator: Any, src_ids: Sequence[Ids], tgt_ids: Sequence[Ids], batch_tokens: int
    ) -> list[tuple[float, ...]]:
        results = translator.score_batch(
            [self._named(ids) for ids in src_ids],
            [self._named(ids) for ids in tgt_ids],
            max_batch_size=min(batch_tokens, _MOST_TOKENS),
            batch_type="tokens",
        )
        return [tuple(result.log_probs) for result in results]

    def _search(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, limit: int, batch_tokens: int,
        waits: bool,
    ) -> Callable[[], list[list[tuple[list[int], float]]]]:  # fmt: skip
        """A search, or its begin if the caller `waits`: the ids and log-probabilities of what ended, by sentence."""
        patience, alpha = 1, search.length_penalty * _USUAL_LENGTH / (5 + _USUAL_LENGTH) or _LEAST_PENALTY
        if self._is_exact and search.beam > 1:
            patience, alpha = 2, _SHORTEST_FIRST
        prefixes = None if constraints.prefixes is None else [self._named(ids) for ids in constraints.prefixes]
        begun = self._translator(constraints).translate_batch(
            [self._named(ids) for ids in src_ids],
            beam_size=search.beam,
            num_hypotheses=search.beam * patience,
            patience=patience,
            length_penalty=alpha,
            min_decoding_length=0,  # or the end would have no probability at the first step
            max_decoding_length=limit,
            max_batch_size=min(batch_tokens, _MOST_TOKENS),
            batch_type="tokens",
            return_scores=True,
            target_prefix=prefixes,
            no_repeat_ngram_size=constraints.no_repeat_ngram,
            asynchronous=waits,
        )

        def finished(result: Any) -> list[tuple[list[int], float]]:
            scored = zip(result.hypotheses, result.scores, strict=True)
            named = [([self._ids[piece] for piece in pieces], score, len(pieces) + 1) for pieces, score in scored]
            return [(ids, score * length**alpha) for ids, score, length in named]

        return lambda: [finished(one.result() if waits else one) for one in begun]

    def _count(
        self,
        translator: Any,
        src_ids: Sequence[Ids],
        found: list[list[tuple[list[int], float]]],
        is_odd: list[list[bool]],
        batch_tokens: int,
    ) -> None:
        """Gives odd hypotheses the log-probabilities of forced decoding."""
        places = [(row, k) for row, odd in enumerate(is_odd) for k in range(len(odd)) if odd[k]]
        if not places:
            return
        targets = [found[row][k][0] for row, k in places]
        numbers = self._scored(translator, [src_ids[row] for row, _ in places], targets, batch_tokens)
        for (row, k), ids, log_probs in zip(places, targets, numbers, strict=True):
            found[row][k] = ids, sum(log_probs)

    def _add_numbers(
        self, translator: Any, src_ids: Sequence[Ids], best: list[list[Hypothesis]], batch_tokens: int
    ) -> None:
        """Gives the hypotheses the log-probability of each of their tokens."""
        places = [(row, k) for row, hypotheses in enumerate(best) for k in range(len(hypotheses))]
        targets = [best[row][k].ids for row, k in places]
        numbers = self._scored(translator, [src_ids[row] for row, _ in places], targets, batch_tokens)
        for (row, k), log_probs in zip(places, numbers, strict=True):
            best[row][k] = replace(best[row][k], token_log_probs=log_probs)

    def _named(self, ids: Ids) -> list[str]:
        return [self._pieces[i] for i in ids]


def _rounded(limit: int) -> int:
    """A limit that is no smaller, and that many sentences share."""
    return max(_LEAST_LIMIT, -(-limit // _LIMITS_APART) * _LIMITS_APART)


def _cut(hypotheses: list[tuple[list[int], float]], limit: int) -> list[tuple[list[int], float]]:
    """No longer than the limit; of those that are then the same, the first."""
    shorter: dict[tuple[int, ...], float] = {}
    for ids, log_prob in hypotheses:
        shorter.setdefault(tuple(ids[:limit]), log_prob)
    return [(list(ids), log_prob) for ids, log_prob in shorter.items()]


def _in_time(hypotheses: list[tuple[list[int], float]], beam: int) -> list[tuple[list[int], float]]:
    """Those that had ended when as many as the beam is wide had: the shortest, and others no longer than them."""
    lengths = sorted(len(ids) for ids, _ in hypotheses)
    last = lengths[min(beam, len(lengths)) - 1]
    return [(ids, log_prob) for ids, log_prob in hypotheses if len(ids) <= last]


def _ranked(hypotheses: list[tuple[list[int], float]], alpha: float) -> list[Hypothesis]:
    """Best first by the paper's length penalty."""
    scored = [
        Hypothesis(tuple(ids), log_prob, log_prob / penalty(len(ids) + 1, alpha), ()) for ids, log_prob in hypotheses
    ]
    return sorted(scored, key=lambda hypothesis: -hypothesis.score)


def load_ct2_engine(
    folder: Path,
    config: Config,
    subwords: Subwords,
    *,
    precision: Literal["float32", "int8"],
    threads: int | None,
    shortlist: bool,
) -> Ct2Engine:
    """The engine with the weights of a run folder, from the CTranslate2 files kept there or made now.

    With `shortlist`, int8 writes only what is on that of the folder, if there is one.
    """
    if has_avx512():  # it keeps to AVX2 where it is not told that there is more, and looks for that once in a process
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
    files = Ct2Files(folder, config.model, subwords.pieces(range(subwords.vocab_size)), precision, threads)
    has_short = shortlist and precision == "int8" and (folder / SHORTLIST).exists()
    return Ct2Engine(
        files.whole,
        files.pieces,
        is_exact=precision == "float32",
        short=files.short(folder / SHORTLIST) if has_short else None,
    )
