"""What search is made of: the settings, the contract with a model, and what is found.

A search never sees a model. It sees a step, which takes the last token of every row and answers with the
log-probabilities of the next one, and a state, which it hands back to the step and whose rows it may
choose from. One model, several models averaged, or a table in a test all look the same from here.
Nothing in this file needs torch when it runs, so that settings can be read without it.
"""

# Letters: N rows (sentences, or hypotheses of sentences), M chosen rows, V vocabulary.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, TypeVar

from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

S = TypeVar("S", bound="State")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """Defaults are the paper's (section 6.1)."""

    beam: int = 4  # hypotheses kept at each step; 1 is greedy search
    length_penalty: float = 0.6  # the paper's alpha
    max_extra_tokens: int = 50  # an output may be this much longer than its input
    int8: bool = True  # bytes unless asked otherwise, on a processor; training says no to a model that loses by them

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise ConfigError(
                f"search.beam={self.beam} keeps no hypothesis",
                hint="use 1 for greedy search, or the paper's 4",
            )
        if not abs(self.length_penalty) <= 10:  # written so that NaN fails too; beyond, powers overflow
            raise ConfigError(
                f"search.length_penalty={self.length_penalty} is not between -10 and 10",
                hint="use the paper's 0.6; 0 ranks by probability alone, more favours longer output",
            )
        if self.max_extra_tokens < 0:
            raise ConfigError(
                f"search.max_extra_tokens={self.max_extra_tokens} is negative",
                hint="use 0 to allow as many tokens as the input has, or the paper's 50",
            )


def check_nbest(nbest: int, beam: int) -> None:
    """Raises if a beam cannot give so many."""
    if not 1 <= nbest <= beam:
        raise ConfigError(
            f"nbest={nbest} does not fit a beam of {beam}", hint=f"use nbest between 1 and {beam}, or a wider beam"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to draw a translation instead of searching for the likeliest one."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0
    first_sentence: int = 0  # number of the first sentence: each has a random stream of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What a search may not do."""

    prefixes: Sequence[Sequence[int]] | None = None  # ids with which the output of each sentence has to begin
    no_repeat_ngram: int = 0  # no run of so many tokens occurs twice in an output; 0: any may

    def __post_init__(self) -> None:
        if self.no_repeat_ngram < 0:
            raise ConfigError(f"no_repeat_ngram={self.no_repeat_ngram} is negative", hint="0 allows every repetition")

    def of(self, rows: Sequence[int]) -> Constraints:
        """Those of some of the sentences."""
        if self.prefixes is None:
            return self
        return replace(self, prefixes=[self.prefixes[row] for row in rows])

    def limits(self, src_lens: Sequence[int], max_extra_tokens: int) -> list[int]:
        """How long each output may become: so much longer than its source, or at least as long as its prefix."""
        prefixes = self.prefixes or [()] * len(src_lens)
        return [max(n + max_extra_tokens, len(prefix)) for n, prefix in zip(src_lens, prefixes, strict=True)]

    def __bool__(self) -> bool:
        return self.prefixes is not None or self.no_repeat_ngram > 0


class State(Protocol):
    """What a step remembers about each of its rows, a cache of keys and values for instance."""

    def select(self: S, rows_M: Tensor) -> S:
        """The state of the given rows, in that order; a row may be repeated or left out.

        Like the first ids of a step, `rows_M` may come on the CPU.
        """


class Step(Protocol[S]):
    """The model as search sees it.

    `last_ids_N` holds the last token of each row (the first time `bos_id`); the answer is the
    log-probability of every next token, none above 0. The ids come on the device of the answer before;
    those of the first call come on the CPU, where nothing is known of devices yet.
    """

    def __call__(self, last_ids_N: Tensor, state: S, /) -> tuple[Tensor, S]:
        """log_probs_NV and the state after reading `last_ids_N`."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One complete output. Its numbers are those of forced decoding: the end of sentence is included."""

    ids: tuple[int, ...]  # without bos and eos
    log_prob: float  # natural logarithm, summed over the ids and eos
    score: float  # log_prob divided by the length penalty; hypotheses are ranked by it
    token_log_probs: tuple[float, ...]  # one for each id, then that of eos; none if the search did not keep them

    @classmethod
    def of(cls, ids: Sequence[int], token_log_probs: Sequence[float], alpha: float) -> Hypothesis:
        """The hypothesis with these ids, its log-probability and score worked out."""
        # Added up one by one, as a search does while it runs: `sum` rounds differently since Python 3.12.
        *_, log_prob = accumulate(token_log_probs)
        score = log_prob / length_penalty(len(token_log_probs), alpha)
        return cls(tuple(ids), log_prob, score, tuple(token_log_probs))


def length_penalty(length: int, alpha: float) -> float:
    """((5 + |Y|) / 6) ** alpha, by which a log-probability is divided (Wu et al. 2016, equation 14).

    This is the paper's penalty (section 6.1), with |Y| the number of tokens including eos. fairseq,
    Marian, CTranslate2 and Hugging Face divide by |Y| ** alpha instead: the same alpha means
    something else there.
    """
    return math.pow((5 + length) / 6, alpha)
