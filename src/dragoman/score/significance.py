"""Whether one output is better than another: paired bootstrap resampling over sentences (Koehn, 2004).

sacreBLEU has such a test, with the interval of each score but none of their difference, and with a p-value
that takes absolute differences before it centres them: that is one-sided where two outputs clearly differ,
and 1 / (n_samples + 1) for two equal ones. So we draw the same resamples and score them with sacreBLEU, then
look at the signed differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from dragoman.errors import ConfigError
from dragoman.score.metrics import check_lines

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """Two scores of one metric and how sure their difference is."""

    ours: float
    theirs: float
    difference: float  # ours - theirs; below 0 is better for TER
    low: float  # 95 % confidence interval of the difference
    high: float
    p_value: float
    signature: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a paired test says about two outputs on the same references."""

    bleu: Difference
    chrf: Difference
    ter: Difference
    sentences: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values for JSON, under the same names."""
        return asdict(self)


def paired_bootstrap(
    ours: Sequence[str],
    theirs: Sequence[str],
    references: Sequence[str],
    *,
    n_samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """The differences in BLEU, chrF and TER, with their 95 % confidence intervals and p-values.

    Each resample draws as many sentences as there are, with replacement, the same ones for both outputs. The
    interval holds the middle 95 % of the resampled differences. p is two-sided and centred: the share of
    resampled differences that lie at least as far from their own mean as the observed difference lies
    from 0, the observed one included: (count + 1) / (n_samples + 1). Two equal outputs have p = 1.
    """
    check_lines(ours, references)
    check_lines(theirs, references)
    if n_samples < 1:
        raise ConfigError(f"n_samples={n_samples} draws nothing", hint="use 1000, or more for a finer p-value")
    if seed < 0:
        raise ConfigError(f"seed={seed} is negative", hint="use 0 or more")

    def compare(metric: Metric) -> Difference:
        return _compare(metric, ours, theirs, references, n_samples=n_samples, seed=seed)

    return Comparison(bleu=compare(BLEU()), chrf=compare(CHRF()), ter=compare(TER()), sentences=len(references))


def _compare(
    metric: Metric,
    ours: Sequence[str],
    theirs: Sequence[str],
    references: Sequence[str],
    *,
    n_samples: int,
    seed: int,
) -> Difference:
    """Both scores and what the resampled differences say."""
    stats = [_statistics(metric, hypotheses, references) for hypotheses in (ours, theirs)]
    our_score, their_score = (_score(metric, table.sum(axis=0)) for table in stats)
    difference = our_score - their_score
    resampled = np.subtract(*_resampled_scores(metric, *stats, n_samples=n_samples, seed=seed))
    low, high = np.quantile(resampled, [0.025, 0.975])
    n_as_far = int((np.abs(resampled - resampled.mean()) >= abs(difference)).sum())
    signature = metric.get_signature()
    signature.update("bs", n_samples)
    signature.update("seed", seed)
    return Difference(
        ours=our_score,
        theirs=their_score,
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=(n_as_far + 1) / (n_samples + 1),
        signature=str(signature),
    )


def _resampled_scores(
    metric: Metric, ours: Floats, theirs: Floats, *, n_samples: int, seed: int
) -> tuple[Floats, Floats]:
    """The scores of both outputs on each resample."""
    rng = np.random.default_rng(seed)
    n = len(ours)
    scores = np.empty((2, n_samples))
    for i in range(n_samples):
        times_drawn = np.bincount(rng.integers(n, size=n), minlength=n)
        scores[0, i] = _score(metric, times_drawn @ ours)
        scores[1, i] = _score(metric, times_drawn @ theirs)
    return scores[0], scores[1]


# A corpus score is a function of counts that add up over sentences. sacreBLEU keeps the two halves to itself;
# resampling its scores without tokenizing a thousand times needs both.


def _statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Floats:
    """The counts of each sentence, one row per sentence."""
    return np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)


def _score(metric: Metric, stats: Floats) -> float:
    """The corpus score that these added counts give."""
    return float(metric._compute_score_from_stats(stats.tolist()).score)
