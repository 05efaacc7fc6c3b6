"""Hypotheses and references to BLEU, chrF and TER, each with the signature that makes it comparable.

The numbers are sacreBLEU's, computed on plain text with its default settings. Signatures read as in its JSON
output; two numbers whose signatures differ are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sacrebleu import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from dragoman.errors import DataError


@dataclass(frozen=True, slots=True)
class Score:
    """A number between 0 and 100 (TER can exceed it) and how it was obtained."""

    score: float
    signature: str


@dataclass(frozen=True, slots=True)
class Scores:
    """What `evaluate` reports about a text; higher is better, except for TER, which counts edits."""

    bleu: Score
    chrf: Score
    ter: Score
    sentences: int

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values for JSON, under the same names."""
        return asdict(self)


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """BLEU, chrF and TER of a text, one reference per line."""
    check_lines(hypotheses, references)
    return Scores(
        bleu=_score(BLEU(), hypotheses, references),
        chrf=_score(CHRF(), hypotheses, references),
        ter=_score(TER(), hypotheses, references),
        sentences=len(hypotheses),
    )


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """BLEU alone, for validation while training: TER takes much longer."""
    check_lines(hypotheses, references)
    return _score(BLEU(), hypotheses, references)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The percentage of hypotheses that are their reference, character for character."""
    check_lines(hypotheses, references)
    n_equal = sum(ours == theirs for ours, theirs in zip(hypotheses, references, strict=True))
    return 100 * n_equal / len(references)


def check_lines(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Nothing; a DataError if the two do not belong together line by line."""
    if len(hypotheses) != len(references):
        raise DataError(
            f"there are {len(hypotheses)} hypotheses but {len(references)} references",
            hint="give one reference per hypothesis, in the same order; empty lines count",
        )
    if not references:
        raise DataError("there is nothing to score: no line was given", hint="check that the files are not empty")


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    number = metric.corpus_score(hypotheses, [references]).score
    return Score(score=float(number), signature=str(metric.get_signature()))
