"""How much each head matters on a text: what becomes of the loss, and of BLEU, when it is switched off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.explain.heads import Head, heads_of, without_heads
from dragoman.score.metrics import bleu
from dragoman.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    """A model without one of its heads, or with all of them, on a text."""

    head: Head | None
    loss: float  # of the references, in nats per target token
    bleu: float | None  # of the translations, if asked for


def importance(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    with_bleu: bool = False,
    progress: Callable[[int, int], None] = lambda n_done, n_all: None,
) -> list[Without]:
    """The whole model first, then without each head in turn; `progress` is told how many of all are done."""
    switched_off: list[Head | None] = [None, *heads_of(translator.config.model)]
    found = []
    for n_done, head in enumerate(switched_off):
        progress(n_done, len(switched_off))
        changed = without_heads(translator, [] if head is None else [head])
        translations = [one.text for one in changed.translate(sources)] if with_bleu else None
        found.append(
            Without(
                head=head,
                loss=changed.loss(sources, references),
                bleu=None if translations is None else bleu(translations, references).score,
            )
        )
    progress(len(switched_off), len(switched_off))
    return found
